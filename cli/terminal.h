#pragma once

#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace cria::cli {

bool IsTerminal(std::FILE* stream);

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

// Lines that a user types, with editing and history on a terminal, or lines of standard input.
class LineReader {
 public:
  explicit LineReader(std::string prompt);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line without its end, or nothing at the end of input.
  std::optional<std::string> Next();

 private:
  struct Editor;
  std::optional<std::string> NextFromPipe();

  std::string prompt_;
  Editor* editor_ = nullptr;  // Null if standard input is not a terminal.
};

}  // namespace cria::cli
