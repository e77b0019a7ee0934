#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

#include "cria/error.h"
#include "decode/token_model.h"
#include "llm/forward_times.h"
#include "llm/logit_rows.h"
#include "llm/scheduled_batch.h"
#include "llm/seat.h"
#include "llm/sequence_slots.h"
#include "llm/stored_prompts.h"
#include "llm/thermal_pacer.h"

namespace cria {

// Lets sessions in several threads use one model: tokens that they run at the same time are run by
// one Forward, which one of their threads calls for all. It has no thread of its own.
//
// A session has a sequence from Begin to End. One that finds no sequence, or not enough pages,
// waits in Begin; sessions are admitted in the order of their calls.
class Scheduler {
 public:
  using Clock = std::chrono::steady_clock;

  // What a call of Run has run.
  struct Progress {
    size_t num_tokens = 0;
    size_t num_drafts = 0;
    LogitRows logits;  // Behind the last token and each draft, if all tokens were run.
  };

  struct Stats {
    uint64_t num_forwards = 0;
    size_t num_tokens = 0;         // Tokens that were run, drafts included.
    size_t num_shared_tokens = 0;  // Tokens that were found in another session's sequence.
    size_t num_stored_tokens = 0;  // Tokens that were read from a store.
    SequenceSlots::Repeats repeats;
    // Tokens that sequences have now; a token that two of them share counts twice.
    size_t num_kept_tokens = 0;
  };

  using NowFunction = Clock::time_point (*)();

  // Allocates all memory that it needs. `model` must outlive it. `now` tells the time by which the
  // scheduler and its sessions measure how long the model takes. `pacer`, which may be null, must
  // outlive it; its pauses are between Forwards.
  explicit Scheduler(TokenModel& model, NowFunction now = Clock::now,
                     ThermalPacer* pacer = nullptr);

  TokenModel& model() const { return model_; }
  Clock::time_point Now() const { return now_(); }

  // Gives the seat a sequence with as many of the tokens' beginning as the cache has, and returns
  // their number. If the seat has one already, only what differs is forgotten. `cancel` may be
  // null; it ends the waiting with kCancelled.
  Result<size_t> Begin(Seat& seat, SequenceSlots::Request request, const std::atomic<bool>* cancel);
  void End(Seat& seat);
  // The seat is not going to be used any more.
  void Leave(Seat& seat);

  // Runs `tokens`, at least one, behind the sequence's tokens: all of them, or as many as should be
  // run at once.
  Result<Progress> Run(Seat& seat, std::span<const int32_t> tokens,
                       const ScheduledWork::Options& options = {});
  // Makes drafts of the last Run tokens of the sequence: the first ones that were not accepted yet.
  // No Run, Drop or Restore of the seat may have come between.
  void Accept(Seat& seat, std::span<const int32_t> drafts);
  // Guesses tokens behind `token`, the next one of the sequence (TokenModel::Guess). `choose` must
  // not call the scheduler.
  Status Guess(Seat& seat, int32_t token, size_t max_tokens, const GuessCallback& choose);
  // The rows of logits of the last Run, which were released; empty if another Forward came between.
  LogitRows TakeLogits(Seat& seat);
  // Estimates how long a Forward takes that runs a token of this seat and of each other that is
  // decoding, and 0, 1, … drafts. `seconds` are 0 if nothing was measured yet. Returns the number
  // of the others.
  size_t EstimateSeconds(const Seat& seat, std::span<double> seconds) const;
  // Maximum number of drafts that one Forward takes, of all sessions together.
  size_t max_drafts() const { return model_.max_logit_rows() - model_.max_sequences(); }

  // Removes tokens [first, first + count) of the sequence; later ones move down. If there is no
  // room for this, or if the model fails, all tokens from `first` on are forgotten. `num_left`
  // becomes the number of tokens that the cache still has.
  Status Drop(Seat& seat, size_t first, size_t count, size_t& num_left);

  // Makes `tokens` those of the sequence; `write_rows` writes what the KV cache has of them
  // (Sequences::Restore), and may use the model's threads. If it fails, the sequence is empty.
  Status Restore(Seat& seat, std::span<const int32_t> tokens,
                 const std::function<Status()>& write_rows);

  // Makes Begin write texts to the store before it gives them up, and read the beginnings of
  // prompts from it. Must be called before any session begins. The store must outlive the
  // scheduler. The result is valid as long as the scheduler.
  StoredPrompts& UseStore(PromptStore& store);
  // Calls `use` while the model does not run, and then admits sessions that wait.
  void UseSlots(const std::function<void(SequenceSlots& slots)>& use);

  Stats stats() const;

 private:
  friend class LogitRows;

  // A call of Begin that waits, in the stack of its thread.
  struct Admission {
    Seat& seat;
    SequenceSlots::Request& request;
    Admission* next = nullptr;
    bool is_done = false;
    Status status = {};
  };
  // Who uses the model, and who waits for it.
  struct Access {
    bool is_leading = false;
    bool is_running = false;
    size_t num_holding = 0;    // Seats that hold logits.
    size_t num_exclusive = 0;  // Calls that wait until the model does not run.

    bool may_run() const { return num_holding == 0 && num_exclusive == 0; }
    bool may_lead() const { return !is_leading && !is_running && may_run(); }
  };
  // Which sessions are likely to run tokens together.
  struct Rounds {
    // Sessions that got logits in the last batches, and are likely to run a token soon. Each is
    // waited for in one round.
    size_t num_expected = 0;
    uint64_t current = 1;
    size_t num_decoding = 0;
    size_t num_alone = 0;  // So many of the next batches take one work only.

    void Expect(Seat& seat);
    // Returns true if this was the last session that was expected.
    bool StopExpecting(Seat& seat);
    void SetDecoding(Seat& seat, bool is_decoding);
  };
  using Lock = std::unique_lock<std::mutex>;

  // The mutex is locked in all of these.
  // Waits until the model does not run. Until the mutex is unlocked, the caller may use the model.
  void AwaitModel(Lock& lock);
  // Admits those who wait, as long as there is room for the first one that does not wait for what
  // another session reads.
  void AdmitWaiting();
  // Writes the text that is waiting for a store, with the lock released.
  void WriteLeaving(Lock& lock);
  // Runs what is queued, unlocking the mutex meanwhile and during a pause before it.
  void Lead(Lock& lock);
  // Waits a little for the sessions that are expected.
  void Gather(Lock& lock);
  void TakeWorks();
  void Finish(ScheduledWork& work, const Status& status);
  void ReleaseLogits(Seat& seat);
  // Locks the mutex. Does nothing if the seat has been used since that Forward.
  void DoneWithLogits(Seat& seat, uint64_t forward);

  TokenModel& model_;
  const NowFunction now_;
  ThermalPacer* const pacer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  SequenceSlots slots_;
  std::optional<StoredPrompts> stored_;  // If there is a store.
  Admission* first_admission_ = nullptr;
  ScheduledWork* first_work_ = nullptr;
  Access access_;
  Rounds rounds_;
  Stats stats_;
  ScheduledBatch batch_;
  ForwardTimes times_;
};

}  // namespace cria
