#include "support/terminal_screen.h"

#include <vterm.h>

#include <algorithm>
#include <cstdint>
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

std::string LineOf(const VTermScreenCell* cells, int columns) {
  std::string line;
  for (int column = 0; column < columns; column += std::max<int>(cells[column].width, 1)) {
    if (cells[column].chars[0] == 0) {
      line += ' ';
      continue;
    }
    for (const uint32_t code : cells[column].chars) {
      if (code == 0) break;
      AppendUtf8(line, code);
    }
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
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
    static_cast<Vterm*>(self)->scrolled += LineOf(cells, columns) + '\n';
    return 1;
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
  int rows = 0;
  int columns = 0;
  vterm_get_size(vterm_->terminal, &rows, &columns);
  std::string text;
  std::vector<VTermScreenCell> cells(static_cast<size_t>(columns));
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      vterm_screen_get_cell(vterm_->screen, {row, column}, &cells[static_cast<size_t>(column)]);
    }
    text += LineOf(cells.data(), columns) + '\n';
  }
  text.resize(text.find_last_not_of('\n') + 1);
  return text + '\n';
}

const std::string& TerminalScreen::scrolled() const { return vterm_->scrolled; }

TerminalScreen::Cursor TerminalScreen::cursor() const {
  VTermPos position = {};
  vterm_state_get_cursorpos(vterm_obtain_state(vterm_->terminal), &position);
  return {.row = position.row, .column = position.col};
}

}  // namespace cria::support
