#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "llm/drafting.h"
#include "llm/sampler.h"
#include "llm/scheduler.h"

namespace cria {

enum class StopReason : uint8_t {
  kStopToken,    // The model ended its turn, or its text matches the constraint and nothing that
                 // does so within the limits can follow.
  kMaxTokens,    // max_tokens were generated.
  kContextFull,  // The KV cache is full, and make_room made no room.
  kCancelled,
  kStopString,  // The text has a stop string; the session itself does not look for them.
};

// Figures since the session began or since they were reset.
struct SessionStats {
  using Duration = std::chrono::steady_clock::duration;
  size_t prompt_tokens = 0;  // Computed in prefill; reused tokens are not counted.
  size_t reused_tokens = 0;  // Found in the cache by the last Prefill.
  Duration prompt_time = {};
  size_t generated_tokens = 0;   // Passed to on_token.
  size_t decoded_tokens = 0;     // Computed after the prompt, accepted drafts included.
  Duration decode_time = {};     // With drafting and dropping, without sampling and callbacks.
  size_t dropped_tokens = 0;     // By Drop and DropHalfBehind.
  size_t decoding_forwards = 0;  // Forwards that computed decoded tokens.
  size_t drafted_tokens = 0;     // Drafts that the model ran.
  size_t accepted_tokens = 0;    // Those of them that it would have generated.
  // Generated tokens that the constraint gave no choice of.
  size_t forced_tokens = 0;
  // Estimate of decode_time without drafts, for what was decoded.
  Duration undrafted_time = {};

  // How many times as fast drafts made decoding; 1 without drafts.
  double draft_gain() const {
    return drafted_tokens == 0 || decode_time.count() == 0
               ? 1.0
               : static_cast<double>(undrafted_time.count()) /
                     static_cast<double>(decode_time.count());
  }
};

struct GeneratedToken {
  int32_t id;
  // The natural logarithm of the probability that the model gives the token, before all steps of
  // the sampler; 0 if GenerationOptions does not ask for it, or if the constraint gave no choice.
  double log_probability;
};

// Returns whether to go on.
using TokenCallback = std::function<bool(const GeneratedToken&)>;
// Called before a prompt is read, when the cache holds `done_tokens` of its `total_tokens`, and
// after every chunk. Returns whether to go on.
using PromptCallback = std::function<bool(size_t done_tokens, size_t total_tokens)>;

class Constraint;
class StopStrings;

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
  // room with Drop, DropHalfBehind or Prefill; if it fails, the generation ends with its error. If
  // it is not set or makes no room, the token is the last one and the reason is kContextFull.
  std::function<Status()> make_room;

  // Complete, GenerateText and Conversation use these; Session::Generate does not.
  PromptCallback on_prompt;
  // Called for each token with its part of the text, before stop strings are looked for. The text
  // ends with a whole character and may be empty.
  std::function<void(const GeneratedToken& token, std::string_view text)> on_token_text;
  StopStrings* stop_strings = nullptr;
};

// A context of tokens, whose keys and values are in a model's KV cache as long as others do not
// need the room, and the generation of the next tokens. One thread at a time may use a session;
// several sessions of one scheduler run at the same time.
class Session {
 public:
  // A time in which the session keeps its sequence of the KV cache. Functions that are called
  // outside of a request make one of their own.
  class Request {
   public:
    struct Options {
      size_t max_tokens = 0;  // How many tokens are going to be generated; 0: no limit.
      // Tokens behind these may be dropped to make room.
      size_t kept_tokens = SIZE_MAX;
      // Checked while the session waits for others, between chunks of a prompt; ends these with
      // kCancelled.
      const std::atomic<bool>* cancel = nullptr;
    };

    Request(Session& session, const Options& options);
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    ~Request();

   private:
    Session& session_;
    const bool is_outer_;
  };

  // Ends the request, if there is one: for a caller who catches an exception that has passed
  // through this library, which is compiled without exceptions and so did not destroy the Request.
  void EndRequest();

