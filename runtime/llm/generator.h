#pragma once

#include <cstdint>

#include "cria/error.h"
#include "llm/generation_options.h"
#include "llm/sampler.h"
#include "llm/turn.h"

namespace cria {

enum class StopReason : uint8_t {
  kStopToken,    // The model ended its turn, or its text matches the constraint and nothing that
                 // does so within the limits can follow.
  kMaxTokens,    // max_tokens were generated.
  kContextFull,  // The KV cache is full, and make_room made no room.
  kCancelled,
  kStopString,  // The text has a stop string; Generate itself does not look for them.
};

// Generates tokens, appends each to the context of the turn's session, and passes each except the
// stop token to `on_token`, which may end it with kCancelled. The context must not be empty.
// Allocates nothing except in callbacks.
//
// With a constraint, a token that is the only one possible is not asked of the model: it is
// appended at once, and the model runs several such tokens together. No random number is drawn
// for it.
Result<StopReason> Generate(Turn& turn, const GenerationOptions& options, Sampler& sampler,
                            const TokenCallback& on_token);
// Generates in a turn of its own.
Result<StopReason> Generate(Session& session, const GenerationOptions& options, Sampler& sampler,
                            const TokenCallback& on_token);

}  // namespace cria
