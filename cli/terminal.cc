#include "cli/terminal.h"

#include <histedit.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

namespace cria::cli {
namespace {

std::atomic<bool> interrupt_flag = false;
struct sigaction previous_action;

void OnInterrupt(int) { interrupt_flag.store(true, std::memory_order_relaxed); }

}  // namespace

bool IsTerminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

bool UseColor(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  return IsTerminal(stream) && (no_color == nullptr || *no_color == '\0');
}

InterruptGuard::InterruptGuard() {
  interrupt_flag = false;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous_action, nullptr); }

const std::atomic<bool>* InterruptGuard::flag() const { return &interrupt_flag; }

struct LineReader::Editor {
  EditLine* line = nullptr;
  History* history = nullptr;
  HistEvent event = {};
};

LineReader::LineReader(std::string prompt) : prompt_(std::move(prompt)) {
  if (!IsTerminal(stdin)) return;
  editor_ = new Editor;
  editor_->line = el_init("cria", stdin, stdout, stderr);
  editor_->history = history_init();
  history(editor_->history, &editor_->event, H_SETSIZE, 500);
  el_set(editor_->line, EL_CLIENTDATA, this);
  el_set(
      editor_->line, EL_PROMPT, +[](EditLine* line) -> char* {
        LineReader* reader = nullptr;
        el_get(line, EL_CLIENTDATA, &reader);
        return reader->prompt_.data();
      });
  el_set(editor_->line, EL_EDITOR, "emacs");
  el_set(editor_->line, EL_SIGNAL, 1);
  el_set(editor_->line, EL_HIST, history, editor_->history);
}

LineReader::~LineReader() {
  if (editor_ == nullptr) return;
  history_end(editor_->history);
  el_end(editor_->line);
  delete editor_;
}

std::optional<std::string> LineReader::Next() {
  if (editor_ == nullptr) return NextFromPipe();
  int length = 0;
  const char* text = el_gets(editor_->line, &length);
  if (text == nullptr || length <= 0) return std::nullopt;
  history(editor_->history, &editor_->event, H_ENTER, text);
  std::string line(text, static_cast<size_t>(length));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

std::optional<std::string> LineReader::NextFromPipe() {
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

}  // namespace cria::cli
