#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "llm/drafting.h"
#include "llm/scheduler.h"
#include "llm/seat.h"

namespace cria {

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
  size_t accepted_tokens = 0;    // Drafts that it would have generated.
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

class Turn;

// A context of tokens, whose keys and values are in a model's KV cache as long as others do not
// need the room. A Turn changes the context; between turns, the session keeps it. One thread at a
// time may use a session; several sessions of one scheduler run at the same time.
class Session {
 public:
  // `scheduler` must outlive the session. With `drafting`, generating runs drafts, which change no
  // token of the text, only the time that it takes.
  explicit Session(Scheduler& scheduler, std::unique_ptr<Drafting> drafting = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // The context so far. The last generated token may not be in the cache yet.
  std::span<const int32_t> tokens() const { return tokens_; }
  size_t vocab_size() const { return scheduler_.model().vocab_size(); }
  // Maximum number of tokens of a context.
  size_t context_tokens() const { return scheduler_.model().context_tokens(); }
  // The session's share of the KV cache, which a turn without limit may fill: the whole context if
  // there is one sequence.
  size_t share_tokens() const { return share_tokens_; }
  void Clear();

  // Ends the turn, if there is one: for a caller who catches an exception that has passed through
  // this library, which is compiled without exceptions and so did not destroy the Turn.
  void EndTurn();

  const SessionStats& stats() const { return stats_; }
  void ResetStats() { stats_ = {}; }

 private:
  friend class Turn;

  void ForgetDrafts();
  // How long a Forward without drafts takes, as estimated for the last draft.
  SessionStats::Duration OneForward() const;

  Scheduler& scheduler_;
  Seat seat_;
  const size_t share_tokens_;
  std::vector<int32_t> tokens_;  // Capacity for the whole context.
  size_t cached_ = 0;            // How many of tokens_ are in the KV cache, while has_sequence_.
  bool has_logits_ = false;      // The logits after the last token were computed and not taken yet.
  // At the end of tokens_ are some that the constraint has added and the model has not run.
  bool ends_forced_ = false;
  std::unique_ptr<Drafting> drafting_;  // Null: there are no drafts.
  std::vector<double> draft_costs_;     // DraftCosts::seconds.
  SessionStats stats_;
  // Only compared: after an exception, the turn does not exist any more.
  const Turn* turn_ = nullptr;
  bool has_sequence_ = false;  // The turn has one.
};

}  // namespace cria
