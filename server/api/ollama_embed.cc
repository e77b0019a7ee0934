// POST /api/embed and /api/embeddings

#include <chrono>
#include <utility>

#include "messages/json_text.h"
#include "server/api/embeddings.h"
#include "server/api/paths.h"
#include "server/api/text_answer.h"
#include "server/requests/fields.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

EmbeddingRequest ReadOllamaEmbed(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  static_cast<void>(fields.String("model"));
  EmbeddingRequest request;
  request.num_dimensions = ReadDimensions(exchange.model(), fields);
  request.truncates = fields.Bool("truncate").value_or(true);
  for (std::string& text : fields.Strings("input", kMaxEmbeddingInputs)) {
    request.inputs.push_back({.text = std::move(text)});
  }
  return request;
}

EmbeddingRequest ReadOllamaEmbeddings(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  static_cast<void>(fields.String("model"));
  EmbeddingRequest request = {.field = "prompt", .truncates = true};
  if (auto prompt = fields.String("prompt"); prompt && !prompt->empty()) {
    request.inputs.push_back({.text = std::move(*prompt)});
  }
  return request;
}

}  // namespace

// Without an input, there are no embeddings: clients load the model in this way.
void HandleOllamaEmbed(Exchange& exchange) {
  EmbeddingRequest request = ReadOllamaEmbed(exchange);
  Submit(exchange, [&](Response& response) {
    const auto begin = std::chrono::steady_clock::now();
    TextAnswer text(response);
    text.Add("{" + TextAnswer::Members({{"model", exchange.model().name}}) + R"(,"embeddings":[)");
    const size_t num_tokens = EmbedInputs(exchange, std::move(request), response,
                                          [&](size_t index, std::span<const float> numbers) {
                                            if (index > 0) text.Add(",");
                                            text.Add("[" + WriteNumbers(numbers) + "]");
                                          });
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now() - begin);
    text.Add("]," +
             TextAnswer::Members({{"total_duration", time.count()},
                                  {"load_duration", 0},
                                  {"prompt_eval_count", num_tokens}}) +
             "}");
    text.Finish();
  });
}

// The older path: one text, and no figures.
void HandleOllamaEmbeddings(Exchange& exchange) {
  EmbeddingRequest request = ReadOllamaEmbeddings(exchange);
  Submit(exchange, [&](Response& response) {
    std::string numbers = "[]";
    EmbedInputs(exchange, std::move(request), response,
                [&](size_t, std::span<const float> embedding) {
                  numbers = "[" + WriteNumbers(embedding) + "]";
                });
    TextAnswer text(response);
    text.Add(R"({"embedding":)" + numbers + "}");
    text.Finish();
  });
}

}  // namespace cria::server
