#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/terminal_screen.h"

namespace cria::support {

struct TerminalOptions {
  int rows = 24;
  int columns = 80;
  std::vector<std::string> environment;  // NAME=VALUE, added to this process's environment.
  std::string working_directory;         // Empty: this process's.
};

// A program at a terminal of its own, whose keys the test types and whose screen it reads. The
// screen is a TerminalScreen.
class TerminalProgram {
 public:
  // Throws std::runtime_error if it cannot be started.
  explicit TerminalProgram(const std::vector<std::string>& arguments,
                           const TerminalOptions& options = {});
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;
  // Kills the program, if it still runs.
  ~TerminalProgram();

  // Sends keys, as a terminal encodes them: "\r" is Enter, "\x03" Ctrl-C, "\033\r" Alt-Enter.
  void Type(std::string_view keys);
  // Sends a text as a terminal does when it is pasted: bracketed, if the program asked for that.
  void Paste(std::string_view text);
  void Resize(int rows, int columns);
  void Signal(int number) const;

  // Waits until the screen, or what has scrolled off it, has the text. Returns false after 60
  // seconds (300 under emulation), or when the program has ended without it.
  bool WaitFor(std::string_view text);
  // Waits until the text is there `times` times.
  bool WaitFor(std::string_view text, int times);
  // Waits until this is so, for as long.
  bool WaitUntil(const std::function<bool()>& is_so);
  // How many times the text was there when the functions above returned.
  int Count(std::string_view text) const;
  // Waits until the program writes nothing for some time.
  void WaitUntilQuiet();
  // What the screen shows, and what has scrolled off it: lines without spaces at their ends.
  std::string Screen() const;
  // Returns what is on the screen alone.
  std::string VisibleScreen() const;
  TerminalScreen::Cursor cursor() const { return screen_.cursor(); }
  const TerminalScreen& screen() const { return screen_; }
  // Everything that the program has written.
  const std::string& output() const { return output_; }
  pid_t process() const { return process_; }

  // Waits for the program's end. Returns its exit code, or minus the signal that ended it; throws
  // after as many seconds.
  int WaitForEnd();

 private:
  // Takes what the program writes within `milliseconds`. Returns false if it wrote nothing.
  bool Pump(int milliseconds);
  void Send(std::string_view bytes);

  TerminalScreen screen_;
  std::string output_;
  pid_t process_ = -1;
  int terminal_ = -1;
  bool is_open_ = true;
};

}  // namespace cria::support
