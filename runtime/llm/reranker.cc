#include "llm/reranker.h"

#include <cmath>
#include <cstddef>

#include "llm/text_embedder.h"
#include "model/reranking.h"

namespace cria {
namespace {

// Adds the text before `place`, and `text` in the place; `prompt` becomes the rest.
void AddUpTo(std::string_view place, std::string_view text, std::string_view& prompt,
             std::vector<TextSegment>& segments) {
  const size_t at = prompt.find(place);
  segments.push_back({.text = prompt.substr(0, at), .parse_special = true});
  segments.push_back({.text = text});
  prompt.remove_prefix(at + place.size());
}

}  // namespace

Result<std::vector<int32_t>> RerankTokens(const Engine& engine, std::string_view query,
                                          std::string_view document) {
  std::string_view prompt = engine.file().reranking()->prompt;
  std::vector<TextSegment> segments;
  segments.reserve(5);
  if (prompt.find(kQueryPlace) < prompt.find(kDocumentPlace)) {
    AddUpTo(kQueryPlace, query, prompt, segments);
    AddUpTo(kDocumentPlace, document, prompt, segments);
  } else {
    AddUpTo(kDocumentPlace, document, prompt, segments);
    AddUpTo(kQueryPlace, query, prompt, segments);
  }
  segments.push_back({.text = prompt, .parse_special = true});
  return engine.tokenizer().EncodeSegments(segments, /*add_bos=*/{},
                                           engine.decoder().context_tokens());
}

Result<double> RerankScore(Engine& engine, std::span<const int32_t> tokens,
                           const std::atomic<bool>* cancel) {
  std::vector<float> hidden(engine.decoder().hidden_size());
  TextEmbedder embedder(engine.scheduler());
  CRIA_RETURN_IF_ERROR(
      embedder.Embed(tokens, {.pooling = Pooling::kLast, .is_normalized = false}, hidden, cancel));
  const std::span<const float> weight = engine.file().reranking()->weight;
  double logit = 0.0;
  for (size_t i = 0; i < hidden.size(); ++i) logit += double{weight[i]} * hidden[i];
  return 1.0 / (1.0 + std::exp(-logit));
}

}  // namespace cria
