#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cria/error.h"
#include "decode/token_model.h"
#include "llm/sampler.h"

namespace cria {

enum class StopReason : uint8_t {
  kStopToken,    // The model ended its turn.
  kMaxTokens,    // As many tokens as were asked for.
  kContextFull,  // The KV cache has no place for another token, and none was made.
  kCancelled,
};

// What was done since the session began or the figures were reset.
struct SessionStats {
  using Duration = std::chrono::steady_clock::duration;
  size_t prompt_tokens = 0;  // Run through the model in prefill; reused tokens are not among them.
  size_t reused_tokens = 0;  // Found in the cache by the last Prefill.
  Duration prompt_time = {};
  size_t generated_tokens = 0;  // Handed to on_token.
  size_t decoded_tokens = 0;    // Single steps of the model.
  Duration decode_time = {};    // Sampling and the callback are not in it; dropping tokens is.
  size_t dropped_tokens = 0;    // By Drop and DropHalfBehind.
};

struct GenerationOptions {
  size_t max_tokens = 0;  // 0 sets no limit.
  std::span<const int32_t> stop_token_ids;
  const std::atomic<bool>* cancel = nullptr;  // Looked at before every token.
  // Called when there is a token to add and the context, all of it in the cache, is full. It makes
  // room with Drop, DropHalfBehind or Prefill, and its errors end the generation. Where it is unset
  // or makes no room, the token is the last one and the reason kContextFull.
  std::function<Status()> make_room;
};

// A context of tokens in a model's KV cache, and what comes next.
class Session {
 public:
  // `model` must outlive the session.
  explicit Session(TokenModel& model);

  // Makes `tokens` the context. What the cache already holds of their beginning is kept and only
  // the rest is run, in chunks. Fails, changing nothing, where they do not fit; stops with
  // kCancelled between chunks.
  Status Prefill(std::span<const int32_t> tokens, const std::atomic<bool>* cancel = nullptr);

  // Chooses tokens one after another, each appended to the context, and hands every one but the
  // stop token to `on_token`. Needs a context. Allocates nothing but what the callbacks do.
  Result<StopReason> Generate(const GenerationOptions& options, Sampler& sampler,
                              const std::function<void(int32_t)>& on_token);

  // Takes tokens [first, first + count) out of the context and the cache. What lies behind them
  // stays as it was computed, with them in sight, and moves down: nothing is run again for it.
  // Allocates nothing.
  Status Drop(size_t first, size_t count);
  // Keeps the first `keep_tokens` and drops the older half of the others, at least one. The first
  // tokens of a text gather attention that belongs nowhere else, so that a model goes wrong without
  // any of them (attention sinks, Xiao et al. 2023); four are enough.
  Status DropHalfBehind(size_t keep_tokens);

  // The context so far. The last token generated may still be missing from the cache.
  std::span<const int32_t> tokens() const { return tokens_; }
  size_t context_tokens() const { return model_.context_tokens(); }
  void Clear();

  const SessionStats& stats() const { return stats_; }
  void ResetStats() { stats_ = {}; }

 private:
  Status DropCached(size_t first, size_t count);
  Status RunTo(size_t end, const std::atomic<bool>* cancel);

  TokenModel& model_;
  std::vector<int32_t> tokens_;  // Capacity for the whole context.
  size_t cached_ = 0;            // Of tokens_, how many are in the KV cache.
  size_t last_rows_ = 0;         // Of the last Forward.
  // After how many of tokens_ the last Forward ended; 0 where it failed.
  size_t logits_end_ = 0;
  SessionStats stats_;
};

}  // namespace cria
