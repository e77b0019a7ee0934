#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cria::cli {

// The values of llama.cpp's --embd-output-format.
enum class EmbeddingFormat : uint8_t {
  kTable,                // A line for each text, and of several texts, the cosines of all pairs.
  kArray,                // A list of lists in JSON.
  kJson,                 // What OpenAI's path answers.
  kJsonAndSimilarities,  // OpenAI's form, and the cosines of all pairs.
  kRaw,                  // A line of numbers for each text.
};

// Prints embeddings on standard output while they are computed.
class EmbeddingPrinter {
 public:
  // The texts must outlive the object.
  EmbeddingPrinter(EmbeddingFormat format, std::span<const std::string_view> texts)
      : format_(format), texts_(texts) {}

  // A table of the cosines of more texts would fill screens and memory with its pairs.
  static constexpr size_t kMaxComparedTexts = 1000;
  // Whether cosines are printed, so that embeddings are kept until the end.
  static bool ComparesTexts(EmbeddingFormat format) {
    return format == EmbeddingFormat::kTable || format == EmbeddingFormat::kJsonAndSimilarities;
  }

  // Texts come in their order.
  void Print(size_t index, std::span<const float> embedding);
  // Prints what follows the last embedding. `model` is the model's name, and `num_tokens` the
  // number of tokens of all texts.
  void Finish(std::string_view model, size_t num_tokens);

 private:
  void PrintRow(size_t index, std::span<const float> embedding) const;
  double Similarity(size_t a, size_t b) const;
  void PrintSimilarityTable() const;
  void PrintSimilarityLists() const;

  const EmbeddingFormat format_;
  const std::span<const std::string_view> texts_;
  std::vector<float> kept_;  // [number of texts, hidden_size], if texts are compared.
};

}  // namespace cria::cli
