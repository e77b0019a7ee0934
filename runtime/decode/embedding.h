#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "model/model_file.h"

namespace cria {

// Reads rows of the embedding table on demand. A small table is mapped, because a system call for
// each row costs a small model a fiftieth of its time per token. A large table is not, because its
// mapping would load far more pages than the rows that a conversation uses.
class EmbeddingReader {
 public:
  // The mapped bytes of the table with its scales: all of them or 0.
  static uint64_t MappedBytes(const TensorLayout& table, bool file_is_mappable);

  // `row_buffer` holds one stored row in its first half and its scales in its second half: at least
  // 8 bytes for each input channel, with the number of channels rounded up to a multiple of 32.
  static Result<EmbeddingReader> Create(const ModelFile& file, std::span<std::byte> row_buffer);

  size_t num_rows() const { return table_->layout.output_channels; }
  // Writes row `id`, [hidden_size], to `output`. `id` must be in the vocabulary.
  Status Read(int32_t id, float* output) const;

 private:
  EmbeddingReader(const ModelFile& file, std::span<std::byte> row_buffer);
  // Row `index` of the table or of its scales; it is read into `buffer` unless it is mapped.
  Result<const std::byte*> Row(const platform::FileMapping& mapping, const FileRange& table,
                               uint64_t index, std::span<std::byte> buffer) const;

  const ModelFile* file_;
  const StoredTensor* table_;
  std::span<std::byte> row_;
  std::span<std::byte> row_scales_;
  // Empty if the table is not mapped.
  platform::FileMapping data_;
  platform::FileMapping scales_;
};

}  // namespace cria
