#include <vector>

#include "c_api/answer.h"
#include "c_api/failure.h"
#include "c_api/logits.h"
#include "c_api/texts.h"
#include "llm/completion.h"

namespace cria::c_api {
namespace {

Status Complete(cria_model* handle, const char* given_prompt, size_t prompt_bytes,
                const cria_generation_options* given, const cria_callbacks* callbacks,
                cria_result* result) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(handle, "model"));
  CRIA_ASSIGN_OR_RETURN(const std::string_view prompt,
                        ReadText(given_prompt, prompt_bytes, "prompt"));
  CRIA_RETURN_IF_ERROR(CheckResult(result));
  LoadedModel& model = *handle->loaded;
  CRIA_ASSIGN_OR_RETURN(const cria_callbacks known, ReadCallbacks(callbacks));
  CRIA_ASSIGN_OR_RETURN(Generation generation, MakeGeneration(model, given));
  ModelUse use;
  CRIA_RETURN_IF_ERROR(use.Begin(model));
  CRIA_ASSIGN_OR_RETURN(const ConstraintUse constraint, ConstraintUse::Begin(model, generation));
  const std::unique_ptr<Session> session = model.engine->NewSession();
  Answer answer(model, *session, known, /*chat=*/nullptr);
  CRIA_ASSIGN_OR_RETURN(
      const StopReason reason,
      cria::Complete(*session, model.engine->tokenizer(), generation.sampler, prompt,
                     {.generation = answer.Options(&generation, constraint.get()),
                      .parse_special = generation.parse_special,
                      .when_full = generation.when_full,
                      .keep_tokens = generation.keep_tokens},
                     answer.Receiver()));
  return answer.Finish(reason, result);
}

Status GetLogits(cria_model* handle, const char* given_prompt, size_t prompt_bytes,
                 bool parse_special, const cria_callbacks* callbacks, const LogitBuffer& buffer) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(handle, "model"));
  CRIA_ASSIGN_OR_RETURN(const std::string_view prompt,
                        ReadText(given_prompt, prompt_bytes, "prompt"));
  LoadedModel& model = *handle->loaded;
  CRIA_ASSIGN_OR_RETURN(const cria_callbacks known, ReadCallbacks(callbacks));
  CRIA_ASSIGN_OR_RETURN(const bool is_wanted, buffer.Prepare(model));
  if (!is_wanted) return {};
  ModelUse use;
  CRIA_RETURN_IF_ERROR(use.Begin(model));
  const std::unique_ptr<Session> session = model.engine->NewSession();
  CRIA_ASSIGN_OR_RETURN(
      const std::vector<int32_t> tokens,
      model.engine->tokenizer().Encode(
          prompt, {.parse_special = parse_special, .max_tokens = session->context_tokens()}));
  Answer reading(model, *session, known, /*chat=*/nullptr);
  const GenerationOptions options = reading.Options(nullptr);
  Turn turn(*session, {.cancel = options.cancel});
  CRIA_RETURN_IF_ERROR(turn.Prefill(tokens, options.on_prompt));
  CRIA_ASSIGN_OR_RETURN(const LogitRows logits, turn.Logits());
  buffer.Fill(logits.front());
  return {};
}

}  // namespace
}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_complete(cria_model* model, const char* prompt,
                          const cria_generation_options* options, cria_text_callback on_text,
                          void* data, cria_result* result) {
  cria_callbacks callbacks = CRIA_CALLBACKS_INIT;
  callbacks.on_text = on_text;
  callbacks.data = data;
  return cria_complete_text(model, prompt, CRIA_ZERO_TERMINATED, options, &callbacks, result);
}

cria_status cria_complete_text(cria_model* model, const char* prompt, size_t prompt_bytes,
                               const cria_generation_options* options,
                               const cria_callbacks* callbacks, cria_result* result) {
  return c_api::Guarded(
      [&] { return c_api::Complete(model, prompt, prompt_bytes, options, callbacks, result); });
}

cria_status cria_get_logits(cria_model* model, const char* prompt, size_t prompt_bytes,
                            int parse_special, const cria_callbacks* callbacks, float* logits,
                            size_t capacity, size_t* num_logits) {
  return c_api::Guarded([&] {
    return c_api::GetLogits(model, prompt, prompt_bytes, parse_special != 0, callbacks,
                            {logits, capacity, num_logits});
  });
}
