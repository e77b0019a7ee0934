#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "converter/hub/checkpoint_name.h"
#include "converter/hub/download.h"
#include "cria/error.h"

namespace cria::hub {

// What is known of a checkpoint before it is downloaded.
struct RemoteCheckpoint {
  std::string commit;
  std::string licence;  // Empty if it is not known.
  // The size of all files that a conversion reads; absent if the hub does not tell the size of one.
  std::optional<uint64_t> bytes;
};

// Asks the hub; downloads no file. Fails if the model has no files that can be converted.
Result<RemoteCheckpoint> LookUp(const CheckpointName& name, const DownloadOptions& options);

// The size of the files that a conversion reads. If the weights are in several files, whose list
// would have to be downloaded, these are all files of their kind beside the list.
Result<std::optional<uint64_t>> ConversionBytes(const CheckpointName& name, const ModelInfo& info);

}  // namespace cria::hub
