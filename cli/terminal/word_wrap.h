#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace cria::cli {

// Breaks the lines of a text for a terminal that is as wide as `columns` returns, while the text
// comes in parts: a word that does not fit the row begins the next one, and a line feed takes the
// place of the blanks before it. Until then, only the word and these blanks are held back. The
// terminal itself breaks longer words, between wide characters, and what is preformatted: code
// between fences or behind four blanks, and rows of tables.
class WordWrap {
 public:
  using Write = std::function<void(std::string_view text)>;
  // If the width is 0, no line is broken.
  WordWrap(std::function<size_t()> columns, Write write);

  void Append(std::string_view text);
  // Writes what is held back. The next text begins a row.
  void Finish();

 private:
  // What matters of the beginning of a line.
  struct LineBeginning {
    size_t indent = 0;
    wchar_t first = 0;     // The first character that is not a blank; 0: there is none yet.
    size_t num_first = 0;  // How often it stands there.
    bool has_other = false;
    bool has_first_again = false;  // After others.
  };
  void Add(std::string_view character, wchar_t code);
  void NoteBeginning(wchar_t code);
  void WriteHeld(size_t last_width);
  void EndLine();

  const std::function<size_t()> columns_of_terminal_;
  const Write write_;
  size_t columns_ = 0;
  size_t column_ = 0;  // In the row; `columns_` if it is full.
  std::string input_;  // The beginning of a character.
  // What is held back.
  std::string blanks_;
  size_t blanks_width_ = 0;
  std::string word_;
  size_t word_width_ = 0;

  LineBeginning line_;
  bool is_preformatted_ = false;  // The line.
  wchar_t fence_ = 0;             // The line is between fences of this character.
};

}  // namespace cria::cli
