#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cli/chat/line_editor.h"
#include "cli/input/text_file.h"

namespace cria::cli {

// Messages that a user types at a terminal. A message is one line, unless the line ends with a
// backslash, which stands for a line feed, or begins with """: then it ends with the next """ at
// the end of a line. A message of more lines than the bound allows is dropped, and a notice says
// so at its end.
class MessageReader {
 public:
  // `editor` must outlive the reader.
  MessageReader(LineEditor& editor, TextBound bound) : editor_(editor), bound_(std::move(bound)) {}

  // The next message, which may be empty, or nothing if the user leaves: by Ctrl-D, or by Ctrl-C
  // where nothing is typed. Ctrl-C drops what is typed.
  std::optional<std::string> Next();

 private:
  // The text of a message so far.
  struct Draft {
    std::string text;
    bool is_begun = false;
    bool is_quoted = false;  // Between """ and """.
    bool is_too_long = false;
  };
  // Returns whether the message is complete.
  static bool Add(std::string line, Draft& draft);

  LineEditor& editor_;
  TextBound bound_;
};

}  // namespace cria::cli
