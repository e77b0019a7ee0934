#include "cli/terminal/terminal.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace cria::cli {
namespace {

bool IsOwnTerminal(int stream) { return isatty(stream) == 1; }

bool (*is_terminal)(int stream) = IsOwnTerminal;
std::atomic<bool> interrupt_flag = false;
struct sigaction previous_action;

void OnInterrupt(int) { interrupt_flag.store(true, std::memory_order_relaxed); }

}  // namespace

bool IsTerminal(std::FILE* stream) { return is_terminal(fileno(stream)); }

void SetTerminalTest(bool (*test)(int stream)) { is_terminal = test; }

bool UseColor(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  return IsTerminal(stream) && (no_color == nullptr || *no_color == '\0');
}

InterruptGuard::InterruptGuard() {
  interrupt_flag = false;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  // A write that waits for the terminal, or for the reader of a pipe, must not fail.
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous_action, nullptr); }

const std::atomic<bool>* InterruptGuard::flag() const { return &interrupt_flag; }

}  // namespace cria::cli
