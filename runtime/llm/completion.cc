#include "llm/completion.h"

#include <format>
#include <vector>

namespace cria {
namespace {

// How many tokens of the beginning a shift keeps, for a prompt of `prompt_tokens`.
Result<size_t> KeepTokens(const CompletionOptions& options, size_t prompt_tokens,
                          size_t context_tokens) {
  const bool keeps_prompt = options.keep_tokens == CompletionOptions::kKeepPrompt;
  const size_t keep = keeps_prompt ? prompt_tokens : options.keep_tokens;
  // Session::Prefill refuses a prompt that does not fit, with a better sentence.
  if (keep < context_tokens || prompt_tokens > context_tokens) return keep;
  return Fail(ErrorCode::kUsage,
              std::format("a shift that keeps {} tokens leaves none to drop in a context of {}",
                          keep, context_tokens),
              RemedyKind::kKeepLess);
}

}  // namespace

Result<StopReason> GenerateText(Session& session, Detokenizer& detokenizer, Sampler& sampler,
                                const GenerationOptions& options, const TextCallback& on_text) {
  const auto emit = [&](std::string_view text) {
    if (!text.empty()) on_text(text);
  };
  CRIA_ASSIGN_OR_RETURN(
      const StopReason reason,
      session.Generate(options, sampler, [&](int32_t id) { emit(detokenizer.Append(id)); }));
  emit(detokenizer.Flush());
  return reason;
}

Result<StopReason> Complete(Session& session, const Tokenizer& tokenizer, Sampler& sampler,
                            std::string_view prompt, const CompletionOptions& options,
                            const TextCallback& on_text) {
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        tokenizer.Encode(prompt, {.parse_special = options.parse_special,
                                                  .max_tokens = session.context_tokens()}));
  GenerationOptions generation = options.generation;
  if (options.when_full == WhenFull::kShift) {
    CRIA_ASSIGN_OR_RETURN(const size_t keep_tokens,
                          KeepTokens(options, tokens.size(), session.context_tokens()));
    generation.make_room = [&session, keep_tokens] { return session.DropHalfBehind(keep_tokens); };
  }
  CRIA_RETURN_IF_ERROR(session.Prefill(tokens, generation.cancel));
  if (options.on_prompt_read) options.on_prompt_read();
  Detokenizer detokenizer(tokenizer, {.at_text_start = prompt.empty()});
  return GenerateText(session, detokenizer, sampler, generation, on_text);
}

}  // namespace cria