  // `scheduler` must outlive the session. With `drafting`, generating runs drafts, which change no
  // token of the text, only the time that it takes.
  explicit Session(Scheduler& scheduler, std::unique_ptr<Drafting> drafting = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Makes `tokens` the context. The part of their beginning that the cache already holds is kept;
  // the rest is computed in chunks. If they do not fit, fails and changes nothing. `on_prompt` ends
  // the call with kCancelled.
  Status Prefill(std::span<const int32_t> tokens, const PromptCallback& on_prompt = nullptr);

  // Generates tokens, appends each to the context, and passes each except the stop token to
  // `on_token`, which may end it with kCancelled. The context must not be empty. Allocates nothing
  // except in callbacks.
  //
  // With a constraint, a token that is the only one possible is not asked of the model: it is
  // appended at once, and the model runs several such tokens together. No random number is drawn
  // for it.
  Result<StopReason> Generate(const GenerationOptions& options, Sampler& sampler,
                              const TokenCallback& on_token);

  // The logits, [vocab_size], of the token after the context, which must not be empty. Runs the end
  // of the context if it is not in the cache. Inside a request they are valid until the next call,
  // and no other session goes on before; otherwise they are valid until any session is used.
  Result<std::span<float>> Logits();

  // Removes tokens [first, first + count) from the context and the cache. Later tokens move down;
  // their keys and values are not computed again, so they still reflect the removed tokens, unless
  // others have taken the room for moving them, or layers with a window have given up rows that the
  // context then needs (KvPages::CanDrop): then the next Logits runs what is not in the cache.
  // Allocates nothing.
  Status Drop(size_t first, size_t count);
  // Keeps the first `keep_tokens` and drops the older half of the others, at least one. Models
  // attend to the first tokens of a text regardless of their meaning, and generate nonsense if
  // these are dropped (attention sinks, Xiao et al. 2023); four are enough.
  Status DropHalfBehind(size_t keep_tokens);

  // The context so far. The last generated token may not be in the cache yet.
  std::span<const int32_t> tokens() const { return tokens_; }
  size_t vocab_size() const { return scheduler_.model().vocab_size(); }
  // Maximum number of tokens of a context.
  size_t context_tokens() const { return scheduler_.model().context_tokens(); }
  // The session's share of the KV cache, which a request without limit may fill: the whole context
  // if there is one sequence.
  size_t share_tokens() const { return share_tokens_; }
  // How long the context may become in this request. Prefill or Generate must have been called.
  size_t max_length() const { return max_length_; }
  void Clear();

  // For storing the context, within a request: gets a sequence that has as many tokens of the
  // context as the KV cache, and returns their number.
  Result<size_t> HoldCache();
  // The sequence, after HoldCache or within `write_rows`.
  SequenceId sequence() const { return Scheduler::Sequence(seat_); }
  // Makes `tokens`, which must fit, the context. `write_rows` writes what the KV cache has of the
  // first `cached_tokens` (KvPages::Restore); no session runs meanwhile. If it fails, the context
  // is empty.
  Status Restore(std::span<const int32_t> tokens, size_t cached_tokens,
                 const std::function<Status()>& write_rows);

  const SessionStats& stats() const { return stats_; }
  void ResetStats() { stats_ = {}; }

 private:
  // Gets a sequence for a context of `num_tokens` unless the session has one, and keeps in it what
  // the cache has of `cacheable`.
  Status Begin(std::span<const int32_t> cacheable, size_t num_tokens);
  Status RunTo(size_t end, const PromptCallback& on_prompt, size_t num_candidates = 0);
  // The logits behind the context and behind the first drafts, which follow the context. Runs the
  // end of the context if there are no logits behind it. `num_candidates` is that of BatchRun.
  Result<LogitRows> TakeLogits(std::span<const int32_t> drafts, size_t num_candidates);
  // Runs the last token of the context, and as many drafts as there is room for.
  Result<LogitRows> RunLast(std::span<const int32_t> drafts, size_t num_candidates);
  // At most `max_tokens` that could follow the context, without a stop token; nothing if the end of
  // the context is not one token that is to be run.
  std::span<const int32_t> Draft(const GenerationOptions& options, size_t max_tokens,
                                 Sampler& sampler);
  // A token that was chosen from logits, or that the constraint gave no choice of.
  struct Choice {
    GeneratedToken token = {.id = -1};  // -1: nothing may follow.
    bool is_forced = false;
  };
  // Sets chosen_.
  Status Choose(const GenerationOptions& options, Sampler& sampler, size_t max_tokens);
  // The token after the context, of which `max_tokens` may still come, if `num_drawn` random
  // numbers are taken before.
  Result<Choice> ChooseFrom(std::span<float> logits, const GenerationOptions& options,
                            Sampler& sampler, size_t num_drawn, size_t max_tokens);
  // Adds what one run of the model tells, and what the constraint gives no choice of before it.
  // Returns why the text ends, if it does.
  Result<std::optional<StopReason>> AddNext(const GenerationOptions& options, Sampler& sampler,
                                            const TokenCallback& on_token, size_t max_tokens,
                                            size_t& generated);
  // Adds the tokens that the constraint gives no choice of, up to `max_tokens`. Returns why the
  // text ends, if it does.
  Result<std::optional<StopReason>> AddForced(const GenerationOptions& options,
                                              const TokenCallback& on_token, size_t max_tokens,
                                              size_t& generated);
  // How many of `max_tokens` there is room for.
  size_t TokensLeft(const GenerationOptions& options, size_t max_tokens) const;
  // Runs the end of the context, which the constraint has added.
  Status RunForced(size_t num_candidates = 0);
  // Hands out a token and appends it. Returns why the text ends, if it does.
  Result<std::optional<StopReason>> Add(const GeneratedToken& token, bool is_cached,
                                        const GenerationOptions& options,
                                        const TokenCallback& on_token);
  void ForgetDrafts();
  // How long a Forward without drafts takes, as estimated for the last draft.
  SessionStats::Duration OneForward() const;

  Scheduler& scheduler_;
  Seat seat_;
  const size_t share_tokens_;
  std::vector<int32_t> tokens_;  // Capacity for the whole context.
  size_t cached_ = 0;            // How many of tokens_ are in the KV cache, while has_sequence_.
  bool has_logits_ = false;      // The logits after the last token were computed and not taken yet.
  // At the end of tokens_: what the constraint has added and the model has not run.
  size_t num_forced_ = 0;
  size_t num_runs_ = 0;                 // Forwards of RunTo.
  std::unique_ptr<Drafting> drafting_;  // Null: there are no drafts.
  std::vector<double> draft_costs_;     // DraftCosts::seconds.
  // What was chosen of the last logits: drafts that were right, and the token behind them.
  std::vector<Choice> chosen_;
  // Of the request.
  bool is_in_request_ = false;
  Request::Options options_;
  bool has_sequence_ = false;
  size_t max_length_ = 0;  // What is reserved for the context.
  LogitRows logits_;       // That no call has taken, or that Logits has handed out.
  SessionStats stats_;
};

}  // namespace cria
