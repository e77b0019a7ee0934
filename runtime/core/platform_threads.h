#pragma once

// What threads need from the operating system. Like core/platform.h, it is implemented in one
// folder of platforms/.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cria::platform {

// Sleeps while `word` holds `value`, until WakeOne is called for it; may return before that.
void SleepWhile(const std::atomic<uint32_t>& word, uint32_t value);
// Wakes a thread that sleeps on `word`, after the word has changed.
void WakeOne(const std::atomic<uint32_t>& word);

// The number of the processor on which this thread runs at the moment; -1 if it is not known.
int CurrentProcessor();
// Moves this thread to another processor, if it may run on another one. Returns false otherwise.
bool LeaveProcessor(int processor);

// What this thread has used since it started.
struct ThreadUsage {
  std::chrono::nanoseconds processor_time{0};
  // How often the system took the processor away while the thread had work to do.
  uint64_t preemptions = 0;
};
ThreadUsage ReadThreadUsage();

// How many threads of this process can run at once: the processors that it may run on, and the
// whole processors that its control groups' quotas allow, if there are quotas. At least 1.
size_t MaxRunningThreads();

}  // namespace cria::platform
