#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "core/platform_threads.h"
#include "posix/cgroup.h"

namespace cria::platform {

// The kernel reads the word as a plain number.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void SleepWhile(const std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void WakeOne(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

int CurrentProcessor() { return sched_getcpu(); }

bool LeaveProcessor(int processor) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<size_t>(processor), &others);
  // The first call moves the thread, and fails if no processor is left; the second one lets the
  // system move it later as before.
  return sched_setaffinity(0, sizeof others, &others) == 0 &&
         sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

ThreadUsage ReadThreadUsage() {
  rusage usage = {};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return {};
  const auto duration = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return {.processor_time = duration(usage.ru_utime) + duration(usage.ru_stime),
          .preemptions = static_cast<uint64_t>(usage.ru_nivcsw)};
}

size_t MaxRunningThreads() {
  size_t threads = SIZE_MAX;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    threads = static_cast<size_t>(CPU_COUNT(&allowed));
  }
  if (const auto quota = CgroupProcessorQuota(""); quota && *quota < static_cast<double>(threads)) {
    threads = static_cast<size_t>(*quota);
  }
  return std::max<size_t>(threads, 1);
}

}  // namespace cria::platform
