#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/input/reasoning.h"
#include "cli/terminal/word_wrap.h"

namespace cria::cli {

enum class AnswerFormat : uint8_t {
  kText,  // Printed while it comes.
  kJson,  // Printed at its end, as one object with its figures.
};

struct AnswerStyle {
  AnswerFormat format = AnswerFormat::kText;
  bool shows_reasoning = false;
  bool wraps_words = false;  // To the width of the terminal.
  // What is written before and after a text, for example to color it.
  const char* begin_answer = "";
  const char* end_answer = "";
  const char* begin_reasoning = "";
  const char* end_reasoning = "";
};

// Prints one answer on standard output while it comes, and keeps its parts.
class AnswerPrinter {
 public:
  // `before_text` is called right before something is printed.
  AnswerPrinter(const AnswerStyle& style, const ReasoningTags& tags, bool begins_in_reasoning,
                std::function<void()> before_text);

  void Append(std::string_view text) { filter_.Append(text); }
  // Ends the answer; `is_complete` unless there was an error.
  void Finish(bool is_complete);

  const std::string& answer() const { return answer_; }
  const std::string& reasoning() const { return reasoning_; }

 private:
  void Take(AnswerPart part, std::string_view text);
  void Begin(AnswerPart part);
  void End();

  const AnswerStyle& style_;
  const std::function<void()> before_text_;
  WordWrap wrap_;
  ReasoningFilter filter_;
  std::string answer_;
  std::string reasoning_;
  bool is_printed_ = false;  // Something is.
  bool is_open_ = false;     // The text of `part_` has begun and not ended.
  AnswerPart part_ = AnswerPart::kAnswer;
};

}  // namespace cria::cli
