#pragma once

#include <atomic>
#include <cstdio>

namespace cria::cli {

// Whether the user sees or types at this standard stream in a terminal.
bool IsTerminal(std::FILE* stream);

// For a program whose standard streams another one passes on: from now on, `test` says whether a
// stream, as a descriptor, is a terminal of the user.
void SetTerminalTest(bool (*test)(int stream));

// Whether to color the output on `stream`: on a terminal, unless NO_COLOR is set.
bool UseColor(std::FILE* stream);

// While an object exists, Ctrl-C sets the flag instead of ending the program. One object at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>* flag() const;
  bool interrupted() const { return flag()->load(); }
};

}  // namespace cria::cli
