#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "converter/hub/checkpoint_name.h"
#include "converter/hub/model_info.h"
#include "cria/error.h"

namespace cria::hub {

// What the files are for, which decides which of them are downloaded.
enum class Purpose : uint8_t {
  kConversion,
  kVocabulary,  // The tokenizer and the chat template alone.
  kPlan,        // config.json alone.
};

// Weights in several files have an index, which must be read before they are known.
inline constexpr std::string_view kIndexFile = "model.safetensors.index.json";
inline constexpr std::string_view kTorchIndexFile = "pytorch_model.bin.index.json";

// The files that the purpose needs, small ones first; for weights in several files, the index in
// place of the weights. Fails, with a list of what is there, if the model has them in no format
// that can be read.
Result<std::vector<RemoteFile>> ChooseFiles(const CheckpointName& name, const ModelInfo& info,
                                            Purpose purpose);

// The files of weights that the index, which is already downloaded, names.
Result<std::vector<RemoteFile>> ChooseShards(const CheckpointName& name, const ModelInfo& info,
                                             const std::filesystem::path& index_path);

}  // namespace cria::hub
