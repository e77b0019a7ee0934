#include "converter/hub/look_up.h"

#include <limits>
#include <string_view>
#include <vector>

#include "converter/hub/model_info.h"

namespace cria::hub {
namespace {

// Adds the size of a file; absent from then on if it is not known.
void AddSize(const RemoteFile& file, std::optional<uint64_t>& bytes) {
  if (!bytes || !file.size_bytes) {
    bytes.reset();
    return;
  }
  // The hub may lie: the sum stays at its largest value.
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  bytes = *bytes > kMax - *file.size_bytes ? kMax : *bytes + *file.size_bytes;
}

// Whether the file may be one that the index names.
bool IsShard(std::string_view path, std::string_view index) {
  const bool is_torch = index == kTorchIndexFile;
  return !path.contains('/') && path.contains("-of-") &&
         path.starts_with(is_torch ? "pytorch_model-" : "model-") &&
         path.ends_with(is_torch ? ".bin" : ".safetensors");
}

}  // namespace

Result<std::optional<uint64_t>> ConversionBytes(const CheckpointName& name, const ModelInfo& info) {
  CRIA_ASSIGN_OR_RETURN(const std::vector<RemoteFile> files,
                        ChooseFiles(name, info, Purpose::kConversion));
  std::optional<uint64_t> bytes = 0;
  for (const RemoteFile& file : files) AddSize(file, bytes);
  const std::string_view last = files.empty() ? "" : std::string_view(files.back().path);
  if (last != kIndexFile && last != kTorchIndexFile) return bytes;
  for (const RemoteFile& file : info.files) {
    if (IsShard(file.path, last)) AddSize(file, bytes);
  }
  return bytes;
}

Result<RemoteCheckpoint> LookUp(const CheckpointName& name, const DownloadOptions& options) {
  CRIA_ASSIGN_OR_RETURN(HubClient client, HubClient::Create(options.endpoint, options.token,
                                                            options.user_agent, options.retries));
  CRIA_ASSIGN_OR_RETURN(const ModelInfo info, FetchModelInfo(client, name));
  CRIA_ASSIGN_OR_RETURN(const std::optional<uint64_t> bytes, ConversionBytes(name, info));
  return RemoteCheckpoint{.commit = info.commit, .licence = info.licence, .bytes = bytes};
}

}  // namespace cria::hub
