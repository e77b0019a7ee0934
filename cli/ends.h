#pragma once

#include <functional>

namespace cria::cli {

// Installs handlers that remove the program's unfinished files before a signal or abort() ends it.
// If memory runs out, the program prints a sentence and exits, because the threads of a pool cannot
// throw to their caller; large allocations return an Error before that. A file that would exceed
// its size limit becomes an error like a full disk. `program` begins error sentences, and
// `memory_advice` says what to do if memory runs out.
void InstallEndHandlers(const char* program, const char* memory_advice);

// Changes what to do if memory runs out. The text must stay.
void SetMemoryAdvice(const char* memory_advice);

// Ends the program as if memory ran out, for libraries that get memory in another way and throw.
[[noreturn]] void EndWithoutMemory();

// While an object exists, the program does not print an error if memory runs out: it calls `finish`
// once, with memory that was kept for it, and exits with the code that this returns. Other threads
// stand still or wait for memory meanwhile. There may be one object at a time.
class EndWithMemoryLeft {
 public:
  explicit EndWithMemoryLeft(std::function<int()> finish);
  EndWithMemoryLeft(const EndWithMemoryLeft&) = delete;
  EndWithMemoryLeft& operator=(const EndWithMemoryLeft&) = delete;
  ~EndWithMemoryLeft();
};

// From now on, before a signal ends the program or Ctrl-Z stops it, `text` is written to the
// terminal of standard input, which gets the settings that it has now. When the program goes on in
// the foreground, the terminal gets those back that it had. nullptr: nothing of this happens any
// more.
void RestoreTerminalAtEnd(const char* text);

// While an object exists, Ctrl-C, SIGTERM and SIGHUP print its sentence as an error of the program.
// There may be one object at a time.
class StopSentence {
 public:
  // Whether Ctrl-C ends the program by the signal or with kExitInterrupted.
  enum class CtrlC { kSignal, kExit };
  StopSentence(const char* sentence, CtrlC ctrl_c);
  StopSentence(const StopSentence&) = delete;
  StopSentence& operator=(const StopSentence&) = delete;
  ~StopSentence();
};

}  // namespace cria::cli
