#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "model/model_file.h"

namespace cria {

// Reads rows of the embedding table, or of another table with some rows for each token, on demand.
// A small table is mapped, because a system call for each row costs a small model a fiftieth of its
// time per token. A large table is not, because its mapping would load far more pages than the rows
// that a conversation uses.
class EmbeddingReader {
 public:
  // The mapped bytes of the table with its scales: all of them or 0.
  static uint64_t MappedBytes(const TensorLayout& table, bool file_is_mappable);

  // What Create needs for `rows` rows of a token, each of `channels`.
  static uint64_t BufferBytes(size_t rows, size_t channels);
  // `row_buffer` holds the stored rows of one token in its first half and their scales in its
  // second half: at least 8 bytes for each input channel, with the number of channels rounded up to
  // a multiple of 32. A token has `token_rows` rows of the table, one behind another.
  static Result<EmbeddingReader> Create(const ModelFile& file, std::span<std::byte> row_buffer,
                                        TensorRole table = TensorRole::kEmbedTokens,
                                        size_t token_rows = 1);

  size_t num_tokens() const { return table_->layout.output_channels / token_rows_; }
  // Writes the rows of token `id`, [token_rows][channels], to `output`. `id` must be in the
  // vocabulary.
  Status Read(int32_t id, float* output) const;

 private:
  EmbeddingReader(const ModelFile& file, std::span<std::byte> row_buffer, TensorRole table,
                  size_t token_rows);
  // The rows of a token in the table or in its scales; they are read into `buffer` unless they are
  // mapped.
  Result<const std::byte*> Rows(const platform::FileMapping& mapping, const FileRange& table,
                                uint64_t token, std::span<std::byte> buffer) const;
  // Writes a row as numbers.
  void Dequantize(const std::byte* row, const std::byte* scales, float* output) const;

  const ModelFile* file_;
  const StoredTensor* table_;
  size_t token_rows_;
  std::span<std::byte> rows_;
  std::span<std::byte> row_scales_;
  // Empty if the table is not mapped.
  platform::FileMapping data_;
  platform::FileMapping scales_;
};

}  // namespace cria
