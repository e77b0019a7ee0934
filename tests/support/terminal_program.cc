#include "support/terminal_program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "support/emulation.h"

namespace cria::support {
namespace {

using Clock = std::chrono::steady_clock;

const auto kPatience = std::chrono::seconds(IsEmulated() ? 300 : 60);
const int kQuietMilliseconds = IsEmulated() ? 1500 : 300;

winsize SizeOf(int rows, int columns) {
  return {.ws_row = static_cast<unsigned short>(rows),
          .ws_col = static_cast<unsigned short>(columns),
          .ws_xpixel = 0,
          .ws_ypixel = 0};
}

}  // namespace

TerminalProgram::TerminalProgram(const std::vector<std::string>& arguments,
                                 const TerminalOptions& options)
    : screen_(options.rows, options.columns) {
  winsize size = SizeOf(options.rows, options.columns);
  process_ = forkpty(&terminal_, nullptr, nullptr, &size);
  if (process_ < 0) throw std::runtime_error("cannot make a terminal");
  if (process_ == 0) {
    putenv(const_cast<char*>("TERM=xterm-256color"));
    for (const std::string& variable : options.environment) {
      putenv(const_cast<char*>(variable.c_str()));
    }
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) {
      pointers.push_back(const_cast<char*>(argument.c_str()));
    }
    pointers.push_back(nullptr);
    if (options.working_directory.empty() || chdir(options.working_directory.c_str()) == 0) {
      execvp(pointers[0], pointers.data());
    }
    _exit(127);
  }
  fcntl(terminal_, F_SETFD, FD_CLOEXEC);
}

TerminalProgram::~TerminalProgram() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  close(terminal_);
}

void TerminalProgram::Send(std::string_view bytes) {
  while (!bytes.empty() && is_open_) {
    // The terminal takes a few kilobytes at once; the program's echo must be read meanwhile.
    const ssize_t count = write(terminal_, bytes.data(), std::min<size_t>(bytes.size(), 1024));
    if (count <= 0) throw std::runtime_error("cannot type");
    bytes.remove_prefix(static_cast<size_t>(count));
    Pump(0);
  }
}

void TerminalProgram::Type(std::string_view keys) { Send(keys); }

void TerminalProgram::Paste(std::string_view text) {
  const size_t on = output_.rfind("\033[?2004h");
  const size_t off = output_.rfind("\033[?2004l");
  const bool is_bracketed = on != output_.npos && (off == output_.npos || off < on);
  std::string bytes(text);
  std::ranges::replace(bytes, '\n', '\r');
  Send(is_bracketed ? "\033[200~" + bytes + "\033[201~" : bytes);
}

void TerminalProgram::Resize(int rows, int columns) {
  Pump(0);
  screen_.Resize(rows, columns);
  const winsize size = SizeOf(rows, columns);
  ioctl(terminal_, TIOCSWINSZ, &size);
}

void TerminalProgram::Signal(int number) const { kill(process_, number); }

bool TerminalProgram::Pump(int milliseconds) {
  bool has_read = false;
  while (is_open_) {
    pollfd descriptor = {terminal_, POLLIN, 0};
    if (poll(&descriptor, 1, has_read ? 0 : milliseconds) <= 0) break;
    char bytes[4096];
    const ssize_t count = read(terminal_, bytes, sizeof bytes);
    if (count <= 0) {
      is_open_ = false;  // All processes have closed it.
      break;
    }
    has_read = true;
    output_.append(bytes, static_cast<size_t>(count));
    screen_.Write({bytes, static_cast<size_t>(count)});
  }
  return has_read;
}

bool TerminalProgram::WaitFor(std::string_view text) { return WaitFor(text, 1); }

bool TerminalProgram::WaitFor(std::string_view text, int times) {
  return WaitUntil([&] { return Count(text) >= times; });
}

bool TerminalProgram::WaitUntil(const std::function<bool()>& is_so) {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    Pump(0);
    if (is_so()) return true;
    if (!is_open_ || Clock::now() >= deadline) return false;
    Pump(20);
  }
}

int TerminalProgram::Count(std::string_view text) const {
  const std::string screen = Screen();
  int count = 0;
  for (size_t at = screen.find(text); at != screen.npos; at = screen.find(text, at + text.size())) {
    ++count;
  }
  return count;
}

void TerminalProgram::WaitUntilQuiet() {
  while (Pump(kQuietMilliseconds)) {
  }
}

std::string TerminalProgram::VisibleScreen() const { return screen_.Visible(); }

std::string TerminalProgram::Screen() const { return screen_.scrolled() + VisibleScreen(); }

int TerminalProgram::WaitForEnd() {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    int status = 0;
    Pump(5);
    if (waitpid(process_, &status, WNOHANG) == process_) {
      Pump(0);
      process_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    if (Clock::now() >= deadline)
      throw std::runtime_error("the program does not end:\n" + Screen());
    if (!is_open_) usleep(5000);
  }
}

}  // namespace cria::support
