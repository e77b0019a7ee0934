#include "core/worker_gate.h"

#include "core/platform_threads.h"

namespace cria {
namespace {

// A worker that is needed again soon must not sleep: waking it takes 10 to 100 µs, and a virtual
// machine may then give it a slower processor. Between the products of a token, and while a token
// is sampled and printed, it waits for less than this; so it does during most exclusions.
constexpr auto kWorkerSpin = std::chrono::milliseconds(5);
// Looks at the gate between two looks at the clock.
constexpr int kLooksPerClock = 32;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace

WorkerGate::Worker WorkerGate::Open() {
  switch (state_.exchange(kOpen, std::memory_order_acq_rel)) {
    case kAsleep:
      platform::WakeOne(state_);
      return Worker::kAsleep;
    case kRefused:
      platform::WakeOne(state_);
      return Worker::kRefused;
    default:
      return Worker::kWaiting;
  }
}

WorkerGate::Worker WorkerGate::Close() {
  uint32_t state = state_.load(std::memory_order_acquire);
  if (state == kOpen && state_.compare_exchange_strong(state, kClosed, std::memory_order_acquire)) {
    return Worker::kWaiting;
  }
  return state == kRefused ? Worker::kRefused : Worker::kJoined;
}

WorkerGate::Clock::time_point WorkerGate::AwaitFinish(Clock::time_point now, Clock::duration spin,
                                                      Clock::duration& slept) {
  const Clock::time_point begin = now;
  while (true) {
    for (int look = 0; look < kLooksPerClock; ++look) {
      const uint32_t state = state_.load(std::memory_order_acquire);
      if (state != kJoined && state != kAwaited) return now;
      Pause();
    }
    now = Clock::now();
    if (now - begin >= spin) break;
  }
  SleepAs(kJoined, kAwaited);
  const Clock::time_point end = Clock::now();
  slept += end - now;
  // Orders what the worker has written before what the caller reads next.
  state_.load(std::memory_order_acquire);
  return end;
}

void WorkerGate::Quit() {
  state_.exchange(kQuit, std::memory_order_acq_rel);
  platform::WakeOne(state_);
}

bool WorkerGate::WaitUntilOpen(const std::atomic<int>& caller_processor) {
  const auto is_on_callers_processor = [&] {
    const int processor = caller_processor.load(std::memory_order_relaxed);
    return processor >= 0 && processor == platform::CurrentProcessor();
  };
  Clock::time_point begin = Clock::now();
  while (true) {
    for (int look = 0; look < kLooksPerClock; ++look) {
      const uint32_t state = state_.load(std::memory_order_relaxed);
      if (state == kQuit) return false;
      if (state != kOpen) {
        Pause();
        continue;
      }
      // A thread that sleeps again at once may stay on this processor for a tenth of a second.
      if (!is_on_callers_processor() || platform::LeaveProcessor(caller_processor)) return true;
      SleepAs(kOpen, kRefused);
      begin = Clock::now();
    }
    if (Clock::now() - begin < kWorkerSpin && !is_on_callers_processor()) continue;
    SleepAs(kClosed, kAsleep);
    begin = Clock::now();
  }
}

bool WorkerGate::Join() {
  uint32_t state = kOpen;
  return state_.compare_exchange_strong(state, kJoined, std::memory_order_acquire);
}

void WorkerGate::Finish() {
  if (state_.exchange(kClosed, std::memory_order_acq_rel) == kAwaited) platform::WakeOne(state_);
}

void WorkerGate::SleepAs(State from, State to) {
  uint32_t state = from;
  if (!state_.compare_exchange_strong(state, to, std::memory_order_acq_rel)) return;
  do {
    platform::SleepWhile(state_, to);
  } while (state_.load(std::memory_order_acquire) == to);
}

}  // namespace cria
