#include "support/terminal_picture.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cli/plot/svg_text.h"
#include "core/format.h"

namespace cria::support {
namespace {

// In pixels.
constexpr double kFontSize = 14.0;
constexpr double kColumnWidth = 8.4;
constexpr double kRowHeight = 20.0;
constexpr double kMargin = 18.0;

// The colours of a terminal in the order of their numbers, of which those from 8 on are brighter.
struct Palette {
  const char* page;
  const char* ink;
  const char* frame;
  std::array<const char*, 8> colors;
};
constexpr Palette kLight = {.page = "#ffffff",
                            .ink = "#1f2328",
                            .frame = "#d1d9e0",
                            .colors = {"#1f2328", "#b3261e", "#1a7f37", "#7d5700", "#0757ba",
                                       "#8250df", "#10666f", "#59636e"}};
constexpr Palette kDark = {.page = "#0d1117",
                           .ink = "#e6edf3",
                           .frame = "#3d444d",
                           .colors = {"#9198a1", "#ff8a80", "#56d364", "#e3b341", "#79b8ff",
                                      "#d2a8ff", "#56d4dd", "#e6edf3"}};

std::string Rules(const Palette& palette) {
  std::string rules = Format(".page{{fill:{};stroke:{}}}text,.cursor{{fill:{}}}", palette.page,
                             palette.frame, palette.ink);
  for (size_t i = 0; i < palette.colors.size(); ++i) {
    rules += Format(".c{}{{fill:{}}}", i, palette.colors[i]);
  }
  return rules;
}

// A run, as wide as its columns, whatever the reader's font is.
std::string Element(const TerminalScreen::Run& run, double y) {
  std::string attributes;
  if (run.color >= 0) attributes += Format(" class=\"c{}\"", run.color % 8);
  if (run.is_bold) attributes += " style=\"font-weight:600\"";
  return Format("<text x=\"{}\" y=\"{}\" textLength=\"{}\"{}>{}</text>\n",
                cli::Pixels(kMargin + kColumnWidth * run.column), cli::Pixels(y),
                cli::Pixels(kColumnWidth * run.columns), attributes, cli::Escaped(run.text));
}

}  // namespace

std::string TerminalPicture(const TerminalScreen& screen, std::string_view title) {
  const std::vector<std::vector<TerminalScreen::Run>> rows = screen.VisibleRuns();
  int columns = 1;
  for (const std::vector<TerminalScreen::Run>& row : rows) {
    if (!row.empty()) columns = std::max(columns, row.back().column + row.back().columns);
  }
  const double width = 2.0 * kMargin + kColumnWidth * columns;
  const double height = 2.0 * kMargin + kRowHeight * static_cast<double>(rows.size());
  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n<style>text{{font:{3}px "
      "ui-monospace,'DejaVu Sans Mono',Menlo,monospace;white-space:pre}}{4}"
      "@media(prefers-color-scheme:dark){{{5}}}</style>\n<rect class=\"page\" x=\"0.5\" y=\"0.5\" "
      "width=\"{6}\" height=\"{7}\" rx=\"8\"/>\n",
      cli::Pixels(width), cli::Pixels(height), cli::Escaped(title), kFontSize, Rules(kLight),
      Rules(kDark), cli::Pixels(width - 1.0), cli::Pixels(height - 1.0));
  double y = kMargin + kFontSize;
  for (const std::vector<TerminalScreen::Run>& row : rows) {
    for (const TerminalScreen::Run& run : row) svg += Element(run, y);
    y += kRowHeight;
  }
  const TerminalScreen::Cursor cursor = screen.cursor();
  svg += Format("<rect class=\"cursor\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                cli::Pixels(kMargin + kColumnWidth * cursor.column),
                cli::Pixels(kMargin + kRowHeight * cursor.row), cli::Pixels(kColumnWidth),
                cli::Pixels(kFontSize + 4.0));
  return svg + "</svg>\n";
}

}  // namespace cria::support
