#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "model/model_file.h"

namespace cria {

// Reads rows of the embedding table from the file when they are asked for. A mapping would pull in
// far more pages than the rows that a conversation touches.
class EmbeddingReader {
 public:
  // `row_buffer` holds one stored row in its first half and its scales in its second: at least 8
  // bytes for each input channel, those rounded up to 32.
  EmbeddingReader(const ModelFile& file, std::span<std::byte> row_buffer);

  // Writes row `id`, [hidden_size], to `output`. `id` must be inside the vocabulary.
  Status Read(int32_t id, float* output) const;

 private:
  const ModelFile& file_;
  const StoredTensor& table_;
  std::span<std::byte> row_;
  std::span<std::byte> row_scales_;
};

}  // namespace cria
