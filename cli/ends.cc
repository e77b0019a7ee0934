#include "cli/ends.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "cli/messages.h"
#include "cli/terminal/progress_bar.h"
#include "core/output_file.h"

namespace cria::cli {
namespace {

// Set before the handlers are installed.
const char* program_name = nullptr;
std::atomic<const char*> advice = "";
// Clears the line of progress, if stderr is a terminal.
const char* clear_line = "";

std::atomic<const char*> stop_sentence = nullptr;
std::atomic<bool> ctrl_c_exits = false;

// Prints an error like ReportError, with functions that are safe in a signal handler.
void WriteError(const char* sentence, const char* what_to_do = "") {
  for (const char* part : {clear_line, program_name, ": error: ", sentence, what_to_do, "\n"}) {
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

// Stops the program for Ctrl-Z, and goes on with the terminal as it was.
void Suspend(int number) {
  const int saved_errno = errno;
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  struct sigaction own = {};
  termios settings = {};
  const bool is_known = tcgetattr(STDIN_FILENO, &settings) == 0;
  RestoreTerminal();
  sigaction(number, &usual, &own);
  raise(number);  // The program stops here.
  sigaction(number, &own, nullptr);
  // In the background, it would be stopped again.
  if (is_known && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
    tcsetattr(STDIN_FILENO, TCSANOW, &settings);
  }
  errno = saved_errno;
}

// Makes Ctrl-Z call Suspend(), or do what is usual. A caller without job control ignores it.
void HandleSuspending(bool is_handled) {
  struct sigaction before = {};
  if (sigaction(SIGTSTP, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = is_handled ? Suspend : SIG_DFL;
  action.sa_flags = SA_NODEFER | SA_RESTART;  // Suspend() raises the signal itself.
  sigaction(SIGTSTP, &action, nullptr);
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

// What EndWithMemoryLeft keeps, large enough that the C library gives it back to the system.
constexpr size_t kReserveBytes = size_t{1} << 20;
std::function<int()>* finish_without_memory = nullptr;
std::unique_ptr<std::byte[]> reserve;
std::mutex end_mutex;

}  // namespace

void EndWithoutMemory() {
  // Another thread that needs memory waits here until the program has ended. The same thread may
  // come here again if the reserve is too small.
  static std::atomic<bool> is_finishing = false;
  if (finish_without_memory != nullptr && !is_finishing) {
    end_mutex.lock();
    is_finishing = true;
    reserve.reset();
    const int code = (*finish_without_memory)();
    std::fflush(nullptr);
    OutputFile::RemoveUnfinished();
    _exit(code);
  }
  OutputFile::RemoveUnfinished();
  RestoreTerminal();
  WriteError("memory ran out; ", advice.load());
  _exit(kExitError);
}

void SetMemoryAdvice(const char* memory_advice) { advice = memory_advice; }

void InstallEndHandlers(const char* program, const char* memory_advice) {
  program_name = program;
  SetMemoryAdvice(memory_advice);
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
  HandleSuspending(terminal_text.load() != nullptr);
}

EndWithMemoryLeft::EndWithMemoryLeft(std::function<int()> finish) {
  static std::function<int()> kept;
  kept = std::move(finish);
  reserve = std::make_unique<std::byte[]>(kReserveBytes);
  finish_without_memory = &kept;
}

EndWithMemoryLeft::~EndWithMemoryLeft() {
  finish_without_memory = nullptr;
  reserve.reset();
}

StopSentence::StopSentence(const char* sentence, CtrlC ctrl_c) {
  ctrl_c_exits = ctrl_c == CtrlC::kExit;
  stop_sentence = sentence;
}

StopSentence::~StopSentence() { stop_sentence = nullptr; }

}  // namespace cria::cli
