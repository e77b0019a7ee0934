#include "c_api/answer.h"
#include "c_api/failure.h"
#include "llm/completion.h"

namespace cria::c_api {
namespace {

Status Complete(cria_model* handle, const char* prompt, const cria_generation_options* given,
                cria_text_callback on_text, void* data, cria_result* result) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(handle, "model"));
  CRIA_RETURN_IF_ERROR(CheckNotNull(prompt, "prompt"));
  CRIA_RETURN_IF_ERROR(CheckResult(result));
  LoadedModel& model = *handle->loaded;
  CRIA_ASSIGN_OR_RETURN(const cria_generation_options options, ReadGenerationOptions(given));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler, MakeSampler(model, options));
  CRIA_ASSIGN_OR_RETURN(const ModelUse use, ModelUse::Begin(model));

  Answer answer(model, on_text, data, /*context_used=*/nullptr);
  CRIA_ASSIGN_OR_RETURN(
      const StopReason reason,
      cria::Complete(model.engine->session(), model.engine->tokenizer(), sampler, prompt,
                     {.generation = answer.Options(options.max_tokens),
                      .parse_special = options.parse_special != 0,
                      .when_full = WhenFullOf(options),
                      .keep_tokens = options.keep_tokens},
                     answer.Receiver()));
  return answer.Finish(reason, result);
}

}  // namespace
}  // namespace cria::c_api

cria_status cria_complete(cria_model* model, const char* prompt,
                          const cria_generation_options* options, cria_text_callback on_text,
                          void* data, cria_result* result) {
  namespace c_api = cria::c_api;
  return c_api::Guarded(
      [&] { return c_api::Complete(model, prompt, options, on_text, data, result); });
}
