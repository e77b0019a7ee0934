#pragma once

namespace cria::cli {

// From here on, no end that the program sees leaves an unfinished file behind: not signals that
// end programs, nor abort(). Where memory runs out, which no thread of a pool could throw out of,
// the program ends with a sentence; what is large has been refused with an Error by then. A file
// that grows beyond a limit is an error like a full disk.
void InstallEndHandlers(const char* program);

// What Ctrl-C, SIGTERM or SIGHUP print while it lives, as an error of the program. One at a time.
class StopSentence {
 public:
  // Whether Ctrl-C is an end by the signal or, as every other error is, with kExitError.
  enum class CtrlC { kSignal, kError };
  StopSentence(const char* sentence, CtrlC ctrl_c);
  StopSentence(const StopSentence&) = delete;
  StopSentence& operator=(const StopSentence&) = delete;
  ~StopSentence();
};

}  // namespace cria::cli
