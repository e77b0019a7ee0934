#include "cli/embed/embedding_printer.h"

#include <algorithm>
#include <cstdio>

#include "cli/embed/vector_norm.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "messages/json_text.h"

namespace cria::cli {
namespace {

// How many numbers of each of several texts the table has, as llama-embedding's.
constexpr size_t kShownNumbers = 16;
// How many characters of a text stand beside its row of cosines, with an ellipsis.
constexpr size_t kShownCharacters = 41;

void Put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

void EmbeddingPrinter::Print(size_t index, std::span<const float> embedding) {
  if (ComparesTexts(format_) && texts_.size() > 1) {
    kept_.reserve(texts_.size() * embedding.size());
    kept_.insert(kept_.end(), embedding.begin(), embedding.end());
  }
  switch (format_) {
    case EmbeddingFormat::kTable:
      return PrintRow(index, embedding);
    case EmbeddingFormat::kRaw: {
      std::string numbers = WriteNumbers(embedding, ' ');
      return Put(numbers + '\n');
    }
    case EmbeddingFormat::kArray:
      return Put((index == 0 ? "[[" : ",\n[") + WriteNumbers(embedding) + "]");
    case EmbeddingFormat::kJson:
    case EmbeddingFormat::kJsonAndSimilarities:
      break;
  }
  Put(Format(R"({}{{"object":"embedding","index":{},"embedding":[)",
             index == 0 ? "{\"object\":\"list\",\"data\":[\n" : ",\n", index));
  Put(WriteNumbers(embedding) + "]}");
}

void EmbeddingPrinter::PrintRow(size_t index, std::span<const float> embedding) const {
  std::printf("embedding %zu:", index);
  const bool is_whole = texts_.size() == 1 || embedding.size() <= kShownNumbers;
  for (const float number : is_whole ? embedding : embedding.first(kShownNumbers)) {
    std::printf(" %9.6f", static_cast<double>(number));
  }
  std::printf(is_whole ? "\n" : " …\n");
}

void EmbeddingPrinter::Finish(std::string_view model, size_t num_tokens) {
  const bool compares = ComparesTexts(format_) && texts_.size() > 1;
  switch (format_) {
    case EmbeddingFormat::kTable:
      if (compares) PrintSimilarityTable();
      return;
    case EmbeddingFormat::kRaw:
      return;
    case EmbeddingFormat::kArray:
      return Put("]\n");
    case EmbeddingFormat::kJson:
    case EmbeddingFormat::kJsonAndSimilarities:
      break;
  }
  Put("\n]");
  if (compares) PrintSimilarityLists();
  const nlohmann::ordered_json rest = {
      {"model", model}, {"usage", {{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}}}};
  // The members of this object end the one that was begun.
  Put("," + WriteJson(rest).substr(1) + "\n");
}

double EmbeddingPrinter::Similarity(size_t a, size_t b) const {
  const size_t size = kept_.size() / texts_.size();
  const std::span<const float> all = kept_;
  return CosineSimilarity(all.subspan(a * size, size), all.subspan(b * size, size));
}

void EmbeddingPrinter::PrintSimilarityTable() const {
  std::printf("\ncosine similarity matrix:\n\n");
  for (size_t i = 0; i < texts_.size(); ++i) std::printf("%6zu ", i);
  std::printf("\n");
  for (size_t i = 0; i < texts_.size(); ++i) {
    for (size_t k = 0; k < texts_.size(); ++k) std::printf("%6.2f ", Similarity(i, k));
    Put(Format(" {}: {}\n", i, Printable(Shortened(texts_[i], kShownCharacters))));
  }
}

void EmbeddingPrinter::PrintSimilarityLists() const {
  Put(",\"cosineSimilarity\":[\n");
  for (size_t i = 0; i < texts_.size(); ++i) {
    std::vector<float> row(texts_.size());
    for (size_t k = 0; k < row.size(); ++k) row[k] = static_cast<float>(Similarity(i, k));
    Put((i == 0 ? "[" : ",\n[") + WriteNumbers(row) + "]");
  }
  Put("\n]");
}

}  // namespace cria::cli
