#include "llm/scheduler.h"

#include <algorithm>
#include <utility>

#include "llm/leaving_text.h"

namespace cria {
namespace {

// A waiting call looks this often whether it was cancelled.
constexpr auto kCancelPeriod = std::chrono::milliseconds(10);

// Appends to a list that is linked by `next`.
template <typename T>
void Append(T*& first, T& added) {
  T** end = &first;
  while (*end != nullptr) end = &(*end)->next;
  *end = &added;
}

template <typename T>
void Remove(T*& first, T& removed) {
  T** place = &first;
  while (*place != &removed) place = &(*place)->next;
  *place = removed.next;
}

// Whether one of the works from `first` on was cancelled.
bool HasCancelled(const ScheduledWork* first) {
  for (const ScheduledWork* work = first; work != nullptr; work = work->next) {
    const std::atomic<bool>* const cancel = work->options.cancel;
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace

Scheduler::Scheduler(TokenModel& model, NowFunction now, ThermalPacer* pacer)
    : model_(model),
      now_(now),
      pacer_(pacer),
      slots_(model),
      batch_(model),
      times_(model.chunk_tokens()) {}

Result<size_t> Scheduler::Begin(Seat& seat, SequenceSlots::Request request,
                                const std::atomic<bool>* cancel) {
  Lock lock(mutex_);
  if (seat.holder_.is_active) {
    while (true) {
      // The room that is needed may be that of a text that is being written.
      changed_.wait(lock, [this] { return !slots_.leaving().is_being_written(); });
      AwaitModel(lock);
      CRIA_ASSIGN_OR_RETURN(const bool has_room, slots_.Admit(seat.holder_, request));
      if (has_room) return SequenceSlots::Tokens(seat.holder_).size();
      if (!slots_.leaving().has_text()) {
        return Fail(ErrorCode::kOutOfMemory, "other sessions have the rest of the KV cache");
      }
      if (slots_.leaving().is_waiting()) WriteLeaving(lock);
    }
  }
  Admission admission = {seat, request};
  Append(first_admission_, admission);
  if (!access_.is_running) AdmitWaiting();
  while (!admission.is_done) {
    if (slots_.leaving().is_waiting()) {
      WriteLeaving(lock);
    } else if (cancel == nullptr) {
      changed_.wait(lock);
    } else if (!cancel->load(std::memory_order_relaxed)) {
      changed_.wait_for(lock, kCancelPeriod);
    } else {
      Remove(first_admission_, admission);
      if (!access_.is_running) AdmitWaiting();
      lock.unlock();
      return Fail(ErrorCode::kCancelled, "stopped while waiting for other sessions");
    }
  }
  CRIA_RETURN_IF_ERROR(admission.status);
  const size_t num_cached = SequenceSlots::Tokens(seat.holder_).size();
  if (num_cached != 0 || request.stored_tokens == 0) return num_cached;
  lock.unlock();
  return stored_->Read(seat, request.tokens.first(request.stored_tokens));
}

void Scheduler::AdmitWaiting() {
  slots_.leaving().Forget();
  for (Admission** next = &first_admission_; *next != nullptr;) {
    Admission& waiting = **next;
    // Who waits for what another session reads lets others pass.
    if (slots_.AwaitsReading(waiting.seat.holder_, waiting.request)) {
      next = &waiting.next;
      continue;
    }
    // The store may have more of the prompt than when this one began to wait.
    if (stored_ && waiting.request.reads) {
      waiting.request.stored_tokens = stored_->Find(waiting.request.tokens);
    }
    const Result<bool> admitted = slots_.Admit(waiting.seat.holder_, waiting.request);
    if (admitted && !*admitted) {
      if (!slots_.leaving().has_text()) return;
      // This one waits until a text is written, and lets others pass meanwhile. The threads that
      // wait are woken because one of them has to write the text.
      changed_.notify_all();
      next = &waiting.next;
      continue;
    }
    if (!admitted) waiting.status = std::unexpected(admitted.error());
    *next = waiting.next;
    waiting.is_done = true;
    changed_.notify_all();
  }
}

void Scheduler::End(Seat& seat) {
  Lock lock(mutex_);
  ReleaseLogits(seat);
  if (rounds_.StopExpecting(seat)) changed_.notify_all();
  rounds_.SetDecoding(seat, false);
  AwaitModel(lock);
  slots_.Release(seat.holder_);
  AdmitWaiting();
}

void Scheduler::Leave(Seat& seat) {
  End(seat);
  Lock lock(mutex_);
  AwaitModel(lock);
  slots_.Leave(seat.holder_);
}

Status Scheduler::Drop(Seat& seat, size_t first, size_t count, size_t& num_left) {
  Lock lock(mutex_);
  ReleaseLogits(seat);
  seat.forward_ = 0;
  AwaitModel(lock);
  Status dropped = slots_.Drop(seat.holder_, first, count);
  num_left = SequenceSlots::Tokens(seat.holder_).size();
  return dropped;
}

Status Scheduler::Restore(Seat& seat, std::span<const int32_t> tokens,
                          const std::function<Status()>& write_rows) {
  Lock lock(mutex_);
  ReleaseLogits(seat);
  seat.forward_ = 0;
  AwaitModel(lock);
  CRIA_RETURN_IF_ERROR(slots_.Restore(seat.holder_, tokens.size()));
  CRIA_RETURN_IF_ERROR(write_rows());
  return slots_.AppendRestored(seat.holder_, tokens);
}

void Scheduler::WriteLeaving(Lock& lock) {
  lock.unlock();
  stored_->WriteLeaving();
  lock.lock();
}

StoredPrompts& Scheduler::UseStore(PromptStore& store) {
  const Lock lock(mutex_);
  slots_.leaving().Use(store);
  return stored_.emplace(*this, store);
}

void Scheduler::UseSlots(const std::function<void(SequenceSlots& slots)>& use) {
  Lock lock(mutex_);
  AwaitModel(lock);
  use(slots_);
  AdmitWaiting();
  changed_.notify_all();
}

Result<Scheduler::Progress> Scheduler::Run(Seat& seat, std::span<const int32_t> tokens,
                                           const ScheduledWork::Options& options) {
  Lock lock(mutex_);
  ReleaseLogits(seat);
  if (rounds_.StopExpecting(seat)) changed_.notify_all();
  seat.forward_ = 0;
  ScheduledWork work = {seat, tokens, options};
  rounds_.SetDecoding(seat, work.is_decoding());
  Append(first_work_, work);
  while (!work.is_done) {
    if (access_.may_lead()) {
      Lead(lock);
    } else {
      changed_.wait(lock);
    }
  }
  CRIA_RETURN_IF_ERROR(work.status);
  Progress progress = {.num_tokens = work.taken.num_tokens, .num_drafts = work.taken.num_drafts};
  if (work.gets_logits()) progress.logits = LogitRows(*this, seat, seat.logits_, seat.forward_);
  return progress;
}

void Scheduler::Accept(Seat& seat, std::span<const int32_t> drafts) {
  const Lock lock(mutex_);
  // Only a checkpoint could fail, which the sequence can do without.
  static_cast<void>(slots_.Append(seat.holder_, drafts));
}

Status Scheduler::Guess(Seat& seat, int32_t token, size_t max_tokens, const GuessCallback& choose) {
  Lock lock(mutex_);
  AwaitModel(lock);
  return model_.Guess({.sequence = SequenceSlots::Sequence(seat.holder_),
                       .position = SequenceSlots::Tokens(seat.holder_).size(),
                       .token = token,
                       .max_tokens = max_tokens},
                      choose);
}

LogitRows Scheduler::TakeLogits(Seat& seat) {
  const Lock lock(mutex_);
  if (seat.forward_ == 0 || seat.forward_ != stats_.num_forwards || access_.is_running) return {};
  if (!seat.holds_logits_) ++access_.num_holding;
  seat.holds_logits_ = true;
  return {*this, seat, seat.logits_, seat.forward_};
}

void Scheduler::DoneWithLogits(Seat& seat, uint64_t forward) {
  const Lock lock(mutex_);
  if (seat.forward_ == forward) ReleaseLogits(seat);
}

size_t Scheduler::EstimateSeconds(const Seat& seat, std::span<double> seconds) const {
  const Lock lock(mutex_);
  const size_t others = rounds_.num_decoding - (seat.is_decoding_ ? 1 : 0);
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] = times_.costs().Seconds(others + 1 + i);
  return others;
}

Scheduler::Stats Scheduler::stats() const {
  const Lock lock(mutex_);
  Stats stats = stats_;
  stats.num_shared_tokens = slots_.shared_tokens();
  stats.num_kept_tokens = slots_.kept_tokens();
  stats.repeats = slots_.repeats();
  if (stored_) stats.num_stored_tokens = stored_->num_tokens();
  return stats;
}

void Scheduler::AwaitModel(Lock& lock) {
  ++access_.num_exclusive;
  changed_.wait(lock, [this] { return !access_.is_running; });
  if (--access_.num_exclusive == 0) changed_.notify_all();
}

void Scheduler::Lead(Lock& lock) {
  access_.is_leading = true;
  if (pacer_ != nullptr) {
    lock.unlock();
    pacer_->BeginStep([this] {
      const Lock list_lock(mutex_);
      return HasCancelled(first_work_);
    });
    lock.lock();
  }
  Gather(lock);
  // Meanwhile another session may have taken logits that are still there.
  if (access_.may_run()) {
    TakeWorks();
    access_.is_running = true;
    lock.unlock();
    const Clock::time_point begin = Now();
    const Status status = batch_.Run(model_);
    const Clock::duration time = Now() - begin;
    if (pacer_ != nullptr) pacer_->EndStep(time);
    lock.lock();
    access_.is_running = false;
    ++stats_.num_forwards;
    if (status) {
      stats_.num_tokens += batch_.num_tokens();
      const size_t num_decoding = batch_.num_decoding_tokens();
      times_.Learn(num_decoding, batch_.num_tokens() - num_decoding, time);
    }
    if (!status && batch_.works().size() > 1) {
      // Run again one by one, so that only the session whose tokens fail ends.
      rounds_.num_alone = batch_.works().size();
    } else {
      for (ScheduledWork* const work : batch_.works()) Finish(*work, status);
    }
    AdmitWaiting();
  }
  access_.is_leading = false;
  changed_.notify_all();
}

void Scheduler::Gather(Lock& lock) {
  if (rounds_.num_expected == 0) return;
  bool has_prompt = false;
  for (const ScheduledWork* work = first_work_; work != nullptr; work = work->next) {
    has_prompt = has_prompt || !work->is_decoding();
  }
  changed_.wait_for(lock, times_.Patience(has_prompt),
                    [this] { return rounds_.num_expected == 0; });
  rounds_.num_expected = 0;
  ++rounds_.current;
}

void Scheduler::TakeWorks() {
  batch_.Clear();
  const size_t chunk_tokens = model_.chunk_tokens();
  if (rounds_.num_alone > 0) {
    --rounds_.num_alone;
    batch_.Take(*first_work_, {.num_tokens = std::min(first_work_->tokens.size(), chunk_tokens)});
    return;
  }
  batch_.TakeSingles(first_work_, max_drafts());
  size_t room = chunk_tokens - batch_.num_tokens();
  if (const size_t num_decoding = batch_.num_decoding_tokens(); num_decoding > 0) {
    room = std::min(room, times_.PromptTokensBeside(num_decoding));
  } else if (rounds_.num_decoding > 0) {
    // Sessions that decode are late, and should not wait for long when they come.
    room = std::min(room, std::max<size_t>(1, times_.PromptTokensBeside(rounds_.num_decoding)));
  }
  for (ScheduledWork* work = first_work_; work != nullptr && room > 0; work = work->next) {
    if (work->is_single()) continue;
    const size_t count = std::min(
        {room, work->tokens.size(), SequenceSlots::TokensToCheckpoint(work->seat.holder_)});
    batch_.Take(*work, {.num_tokens = count});
    room -= count;
  }
}

void Scheduler::Finish(ScheduledWork& work, const Status& status) {
  Remove(first_work_, work);
  work.is_done = true;
  work.status = status;
  if (!status) return;
  static_cast<void>(slots_.Append(work.seat.holder_, work.tokens.first(work.taken.num_tokens)));
  if (!work.gets_logits()) return;
  work.seat.forward_ = stats_.num_forwards;
  work.seat.holds_logits_ = true;
  ++access_.num_holding;
  rounds_.Expect(work.seat);
}

void Scheduler::Rounds::Expect(Seat& seat) {
  if (seat.expected_in_round_ == current) return;
  seat.expected_in_round_ = current;
  ++num_expected;
}

bool Scheduler::Rounds::StopExpecting(Seat& seat) {
  if (seat.expected_in_round_ != current) return false;
  seat.expected_in_round_ = 0;
  return --num_expected == 0;
}

void Scheduler::Rounds::SetDecoding(Seat& seat, bool is_decoding) {
  if (seat.is_decoding_ == is_decoding) return;
  seat.is_decoding_ = is_decoding;
  is_decoding ? ++num_decoding : --num_decoding;
}

void Scheduler::ReleaseLogits(Seat& seat) {
  if (!seat.holds_logits_) return;
  seat.holds_logits_ = false;
  if (--access_.num_holding == 0) changed_.notify_all();
}

}  // namespace cria
