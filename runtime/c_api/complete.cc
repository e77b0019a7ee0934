#include <format>
#include <vector>

#include "c_api/answer.h"
#include "c_api/failure.h"

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

  Session& session = model.engine->session();
  const Tokenizer& tokenizer = model.engine->tokenizer();
  const bool shifts = WhenFullOf(options) == WhenFull::kShift;
  if (shifts && options.keep_tokens >= session.context_tokens()) {
    return Fail(ErrorCode::kUsage,
                std::format("keep_tokens is {}, which leaves nothing to drop of a context of {}",
                            options.keep_tokens, session.context_tokens()));
  }
  Answer answer(model, on_text, data, /*context_used=*/nullptr);
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        tokenizer.Encode(prompt, {.parse_special = options.parse_special != 0,
                                                  .max_tokens = session.context_tokens()}));
  CRIA_RETURN_IF_ERROR(session.Prefill(tokens, &model.cancel));
  GenerationOptions generation = answer.Options(options.max_tokens);
  if (shifts) {
    generation.make_room = [&] { return session.DropHalfBehind(options.keep_tokens); };
  }
  Detokenizer detokenizer(tokenizer, {.at_text_start = *prompt == '\0'});
  CRIA_ASSIGN_OR_RETURN(const StopReason reason,
                        GenerateText(session, detokenizer, sampler, generation, answer.Receiver()));
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
