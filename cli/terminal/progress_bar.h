#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace cria::cli {

// ", 40 s left", ", 12 min left" or ", 1 h 10 min left", if `done` of `total` took this time; "" at
// first, when nobody could know, and near the end.
std::string TimeLeftText(uint64_t done, uint64_t total, std::chrono::duration<double> elapsed);

// Progress of a long operation, on stderr: on a terminal one line that is redrawn, elsewhere a new
// line after every tenth. Of what takes long, it says how much time is left.
class ProgressBar {
 public:
  // If the bar is not drawn on a terminal, nothing is printed before `quiet_time`, because short
  // operations need no progress.
  explicit ProgressBar(std::string title, std::chrono::milliseconds quiet_time = {});
  // Removes the line from the terminal.
  ~ProgressBar() { Clear(); }
  // Whether a bar is drawn and not printed line by line: on a terminal that can clear a line.
  static bool CanRedraw();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `item` names the current step. May be called often.
  void Update(uint64_t done, uint64_t total, std::string_view item);
  // The next update's `done` has this much that took no time, which says nothing of the time left.
  void Skip(uint64_t amount) { skipped_ += amount; }
  // Removes the line from the terminal. Call it before results are printed.
  void Clear();

 private:
  void Draw(double fraction, std::string_view item, const std::string& time_left);
  void PrintLine(double fraction, std::string_view item, const std::string& time_left);

  std::string title_;
  bool is_terminal_;
  bool is_drawn_ = false;
  int last_tenth_ = -1;
  // An operation may begin behind what an earlier run has done.
  struct Beginning {
    uint64_t done;
    std::chrono::steady_clock::time_point time;
  };
  std::optional<Beginning> beginning_;
  uint64_t last_done_ = 0;
  uint64_t skipped_ = 0;
  std::chrono::steady_clock::time_point first_line_;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace cria::cli
