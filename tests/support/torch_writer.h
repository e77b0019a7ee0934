#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/reference_model.h"
#include "support/safetensors_writer.h"

namespace cria::support {

struct ZipFile {
  std::string name;
  std::string bytes;
  uint16_t method = 0;  // 0: stored.
};
// A zip archive; with `is_large`, sizes and offsets are in the fields of zip64.
std::string ZipArchive(const std::vector<ZipFile>& files, bool is_large = false);

// A tensor in the table that torch.save stores.
struct TorchTensor {
  std::string name;
  std::vector<size_t> shape;
  std::vector<float> values;
};
// The table as a pickle of protocol 2: an OrderedDict with attributes.
std::string TorchPickle(const std::vector<TorchTensor>& tensors, StorageType type);

// Writes the same as torch.save.
void WriteTorchArchive(const std::vector<TorchTensor>& tensors, StorageType type,
                       const std::filesystem::path& path, bool is_large = false);

// Writes Meta's params.json and consolidated.NN.pth, split for `shards` processors like Llama 2's,
// or like Llama 3's with `has_embedding_rows`.
void WriteMetaCheckpoint(const reference::ReferenceModel& model, StorageType type, size_t shards,
                         bool has_embedding_rows, const std::filesystem::path& folder);

}  // namespace cria::support
