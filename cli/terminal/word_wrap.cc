#include "cli/terminal/word_wrap.h"

#include <algorithm>
#include <cwchar>
#include <utility>

#include "core/utf8.h"

namespace cria::cli {
namespace {

// What Markdown begins code with.
constexpr size_t kCodeIndent = 4;
constexpr size_t kFenceCharacters = 3;
constexpr size_t kTabColumns = 8;

bool IsBlank(wchar_t code) { return code == L' ' || code == L'\t'; }

// Whether an item of a list may begin with it.
bool BeginsItem(wchar_t code) {
  return code == L'-' || code == L'*' || code == L'+' || (code >= L'0' && code <= L'9');
}

}  // namespace

WordWrap::WordWrap(std::function<size_t()> columns, Write write)
    : columns_of_terminal_(std::move(columns)), write_(std::move(write)) {}

void WordWrap::Append(std::string_view text) {
  const size_t columns_before = std::exchange(columns_, columns_of_terminal_());
  if (columns_ == 0) {
    Finish();
    write_(text);
    return;
  }
  // The terminal has wrapped the row again.
  if (columns_ != columns_before) column_ %= columns_;
  input_ += text;
  std::string_view rest = input_;
  while (!rest.empty()) {
    const Utf8Character character = FirstUtf8Character(rest);
    if (character.state == Utf8State::kIncomplete) break;
    const std::string_view bytes = rest.substr(0, character.size_bytes);
    Add(bytes, character.state == Utf8State::kValid
                   ? static_cast<wchar_t>(CodePoint(bytes, bytes.size()))
                   : L'?');
    rest.remove_prefix(bytes.size());
  }
  input_.erase(0, input_.size() - rest.size());
}

void WordWrap::Finish() {
  word_ += std::exchange(input_, "");
  WriteHeld(1);
  column_ = 0;
  line_ = {};
  is_preformatted_ = false;
  fence_ = 0;
}

void WordWrap::Add(std::string_view character, wchar_t code) {
  if (code == L'\n') {
    WriteHeld(1);
    write_(character);
    return EndLine();
  }
  NoteBeginning(code);
  const auto width = static_cast<size_t>(std::max(wcwidth(code), 0));
  const bool is_blank = IsBlank(code);
  // A row may end before and after a wide character.
  if (!word_.empty() && (is_blank || width > 1)) WriteHeld(1);
  if (is_blank) {
    blanks_ += character;
    blanks_width_ += code == L' ' ? 1 : kTabColumns - (column_ + blanks_width_) % kTabColumns;
  } else {
    word_ += character;
    word_width_ += width;
  }
  const bool is_too_long = !is_blank && column_ + blanks_width_ + word_width_ > columns_;
  if (is_preformatted_ || width > 1 || is_too_long) WriteHeld(width);
}

void WordWrap::NoteBeginning(wchar_t code) {
  if (IsBlank(code)) {
    if (line_.first == 0) line_.indent += code == L' ' ? 1 : kCodeIndent;
  } else if (line_.first == 0) {
    line_.first = code;
    line_.num_first = 1;
    is_preformatted_ =
        fence_ != 0 || code == L'|' || (line_.indent >= kCodeIndent && !BeginsItem(code));
  } else if (code != line_.first) {
    line_.has_other = true;
  } else if (line_.has_other) {
    line_.has_first_again = true;
  } else {
    ++line_.num_first;
  }
}

// `last_width` is that of the last character, which begins a row if the terminal breaks the word.
void WordWrap::WriteHeld(size_t last_width) {
  const size_t end = column_ + blanks_width_ + word_width_;
  const bool fits = columns_ == 0 || end <= columns_;
  if (word_.empty() && !fits && !is_preformatted_) {
    // Blanks at the end of a line need no row of their own.
    if (column_ < columns_) write_(blanks_.substr(0, columns_ - column_));
    column_ = columns_;
  } else if (!fits && !is_preformatted_ && !blanks_.empty() && column_ > 0) {
    write_("\n");
    write_(word_);
    column_ = word_width_;
  } else {
    write_(blanks_ + word_);
    column_ = fits ? end : last_width;
  }
  blanks_.clear();
  word_.clear();
  blanks_width_ = word_width_ = 0;
}

void WordWrap::EndLine() {
  const bool is_fence = line_.num_first >= kFenceCharacters &&
                        (line_.first == L'~' || (line_.first == L'`' && !line_.has_first_again));
  if (is_fence && fence_ == 0) {
    fence_ = line_.first;
  } else if (is_fence && fence_ == line_.first && !line_.has_other) {
    fence_ = 0;
  }
  line_ = {};
  column_ = 0;
  is_preformatted_ = false;
}

}  // namespace cria::cli
