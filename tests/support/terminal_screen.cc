#include "support/terminal_screen.h"

#include <vterm.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cria::support {
namespace {

void AppendUtf8(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const uint32_t lead[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(lead[more] | (code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    text += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
  }
}

int WidthOf(const VTermScreenCell& cell) { return std::max<int>(cell.width, 1); }

std::string TextOf(const VTermScreenCell& cell) {
  if (cell.chars[0] == 0) return " ";
  std::string text;
  for (const uint32_t code : cell.chars) {
    if (code == 0) break;
    AppendUtf8(text, code);
  }
  return text;
}

std::string LineOf(std::span<const VTermScreenCell> cells) {
  std::string line;
  for (size_t column = 0; column < cells.size();
       column += static_cast<size_t>(WidthOf(cells[column]))) {
    line += TextOf(cells[column]);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

int ColorOf(const VTermScreenCell& cell) {
  const bool is_one_of_16 = VTERM_COLOR_IS_INDEXED(&cell.fg) && cell.fg.indexed.idx < 16;
  return is_one_of_16 ? cell.fg.indexed.idx : -1;
}

// Drops spaces at both ends, each of which is a column.
void TrimSpaces(TerminalScreen::Run& run) {
  const size_t begin = run.text.find_first_not_of(' ');
  const size_t size = run.text.find_last_not_of(' ') + 1 - begin;
  run.columns -= static_cast<int>(run.text.size() - size);
  run.column += static_cast<int>(begin);
  run.text = run.text.substr(begin, size);
}

std::vector<TerminalScreen::Run> RunsOf(std::span<const VTermScreenCell> cells) {
  std::vector<TerminalScreen::Run> runs;
  for (size_t column = 0; column < cells.size();
       column += static_cast<size_t>(WidthOf(cells[column]))) {
    const VTermScreenCell& cell = cells[column];
    const TerminalScreen::Run next = {.column = static_cast<int>(column),
                                      .color = ColorOf(cell),
                                      .is_bold = cell.attrs.bold != 0};
    if (runs.empty() || runs.back().color != next.color || runs.back().is_bold != next.is_bold) {
      runs.push_back(next);
    }
    runs.back().columns += WidthOf(cell);
    runs.back().text += TextOf(cell);
  }
  std::erase_if(runs, [](const TerminalScreen::Run& run) {
    return run.text.find_first_not_of(' ') == run.text.npos;
  });
  std::ranges::for_each(runs, TrimSpaces);
  return runs;
}

}  // namespace

struct TerminalScreen::Vterm {
  Vterm(int rows, int columns) : terminal(vterm_new(rows, columns)) {
    vterm_set_utf8(terminal, 1);
    screen = vterm_obtain_screen(terminal);
    static constexpr VTermScreenCallbacks kCallbacks = {.sb_pushline = KeepScrolled};
    vterm_screen_set_callbacks(screen, &kCallbacks, this);
    vterm_screen_enable_reflow(screen, true);
    vterm_screen_reset(screen, 1);
  }
  ~Vterm() { vterm_free(terminal); }
  Vterm(const Vterm&) = delete;
  Vterm& operator=(const Vterm&) = delete;

  static int KeepScrolled(int columns, const VTermScreenCell* cells, void* self) {
    static_cast<Vterm*>(self)->scrolled += LineOf({cells, static_cast<size_t>(columns)}) + '\n';
    return 1;
  }

  std::vector<std::vector<VTermScreenCell>> Rows() const {
    int rows = 0;
    int columns = 0;
    vterm_get_size(terminal, &rows, &columns);
    std::vector<std::vector<VTermScreenCell>> cells(static_cast<size_t>(rows));
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        VTermScreenCell cell;
        vterm_screen_get_cell(screen, {row, column}, &cell);
        cells[static_cast<size_t>(row)].push_back(cell);
      }
    }
    return cells;
  }

  VTerm* terminal;
  VTermScreen* screen;
  std::string scrolled;
};

TerminalScreen::TerminalScreen(int rows, int columns)
    : vterm_(std::make_unique<Vterm>(rows, columns)) {}

TerminalScreen::~TerminalScreen() = default;

void TerminalScreen::Write(std::string_view bytes) {
  vterm_input_write(vterm_->terminal, bytes.data(), bytes.size());
}

void TerminalScreen::Resize(int rows, int columns) {
  vterm_set_size(vterm_->terminal, rows, columns);
}

std::string TerminalScreen::Visible() const {
  std::string text;
  for (const auto& cells : vterm_->Rows()) text += LineOf(cells) + '\n';
  text.resize(text.find_last_not_of('\n') + 1);
  return text + '\n';
}

std::vector<std::vector<TerminalScreen::Run>> TerminalScreen::VisibleRuns() const {
  std::vector<std::vector<Run>> rows;
  for (const auto& cells : vterm_->Rows()) rows.push_back(RunsOf(cells));
  while (!rows.empty() && rows.back().empty()) rows.pop_back();
  return rows;
}

const std::string& TerminalScreen::scrolled() const { return vterm_->scrolled; }

TerminalScreen::Cursor TerminalScreen::cursor() const {
  VTermPos position = {};
  vterm_state_get_cursorpos(vterm_obtain_state(vterm_->terminal), &position);
  return {.row = position.row, .column = position.col};
}

}  // namespace cria::support
