#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "c_api/failure.h"
#include "c_api/handles.h"
#include "c_api/texts.h"
#include "text/detokenizer.h"

namespace cria::c_api {
namespace {

Status Tokenize(const cria_model* model, const char* given, size_t text_bytes,
                const EncodeOptions& options, int32_t* tokens, size_t capacity,
                size_t* num_tokens) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(num_tokens, "num_tokens"));
  *num_tokens = 0;
  CRIA_RETURN_IF_ERROR(CheckNotNull(model, "model"));
  CRIA_ASSIGN_OR_RETURN(const std::string_view text, ReadText(given, text_bytes, "text"));
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                        model->loaded->engine->tokenizer().Encode(text, options));
  *num_tokens = ids.size();
  if (tokens == nullptr) return {};
  CRIA_RETURN_IF_ERROR(CheckCapacity(ids.size(), capacity, "tokens"));
  std::ranges::copy(ids, tokens);
  return {};
}

Status Detokenize(const cria_model* model, const int32_t* tokens, size_t num_tokens, char* text,
                  size_t capacity, size_t* text_bytes) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(text_bytes, "text_bytes"));
  *text_bytes = 0;
  CRIA_RETURN_IF_ERROR(CheckNotNull(model, "model"));
  if (num_tokens != 0) CRIA_RETURN_IF_ERROR(CheckNotNull(tokens, "tokens"));
  Detokenizer detokenizer(model->loaded->engine->tokenizer());
  std::string whole;
  for (size_t i = 0; i < num_tokens; ++i) whole += detokenizer.Append(tokens[i]);
  whole += detokenizer.Flush();
  return WriteText(whole, text, capacity, text_bytes);
}

}  // namespace
}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_tokenize(const cria_model* model, const char* text, int add_special,
                          int parse_special, int32_t* tokens, size_t capacity, size_t* num_tokens) {
  return cria_tokenize_text(model, text, CRIA_ZERO_TERMINATED, add_special, parse_special, tokens,
                            capacity, num_tokens);
}

cria_status cria_tokenize_text(const cria_model* model, const char* text, size_t text_bytes,
                               int add_special, int parse_special, int32_t* tokens, size_t capacity,
                               size_t* num_tokens) {
  const cria::EncodeOptions options = {
      .add_bos = add_special != 0 ? std::optional<bool>() : std::optional(false),
      .parse_special = parse_special != 0};
  return c_api::Guarded([&] {
    return c_api::Tokenize(model, text, text_bytes, options, tokens, capacity, num_tokens);
  });
}

cria_status cria_detokenize(const cria_model* model, const int32_t* tokens, size_t num_tokens,
                            char* text, size_t capacity, size_t* text_bytes) {
  return c_api::Guarded(
      [&] { return c_api::Detokenize(model, tokens, num_tokens, text, capacity, text_bytes); });
}
