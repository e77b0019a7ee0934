// POST /v1/embeddings

#include <utility>

#include "messages/json_text.h"
#include "server/api/embeddings.h"
#include "server/api/paths.h"
#include "server/api/text_answer.h"
#include "server/requests/request_error.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

struct EmbeddingsBody {
  EmbeddingRequest request;
  bool is_base64 = false;
};

EmbeddingsBody ReadEmbeddings(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  RefuseUnsupportedInEmbeddings(fields);
  static_cast<void>(fields.String("model"));
  const size_t vocab_size = exchange.model().engine.decoder().vocab_size();
  EmbeddingsBody read;
  read.request.inputs = ReadPrompts(fields, vocab_size, {"input", kMaxEmbeddingInputs});
  read.request.num_dimensions = ReadDimensions(exchange.model(), fields);
  const std::string format = fields.String("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    RefuseField("encoding_format", R"(is neither "float" nor "base64")");
  }
  read.is_base64 = format == "base64";
  return read;
}

// Little-endian floats in base64 (RFC 4648).
std::string Base64Text(std::span<const float> numbers) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto bytes = std::as_bytes(numbers);
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace

void HandleOpenAiEmbeddings(Exchange& exchange) {
  EmbeddingsBody body = ReadEmbeddings(exchange);
  Submit(exchange, [&](Response& response) {
    TextAnswer text(response);
    text.Add(R"({"object":"list","data":[)");
    const size_t num_tokens =
        EmbedInputs(exchange, std::move(body.request), response,
                    [&](size_t index, std::span<const float> numbers) {
                      text.Add(index > 0 ? ",{" : "{");
                      text.Add(TextAnswer::Members({{"object", "embedding"}, {"index", index}}));
                      text.Add(R"(,"embedding":)");
                      text.Add(body.is_base64 ? "\"" + Base64Text(numbers) + "\""
                                              : "[" + WriteNumbers(numbers) + "]");
                      text.Add("}");
                    });
    text.Add("]," +
             TextAnswer::Members(
                 {{"model", exchange.model().name},
                  {"usage", {{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}}}}) +
             "}");
    text.Finish();
  });
}

}  // namespace cria::server
