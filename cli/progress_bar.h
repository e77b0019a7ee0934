#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace cria::cli {

// Progress of something long, on stderr: one line that is drawn again and again on a terminal, and
// elsewhere a plain line at every tenth of the way.
class ProgressBar {
 public:
  // Where it is not drawn, nothing is printed before `quiet_time`: what is over by then needs no
  // progress.
  explicit ProgressBar(std::string title, std::chrono::milliseconds quiet_time = {});
  // Removes the line from the terminal.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `item` names what is being done now. May be called as often as one likes.
  void Update(uint64_t done, uint64_t total, std::string_view item);

 private:
  void Draw(double fraction, std::string_view item);
  void PrintLine(double fraction, std::string_view item);

  std::string title_;
  bool is_terminal_;
  bool is_drawn_ = false;
  int last_tenth_ = -1;
  std::chrono::steady_clock::time_point first_line_;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace cria::cli
