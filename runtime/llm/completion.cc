#include "llm/completion.h"

#include <vector>

#include "core/format.h"
#include "llm/constraint.h"

namespace cria {
namespace {

// How many tokens of the beginning a shift keeps, for a prompt of `prompt_tokens`.
Result<size_t> KeepTokens(const CompletionOptions& options, size_t prompt_tokens,
                          size_t context_tokens) {
  const bool keeps_prompt = options.keep_tokens == CompletionOptions::kKeepPrompt;
  const size_t keep = keeps_prompt ? prompt_tokens : options.keep_tokens;
  // Turn::Prefill refuses a prompt that does not fit, with a better sentence.
  if (keep < context_tokens || prompt_tokens > context_tokens) return keep;
  return Fail(ErrorCode::kUsage,
              Format("a shift that keeps {} tokens leaves none to drop in a context of {}", keep,
                     context_tokens),
              RemedyKind::kKeepLess);
}

}  // namespace

Result<StopReason> GenerateText(Turn& turn, Detokenizer& detokenizer, Sampler& sampler,
                                const GenerationOptions& options, const TextCallback& on_text) {
  TextOutput output(detokenizer, options.stop_strings, on_text);
  const auto on_token = [&](const GeneratedToken& token) {
    const std::string_view text = output.TextOf(token.id);
    if (options.on_token_text) options.on_token_text(token, text);
    output.Write(text);
    return !output.has_stop_string();
  };
  CRIA_ASSIGN_OR_RETURN(const StopReason reason, Generate(turn, options, sampler, on_token));
  output.End();
  return output.has_stop_string() ? StopReason::kStopString : reason;
}

Result<StopReason> Complete(Session& session, const Tokenizer& tokenizer, Sampler& sampler,
                            std::string_view prompt, const CompletionOptions& options,
                            const TextCallback& on_text) {
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        tokenizer.Encode(prompt, {.parse_special = options.parse_special,
                                                  .max_tokens = session.context_tokens()}));
  return CompleteTokens(session, tokenizer, sampler, tokens, prompt.empty(), options, on_text);
}

Result<StopReason> CompleteTokens(Session& session, const Tokenizer& tokenizer, Sampler& sampler,
                                  std::span<const int32_t> prompt, bool at_text_start,
                                  const CompletionOptions& options, const TextCallback& on_text) {
  GenerationOptions generation = options.generation;
  TurnOptions turn_options = generation.turn_options();
  if (options.when_full == WhenFull::kShift) {
    CRIA_ASSIGN_OR_RETURN(const size_t keep_tokens,
                          KeepTokens(options, prompt.size(), session.context_tokens()));
    generation.make_room = [keep_tokens](Turn& turn) { return turn.DropHalfBehind(keep_tokens); };
    turn_options.kept_tokens = keep_tokens;
  }
  Turn turn(session, turn_options);
  CRIA_RETURN_IF_ERROR(turn.Prefill(prompt, generation.on_prompt));
  if (options.on_prompt_read) options.on_prompt_read();
  if (generation.constraint != nullptr) generation.constraint->Restart();
  // A constraint is about all bytes of the tokens, the first space included.
  Detokenizer detokenizer(tokenizer,
                          {.at_text_start = at_text_start && generation.constraint == nullptr});
  return GenerateText(turn, detokenizer, sampler, generation, on_text);
}

}  // namespace cria
