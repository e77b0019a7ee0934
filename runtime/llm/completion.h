#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "cria/error.h"
#include "llm/generator.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "llm/text_output.h"
#include "llm/turn.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace cria {

// Generates from the context of the turn's session and turns tokens into text on the way.
// `detokenizer` must be in the state that follows the text so far. The text ends before a stop
// string of `options.stop_strings`, whose tokens stay in the context.
Result<StopReason> GenerateText(Turn& turn, Detokenizer& detokenizer, Sampler& sampler,
                                const GenerationOptions& options, const TextCallback& on_text);

// What happens to a text that becomes longer than the context.
enum class WhenFull : uint8_t {
  kStop,   // The text ends there.
  kShift,  // The oldest part is dropped, and the text goes on.
  // In a conversation, the oldest turns are dropped; an answer that fills the context by itself
  // ends there, so that every answer has an end. For other texts, the same as kStop.
  kForget,
};

struct CompletionOptions {
  static constexpr size_t kKeepPrompt = SIZE_MAX;

  GenerationOptions generation;  // With kShift, make_room is the completion's own.
  // Whether control tokens are recognized in the prompt where they are written out.
  bool parse_special = true;
  WhenFull when_full = WhenFull::kStop;
  // With kShift: how many tokens at the beginning are never dropped; kKeepPrompt: the prompt's.
  size_t keep_tokens = 4;
  // Called when the prompt has been read, before the first text.
  std::function<void()> on_prompt_read;
};

// Reads `prompt` and goes on from it, handing the text to `on_text`. What the session's cache holds
// of the prompt's beginning is not run again. On an error, what was already handed over stays in
// the session.
Result<StopReason> Complete(Session& session, const Tokenizer& tokenizer, Sampler& sampler,
                            std::string_view prompt, const CompletionOptions& options,
                            const TextCallback& on_text);

// Completes the tokens of a prompt; `at_text_start`: their text is empty.
Result<StopReason> CompleteTokens(Session& session, const Tokenizer& tokenizer, Sampler& sampler,
                                  std::span<const int32_t> prompt, bool at_text_start,
                                  const CompletionOptions& options, const TextCallback& on_text);

}  // namespace cria
