#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "llm/stop_strings.h"
#include "serve/api/tool_format.h"

namespace cria::serve {

// Looks for the beginning of a call in the text of an answer, while it comes. What may become one
// is held back.
class CallFinder {
 public:
  explicit CallFinder(const ToolFormat& format);

  // Returns the text that certainly comes before a call.
  std::string Append(std::string_view text);
  // Ends the text. Returns what was held back.
  std::string Flush();

  bool is_found() const { return is_found_; }
  // Where the call or its opening begins, in bytes of the whole text.
  size_t begin() const { return begin_; }
  // Where the text behind the opening begins: the same for a call without one.
  size_t content_begin() const { return content_begin_; }

 private:
  enum class Bare : uint8_t { kNo, kPerhaps, kYes };

  // Whether the text begins an object whose first field is one of a call.
  static Bare FindBare(std::string_view text);
  std::string Search(std::string_view text);

  size_t opening_bytes_;
  bool may_be_bare_;  // Nothing but white space and the beginning of an object came so far.
  std::string held_;  // While it may be bare.
  StopStrings opening_;
  size_t passed_bytes_ = 0;
  bool is_found_ = false;
  size_t begin_ = 0;
  size_t content_begin_ = 0;
};

}  // namespace cria::serve
