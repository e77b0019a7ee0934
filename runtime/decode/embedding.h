#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "model/model_file.h"

namespace cria {

// Reads rows of the embedding table when they are asked for. A small table is mapped, since reading
// a row by a call to the system costs a small model a fiftieth of its time per token; of a large
// one, a mapping would pull in far more pages than the rows that a conversation touches.
class EmbeddingReader {
 public:
  // How much of the table, with its scales, is mapped: all or nothing.
  static uint64_t MappedBytes(const TensorLayout& table, bool file_is_mappable);

  // `row_buffer` holds one stored row in its first half and its scales in its second: at least 8
  // bytes for each input channel, those rounded up to 32.
  static Result<EmbeddingReader> Create(const ModelFile& file, std::span<std::byte> row_buffer);

  // Writes row `id`, [hidden_size], to `output`. `id` must be inside the vocabulary.
  Status Read(int32_t id, float* output) const;

 private:
  EmbeddingReader(const ModelFile& file, std::span<std::byte> row_buffer);
  // Row `index` of the table or of its scales, read into `buffer` unless it is mapped.
  Result<const std::byte*> Row(const platform::FileMapping& mapping, const FileRange& table,
                               uint64_t index, std::span<std::byte> buffer) const;

  const ModelFile* file_;
  const StoredTensor* table_;
  std::span<std::byte> row_;
  std::span<std::byte> row_scales_;
  // Empty where the table is not mapped.
  platform::FileMapping data_;
  platform::FileMapping scales_;
};

}  // namespace cria
