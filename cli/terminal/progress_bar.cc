#include "cli/terminal/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/terminal/printable.h"
#include "cli/terminal/terminal_columns.h"
#include "core/format.h"

namespace cria::cli {
namespace {

constexpr auto kMinInterval = std::chrono::milliseconds(80);

constexpr size_t kUsualColumns = 80;

}  // namespace

std::string TimeLeftText(uint64_t done, uint64_t total, std::chrono::duration<double> elapsed) {
  constexpr std::chrono::seconds kKnownAfter{10};
  constexpr int64_t kShortest = 10;
  if (done == 0 || done >= total || elapsed < kKnownAfter) return "";
  const double left =
      elapsed.count() * static_cast<double>(total - done) / static_cast<double>(done);
  const auto seconds = static_cast<int64_t>(left);
  if (seconds < kShortest) return "";
  if (seconds < 60) return Format(", {} s left", seconds / 10 * 10);
  const int64_t minutes = (seconds + 30) / 60;
  if (minutes < 60) return Format(", {} min left", minutes);
  return Format(", {} h {} min left", minutes / 60, minutes % 60);
}

ProgressBar::ProgressBar(std::string title, std::chrono::milliseconds quiet_time)
    : title_(std::move(title)),
      is_terminal_(CanRedraw()),
      first_line_(std::chrono::steady_clock::now() + quiet_time) {}

bool ProgressBar::CanRedraw() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

void ProgressBar::Clear() {
  if (!is_drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  is_drawn_ = false;
}

void ProgressBar::Update(uint64_t done, uint64_t total, std::string_view item) {
  const double fraction = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const auto now = std::chrono::steady_clock::now();
  // What begins again from less is another operation.
  if (!beginning_ || done < last_done_) {
    beginning_ = {done, now};
  } else {
    beginning_->done += skipped_;
  }
  skipped_ = 0;
  last_done_ = done;
  const std::string time_left =
      TimeLeftText(done - beginning_->done, total - beginning_->done, now - beginning_->time);
  if (!is_terminal_) return PrintLine(fraction, item, time_left);
  if (is_drawn_ && done < total && now - last_drawn_ < kMinInterval) return;
  last_drawn_ = now;
  Draw(fraction, item, time_left);
}

void ProgressBar::Draw(double fraction, std::string_view item, const std::string& time_left) {
  const std::string text = Printable(item) + time_left;
  constexpr size_t kMaxBarColumns = 40;
  std::string line = Format("{} {:3.0f}% ", title_, 100.0 * fraction);
  const size_t known_columns = TerminalColumns(stderr);
  const size_t columns = known_columns == 0 ? kUsualColumns : known_columns;
  const size_t text_columns = line.size() + text.size() + 4;
  if (columns > text_columns + 10) {
    const size_t width = std::min(columns - text_columns, kMaxBarColumns);
    const auto filled = static_cast<size_t>(fraction * static_cast<double>(width));
    line += Format("[{}{}] ", std::string(filled, '#'), std::string(width - filled, '.'));
  }
  line += text;
  // A line that wraps could not be drawn over.
  line = line.substr(0, columns - 1);
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
  is_drawn_ = true;
}

void ProgressBar::PrintLine(double fraction, std::string_view item, const std::string& time_left) {
  const int tenth = static_cast<int>(fraction * 10.0);
  if (tenth == last_tenth_ || std::chrono::steady_clock::now() < first_line_) return;
  last_tenth_ = tenth;
  std::fprintf(stderr, "%s: %d%% (%s%s)\n", title_.c_str(), tenth * 10, Printable(item).c_str(),
               time_left.c_str());
}

}  // namespace cria::cli
