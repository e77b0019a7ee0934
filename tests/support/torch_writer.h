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
// A zip archive; with `is_large`, sizes and places stand in the fields of zip64.
std::string ZipArchive(const std::vector<ZipFile>& files, bool is_large = false);

// A tensor of a table that torch.save is given.
struct TorchTensor {
  std::string name;
  std::vector<size_t> shape;
  std::vector<float> values;
};
// Its pickle, of protocol 2: an OrderedDict with attributes.
std::string TorchPickle(const std::vector<TorchTensor>& tensors, StorageType type);

// What torch.save writes.
void WriteTorchArchive(const std::vector<TorchTensor>& tensors, StorageType type,
                       const std::filesystem::path& path, bool is_large = false);

// Meta's params.json and consolidated.NN.pth, split for `shards` processors as Llama 2's are, or,
// with `has_embedding_rows`, Llama 3's.
void WriteMetaCheckpoint(const reference::ReferenceModel& model, StorageType type, size_t shards,
                         bool has_embedding_rows, const std::filesystem::path& folder);

}  // namespace cria::support
