#include "server/api/embeddings.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "core/format.h"
#include "llm/embedding_tokens.h"
#include "llm/pooled_hidden.h"
#include "llm/text_embedder.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

// Moves each input out of the request, so that its text is freed when it has become tokens.
std::vector<std::vector<int32_t>> EncodeInputs(const Engine& engine, EmbeddingRequest& request) {
  const size_t context = engine.decoder().context_tokens();
  const std::string field = request.field;
  std::vector<std::vector<int32_t>> encoded;
  encoded.reserve(request.inputs.size());
  size_t num_tokens = 0;
  for (PromptText& given : request.inputs) {
    PromptText input = std::move(given);
    std::vector<int32_t> tokens = std::move(input.tokens);
    if (tokens.empty()) {
      tokens = ValueOf(EmbeddingTokens(engine, input.text, request.truncates), field);
    } else if (tokens.size() > context) {
      if (!request.truncates) {
        RefuseField(field,
                    Format("has {} tokens, but the context holds {}", tokens.size(), context),
                    "context_length_exceeded");
      }
      tokens.resize(context);
    }
    if (tokens.empty()) RefuseField(field, "is empty: there is nothing to embed");
    num_tokens += tokens.size();
    if (num_tokens > std::max(kMaxEmbeddingTokens, context)) {
      RefuseField(field,
                  Format("has texts with more than {} tokens together", kMaxEmbeddingTokens));
    }
    tokens.shrink_to_fit();
    encoded.push_back(std::move(tokens));
  }
  return encoded;
}

}  // namespace

size_t ReadDimensions(const ServedModel& model, const Fields& request) {
  const size_t hidden_size = model.engine.decoder().hidden_size();
  const auto count = request.Integer("dimensions", 1, static_cast<int64_t>(hidden_size));
  return static_cast<size_t>(count.value_or(0));
}

size_t EmbedInputs(ServedModel& model, EmbeddingRequest request, Response& response,
                   const EmbeddingCallback& on_embedding) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::vector<int32_t>> inputs = EncodeInputs(model.engine, request);
  response.EndTurn();
  TextEmbedder embedder(model.engine.scheduler());
  std::vector<float> embedding(model.engine.decoder().hidden_size());
  AnswerEnd end = {.reason = FinishReason::kStop};
  for (size_t i = 0; i < inputs.size(); ++i) {
    ThrowIfError(
        embedder.Embed(inputs[i], {.pooling = model.engine.pooling()}, embedding, &response.gone()),
        request.field);
    end.prompt_tokens += inputs[i].size();
    std::span<float> numbers = embedding;
    if (request.num_dimensions != 0) {
      numbers = numbers.first(request.num_dimensions);
      PooledHidden::Normalize(numbers);
    }
    on_embedding(i, numbers);
  }
  end.prompt_time = std::chrono::steady_clock::now() - begin;
  model.metrics.Add(end);
  return end.prompt_tokens;
}

}  // namespace cria::server
