#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/eval/base_distribution.h"
#include "core/output_file.h"
#include "core/platform.h"
#include "cria/error.h"
#include "model/checksum.h"

namespace cria::cli {

// What a file of saved logits is of.
struct SavedLogitsOf {
  std::vector<int32_t> tokens;  // The text.
  int32_t bos_token_id = -1;
  uint32_t window_tokens = 0;
  uint32_t vocab_size = 0;
  // How many of the most likely tokens are kept for each position; 0: all of the vocabulary.
  uint32_t kept_tokens = 0;

  // Each token but the first one of a text without BOS is predicted.
  size_t num_predictions() const { return tokens.size() - (bos_token_id < 0 ? 1 : 0); }
  uint64_t row_bytes() const;
  uint64_t file_bytes() const;
};

// Writes logarithms of probabilities as f16, position after position.
class SavedLogitsWriter {
 public:
  // Reserves the file.
  static Result<SavedLogitsWriter> Create(const std::string& path, SavedLogitsOf of);
  // Adds the next position. `log_sum` is LogSumExp(logits).
  Status Add(std::span<const float> logits, double log_sum, float negative_log_likelihood);
  // Call it after the last position: before, there is no file.
  Status Commit() { return file_.Commit(); }

 private:
  SavedLogitsWriter(OutputFile file, SavedLogitsOf of);

  OutputFile file_;
  SavedLogitsOf of_;
  uint64_t offset_;
  std::vector<uint32_t> order_;
  std::vector<float> log_probabilities_;
  std::vector<std::byte> row_;
};

// A base model's predictions that SavedLogitsWriter wrote.
class SavedLogits {
 public:
  // Fails with kInvalidFile if it is no such file or is damaged.
  static Result<SavedLogits> Open(const std::string& path);

  const SavedLogitsOf& of() const { return of_; }
  // Identifies the beginning of the file and its length.
  const Digest& digest() const { return digest_; }
  // The distribution at a position, which is valid until the next call, and the negative
  // log-likelihood of the text's token there.
  struct Row {
    BaseDistribution distribution;
    float negative_log_likelihood = 0.0f;
  };
  Result<Row> Read(size_t position);

 private:
  SavedLogits(platform::File file, SavedLogitsOf of, Digest digest);

  platform::File file_;
  SavedLogitsOf of_;
  Digest digest_;
  std::vector<std::byte> row_;
  std::vector<uint32_t> tokens_;
  std::vector<float> log_probabilities_;
};

}  // namespace cria::cli
