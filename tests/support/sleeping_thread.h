#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>

namespace cria::support {

// No test waits so long for another thread.
inline constexpr auto kThreadPatience = std::chrono::seconds(60);

inline pid_t ThisThread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

// Whether a thread of this process sleeps in a system call, such as the wait of a condition
// variable, or has ended. Allocates nothing.
inline bool IsAsleep(pid_t thread) {
  char text[256];
  std::snprintf(text, sizeof text, "/proc/self/task/%d/stat", static_cast<int>(thread));
  const int file = open(text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  const ssize_t count = read(file, text, sizeof text - 1);
  close(file);
  if (count <= 0) return true;
  text[count] = '\0';
  // "ID (NAME) STATE …", where the name may have parentheses.
  const char* const name_end = std::strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
}

// Waits until `is_reached()`. Fails the test if that takes longer than any machine needs.
template <typename Condition>
void Await(Condition is_reached) {
  const auto deadline = std::chrono::steady_clock::now() + kThreadPatience;
  while (!is_reached()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      ADD_FAILURE() << "what the test waits for does not come";
      return;
    }
    sched_yield();
  }
}

inline void AwaitSleep(pid_t thread) {
  Await([thread] { return IsAsleep(thread); });
}

}  // namespace cria::support
