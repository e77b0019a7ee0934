#include "server/api/embeddings.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "core/format.h"
#include "llm/embedding_tokens.h"
#include "llm/pooled_hidden.h"
#include "llm/text_embedder.h"
#include "server/api/shared_steps.h"
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

// The place of one of several embeddings of this size.
std::span<float> EmbeddingAt(std::span<float> embeddings, size_t index, size_t size) {
  return embeddings.subspan(index * size, size);
}

}  // namespace

size_t ReadDimensions(const ServedModel& model, const Fields& request) {
  const size_t hidden_size = model.engine.decoder().hidden_size();
  const auto count = request.Integer("dimensions", 1, static_cast<int64_t>(hidden_size));
  return static_cast<size_t>(count.value_or(0));
}

size_t EmbedInputs(Exchange& exchange, EmbeddingRequest request, Response& response,
                   const EmbeddingCallback& on_embedding) {
  const auto begin = std::chrono::steady_clock::now();
  ServedModel& model = exchange.model();
  const std::vector<std::vector<int32_t>> inputs = EncodeInputs(model.engine, request);
  response.EndTurn();
  // Each thread goes on with a further input while others run theirs, but the answer has all in
  // order: so many are embedded before the first of them is written.
  const size_t size = model.engine.decoder().hidden_size();
  const size_t num_together =
      std::max<size_t>(std::min(kHeldEmbeddingBytes / (size * sizeof(float)), inputs.size()), 1);
  std::vector<float> embeddings(num_together * size);
  AnswerEnd end = {.reason = FinishReason::kStop};
  for (size_t first = 0; first < inputs.size(); first += num_together) {
    const size_t count = std::min(num_together, inputs.size() - first);
    const auto embed = [&](size_t i) {
      TextEmbedder embedder(model.engine.scheduler());
      return embedder.Embed(inputs[first + i], {.pooling = model.engine.pooling()},
                            EmbeddingAt(embeddings, i, size), &response.gone());
    };
    ThrowIfError(RunShared(exchange.state.work, count, embed), request.field);
    for (size_t i = 0; i < count; ++i) {
      end.prompt_tokens += inputs[first + i].size();
      std::span<float> numbers = EmbeddingAt(embeddings, i, size);
      if (request.num_dimensions != 0) {
        numbers = numbers.first(request.num_dimensions);
        PooledHidden::Normalize(numbers);
      }
      on_embedding(first + i, numbers);
    }
  }
  end.prompt_time = std::chrono::steady_clock::now() - begin;
  model.metrics.Add(end);
  return end.prompt_tokens;
}

}  // namespace cria::server
