#include "cli/chat/answer_printer.h"

#include <cstdio>
#include <utility>

#include "cli/terminal/terminal_columns.h"

namespace cria::cli {

AnswerPrinter::AnswerPrinter(const AnswerStyle& style, const ReasoningTags& tags,
                             bool begins_in_reasoning, std::function<void()> before_text)
    : style_(style),
      before_text_(std::move(before_text)),
      wrap_([this] { return style_.wraps_words ? TerminalColumns(stdout) : 0; },
            [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }),
      filter_(tags, begins_in_reasoning,
              [this](AnswerPart part, std::string_view text) { Take(part, text); }) {}

void AnswerPrinter::Take(AnswerPart part, std::string_view text) {
  (part == AnswerPart::kAnswer ? answer_ : reasoning_) += text;
  const bool is_shown = part == AnswerPart::kAnswer || style_.shows_reasoning;
  if (style_.format == AnswerFormat::kJson || !is_shown || text.empty()) return;
  if (!is_open_ || part != part_) Begin(part);
  wrap_.Append(text);
  std::fflush(stdout);
}

void AnswerPrinter::Begin(AnswerPart part) {
  before_text_();
  if (is_open_) {
    End();
    std::fputs("\n\n", stdout);
  }
  part_ = part;
  is_open_ = is_printed_ = true;
  std::fputs(part == AnswerPart::kAnswer ? style_.begin_answer : style_.begin_reasoning, stdout);
}

void AnswerPrinter::End() {
  wrap_.Finish();
  std::fputs(part_ == AnswerPart::kAnswer ? style_.end_answer : style_.end_reasoning, stdout);
  is_open_ = false;
}

void AnswerPrinter::Finish(bool is_complete) {
  filter_.Flush();
  if (is_open_) End();
  if (style_.format == AnswerFormat::kText && (is_complete || is_printed_))
    std::fputc('\n', stdout);
  std::fflush(stdout);
}

}  // namespace cria::cli
