#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cria/error.h"
#include "llm/logit_rows.h"
#include "llm/session.h"

namespace cria {

struct TurnOptions {
  size_t max_tokens = 0;  // How many tokens are going to be generated; 0: no limit.
  // Tokens behind these may be dropped to make room.
  size_t kept_tokens = SIZE_MAX;
  // Checked while the turn waits for others, and between chunks of a prompt; ends these with
  // kCancelled.
  const std::atomic<bool>* cancel = nullptr;

  bool is_cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

// Called before a prompt is read, when the cache holds `done_tokens` of its `total_tokens`, and
// after every chunk. Returns whether to go on.
using PromptCallback = std::function<bool(size_t done_tokens, size_t total_tokens)>;

// What logits a turn is asked for.
struct LogitRequest {
  // Tokens that could follow the context. The logits behind the first ones are computed, too.
  std::span<const int32_t> drafts;
  size_t num_candidates = 0;  // BatchRun::num_candidates.
};

// What a token is that a turn appends to the context.
enum class TokenOrigin : uint8_t {
  kChosen,  // Chosen from the last row of logits.
  kForced,  // The constraint gave no choice.
  kDraft,   // The first draft of the last logits that was not accepted yet: the model has run it.
};

// A time in which a session has a sequence of the model, and in which alone its context and the
// cache can change. The sequence is taken by the first call that needs it, because that one knows
// how many tokens there are, and is given back by the destructor. A session has one turn at a time:
// if another one has not ended, the calls of this one fail.
class Turn {
 public:
  // The session must outlive the turn.
  explicit Turn(Session& session, const TurnOptions& options = {});
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn();

  Session& session() const { return session_; }
  // How long the context may become in this turn, once it has its sequence.
  size_t max_length() const { return max_length_; }

  // Makes `tokens` the context. The part of their beginning that the cache already holds is kept;
  // the rest is computed in chunks. If they do not fit, fails and changes nothing. `on_prompt` ends
  // the call with kCancelled.
  Status Prefill(std::span<const int32_t> tokens, const PromptCallback& on_prompt = nullptr);
  // The logits, [vocab_size], of the token after the context, which must not be empty, and of those
  // after the drafts. Runs the end of the context if it is not in the cache.
  Result<LogitRows> Logits(const LogitRequest& request = {});

  // Removes tokens [first, first + count) from the context and the cache. Later tokens move down;
  // their keys and values are not computed again, so they still reflect the removed tokens, unless
  // others have taken the room for moving them, or layers with a window have given up rows that the
  // context then needs (Sequences::CanDrop): then the next Logits runs what is not in the cache.
  // Allocates nothing.
  Status Drop(size_t first, size_t count);
  // Keeps the first `keep_tokens` and drops the older half of the others, at least one. Models
  // attend to the first tokens of a text regardless of their meaning, and generate nonsense if
  // these are dropped (attention sinks, Xiao et al. 2023); four are enough.
  Status DropHalfBehind(size_t keep_tokens);

  // ---- For session files ----

  // Gets a sequence that has as many tokens of the context as the cache, and returns their number.
  Result<size_t> HoldCache();
  // The sequence, after HoldCache or within `write_rows`.
  SequenceId sequence() const { return session_.seat_.sequence(); }
  // Makes `tokens`, which must fit, the context. `write_rows` writes what the KV cache has of the
  // first `cached_tokens` (Sequences::Restore); no session runs meanwhile. If it fails, the context
  // is empty.
  Status Restore(std::span<const int32_t> tokens, size_t cached_tokens,
                 const std::function<Status()>& write_rows);

  // ---- For Generate ----

  // Gets a sequence unless the turn has one.
  Status Hold();
  bool is_full() const { return session_.tokens_.size() == max_length_; }
  SessionStats& stats() const { return session_.stats_; }
  // At most `max_tokens` that could follow the context; nothing if its end is not one token that is
  // to be run.
  std::span<const int32_t> Draft(size_t max_tokens, Sampler& sampler);
  // Appends a token, for which there must be room.
  void Append(int32_t token, TokenOrigin origin);
  // Appends a draft that Rewind takes away again.
  void Try(int32_t draft) { session_.tokens_.push_back(draft); }
  void Rewind(size_t length) { session_.tokens_.resize(length); }
  // Runs the end of the context, which the constraint has added.
  Status RunForced(size_t num_candidates = 0);
  // Lets other sessions go on before Logits is called.
  void ReleaseLogits() { logits_.Release(); }

 private:
  bool has_sequence() const { return session_.turn_ == this && session_.has_sequence_; }
  // Gets a sequence for a context of `num_tokens` unless the turn has one, and keeps in it what the
  // cache has of `cacheable`.
  // SequenceSlots::Request says what `reads` is.
  Status Begin(std::span<const int32_t> cacheable, size_t num_tokens, bool reads = false);
  // Reserves room for a context of `num_tokens` if less is reserved.
  Status Grow(size_t num_tokens);
  Status RunTo(size_t end, const PromptCallback& on_prompt, size_t num_candidates);
  // Runs the last token of the context, and as many drafts as there is room for.
  Result<LogitRows> RunLast(const LogitRequest& request);

  Session& session_;
  const TurnOptions options_;
  size_t max_length_ = 0;  // How long the context may become.
  // How many tokens have room: fewer than max_length_ if the only sequence takes the room of
  // earlier texts only when it needs it.
  size_t reserved_ = 0;
  size_t num_runs_ = 0;  // Forwards of RunTo.
  LogitRows logits_;     // Behind the context, which no call has taken.
};

}  // namespace cria
