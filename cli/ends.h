#pragma once

namespace cria::cli {

// Installs handlers that remove the program's unfinished files before a signal or abort() ends it.
// If memory runs out, the program prints a sentence and exits, because the threads of a pool cannot
// throw to their caller; large allocations return an Error before that. A file that would exceed
// its size limit becomes an error like a full disk. `program` begins error sentences.
void InstallEndHandlers(const char* program);

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
