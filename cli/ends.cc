#include "cli/ends.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>

#include "cli/messages.h"
#include "cli/progress_bar.h"
#include "core/output_file.h"

namespace cria::cli {
namespace {

// Set before the handlers are installed.
const char* program_name = nullptr;
// Clears the line of progress, if stderr is a terminal.
const char* clear_line = "";

std::atomic<const char*> stop_sentence = nullptr;
std::atomic<bool> ctrl_c_exits = false;

// Prints an error like ReportError, with functions that are safe in a signal handler.
void WriteError(const char* sentence) {
  for (const char* part : {clear_line, program_name, ": error: ", sentence, "\n"}) {
    // A failure cannot be reported anywhere.
    [[maybe_unused]] const ssize_t count = write(STDERR_FILENO, part, std::strlen(part));
  }
}

std::atomic<const char*> terminal_text = nullptr;
termios terminal_settings = {};

void RestoreTerminal() {
  const char* const text = terminal_text.load();
  if (text == nullptr) return;
  // A failure cannot be reported anywhere.
  [[maybe_unused]] const ssize_t count = write(STDIN_FILENO, text, std::strlen(text));
  tcsetattr(STDIN_FILENO, TCSANOW, &terminal_settings);
}

void EndBySignal(int number) {
  OutputFile::RemoveUnfinished();
  RestoreTerminal();
  const bool asks_to_stop = number == SIGINT || number == SIGTERM || number == SIGHUP;
  if (const char* const sentence = stop_sentence.load(); asks_to_stop && sentence != nullptr) {
    WriteError(sentence);
    if (number == SIGINT && ctrl_c_exits.load()) _exit(kExitInterrupted);
  }
  // Ends by the signal itself, so that a calling script sees it.
  signal(number, SIG_DFL);
  raise(number);
  sigset_t only = {};
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

void EndWithoutMemory() {
  OutputFile::RemoveUnfinished();
  RestoreTerminal();
  WriteError("memory ran out; ask for less context or fewer threads");
  _exit(kExitError);
}

}  // namespace

void InstallEndHandlers(const char* program) {
  program_name = program;
  if (ProgressBar::CanRedraw()) clear_line = "\r\x1b[K";
  struct sigaction action = {};
  action.sa_handler = EndBySignal;
  sigfillset(&action.sa_mask);
  for (const int number :
       {SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU}) {
    // A signal that the caller ignores, as nohup does, stays ignored.
    struct sigaction before = {};
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
      sigaction(number, &action, nullptr);
    }
  }
  signal(SIGXFSZ, SIG_IGN);
  std::set_new_handler(EndWithoutMemory);
}

void RestoreTerminalAtEnd(const char* text) {
  terminal_text = nullptr;
  if (text != nullptr && tcgetattr(STDIN_FILENO, &terminal_settings) == 0) terminal_text = text;
}

StopSentence::StopSentence(const char* sentence, CtrlC ctrl_c) {
  ctrl_c_exits = ctrl_c == CtrlC::kExit;
  stop_sentence = sentence;
}

StopSentence::~StopSentence() { stop_sentence = nullptr; }

}  // namespace cria::cli
