#pragma once

#include <cstdint>
#include <functional>

#include "converter/hub/checkpoint_folder.h"
#include "converter/hub/checkpoint_name.h"
#include "converter/hub/hub_client.h"
#include "converter/hub/model_info.h"
#include "cria/error.h"

namespace cria::hub {

// Called with the number of bytes of the file that are there.
using FileProgress = std::function<void(uint64_t num_bytes)>;

// Downloads one file of the model into the folder, and continues what an earlier download left. If
// the connection breaks, it tries again. The file gets its name only after its size and its hash,
// as far as the hub gives them, were found right; otherwise it is removed.
Status DownloadFile(HubClient& client, const CheckpointName& name, const ModelInfo& info,
                    const RemoteFile& file, const CheckpointFolder& folder,
                    const FileProgress& progress);

}  // namespace cria::hub
