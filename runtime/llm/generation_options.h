#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "cria/error.h"
#include "llm/turn.h"

namespace cria {

class Constraint;
class StopStrings;

struct GeneratedToken {
  int32_t id;
  // The natural logarithm of the probability that the model gives the token, before all steps of
  // the sampler; 0 if GenerationOptions does not ask for it, or if the constraint gave no choice.
  double log_probability;
};

// Returns whether to go on.
using TokenCallback = std::function<bool(const GeneratedToken&)>;

struct GenerationOptions {
  size_t max_tokens = 0;  // 0: no limit.
  std::span<const int32_t> stop_token_ids;
  // What the text must match, from where the constraint is; null: there is no constraint. Stop
  // tokens are then chosen only where the text may end. If the end of a text must come within
  // max_tokens or the context, the constraint leads there.
  Constraint* constraint = nullptr;
  const std::atomic<bool>* cancel = nullptr;  // Checked before every token.
  // Log-probabilities take one exponential for each token of the vocabulary.
  bool log_probabilities = false;
  // Called for each token that is chosen, before on_token, with its place in the context and the
  // logits, [vocab_size], that it was chosen from. No session goes on until it returns. A token
  // that is chosen ahead may not come, if the text ends before.
  std::function<void(size_t position, std::span<const float> logits)> on_logits;
  // Called when a token is to be added and the context is full; all of it is in the cache. It makes
  // room with Drop, DropHalfBehind or Prefill of the turn; if it fails, the generation ends with
  // its error. If it is not set or makes no room, the token is the last one and the reason is
  // kContextFull.
  std::function<Status(Turn& turn)> make_room;

  // Complete, GenerateText and Conversation use these; Generate does not.
  PromptCallback on_prompt;
  // Called for each token with its part of the text, before stop strings are looked for. The text
  // ends with a whole character and may be empty.
  std::function<void(const GeneratedToken& token, std::string_view text)> on_token_text;
  StopStrings* stop_strings = nullptr;

  bool is_cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
  // The turn in which a text with these options is generated.
  TurnOptions turn_options() const { return {.max_tokens = max_tokens, .cancel = cancel}; }
};

}  // namespace cria
