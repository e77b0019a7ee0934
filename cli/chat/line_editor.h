#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

// Lines that a user types at a terminal, edited with libedit and remembered in a history. A line
// may contain line feeds, from Alt-Enter or from a pasted text. One object at a time, because
// signal handlers and the terminal's settings belong to the process.
class LineEditor {
 public:
  // Returns all words that the beginning of a line can be completed to.
  using Completer = std::function<std::vector<std::string>(std::string_view beginning)>;

  explicit LineEditor(Completer complete);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  // Remembers entries in this file from now on, which only its owner may read, and takes over what
  // is there. After an error, entries are remembered only in memory.
  Status KeepHistory(const std::string& path);
  void AddToHistory(const std::string& entry);

  enum class End : uint8_t {
    kEnter,
    kInterrupt,         // Ctrl-C on a line with text, which is lost.
    kInterruptOnEmpty,  // Ctrl-C on an empty line.
    kEndOfInput,        // Ctrl-D on an empty line, or the terminal is gone.
  };
  struct Line {
    End end = End::kEndOfInput;
    std::string text;  // UTF-8, without the line feed of Enter.
  };
  // Reads a line after `prompt`. The terminal is as before afterwards.
  Line Read(const std::string& prompt);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace cria::cli
