#include <vector>

#include "c_api/answer.h"
#include "c_api/failure.h"
#include "c_api/texts.h"
#include "llm/embedding_tokens.h"
#include "llm/text_embedder.h"

namespace cria::c_api {
namespace {

Status Embed(cria_model* handle, const char* given, size_t text_bytes,
             const cria_callbacks* callbacks, float* embedding, size_t capacity,
             size_t* num_dimensions) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(handle, "model"));
  CRIA_RETURN_IF_ERROR(CheckNotNull(num_dimensions, "num_dimensions"));
  CRIA_ASSIGN_OR_RETURN(const std::string_view text, ReadText(given, text_bytes, "text"));
  LoadedModel& model = *handle->loaded;
  Engine& engine = *model.engine;
  CRIA_ASSIGN_OR_RETURN(const cria_callbacks known, ReadCallbacks(callbacks));
  *num_dimensions = engine.decoder().hidden_size();
  if (embedding == nullptr) return {};
  CRIA_RETURN_IF_ERROR(CheckCapacity(*num_dimensions, capacity, "numbers"));
  ModelUse use;
  CRIA_RETURN_IF_ERROR(use.Begin(model));
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, EmbeddingTokens(engine, text));
  const std::unique_ptr<Session> session = engine.NewSession(/*with_drafts=*/false);
  Answer reading(model, *session, known, /*chat=*/nullptr);
  const GenerationOptions options = reading.Options(nullptr);
  TextEmbedder embedder(engine.scheduler());
  return embedder.Embed(tokens, {.pooling = engine.pooling()}, {embedding, *num_dimensions},
                        options.cancel, options.on_prompt);
}

}  // namespace
}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_embed(cria_model* model, const char* text, size_t text_bytes,
                       const cria_callbacks* callbacks, float* embedding, size_t capacity,
                       size_t* num_dimensions) {
  return c_api::Guarded([&] {
    return c_api::Embed(model, text, text_bytes, callbacks, embedding, capacity, num_dimensions);
  });
}
