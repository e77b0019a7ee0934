#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria {

// Looks for strings that end a text while the text comes piece by piece. The end of a piece that
// may be the beginning of such a string is held back until that is certain. The result does not
// depend on how the text is divided: the text ends before the stop string that is complete first,
// the longest one if several are complete at once.
class StopStrings {
 public:
  StopStrings() = default;
  // Fails if a string is empty, or is not valid UTF-8 and so would never be found.
  static Result<StopStrings> Create(std::vector<std::string> strings);

  // Begins a new text.
  void Restart();
  // Adds a piece of whole characters. Returns the text that is certain to come before the first
  // stop string, in two parts: what was held back, and what is in `piece`. Both end with a whole
  // character and are valid as long as `piece` and this object. After a stop string was found, they
  // are empty. Allocates nothing.
  std::array<std::string_view, 2> Append(std::string_view piece);
  // Ends the text. Returns what was held back.
  std::string_view Flush();

  bool is_found() const { return is_found_; }
  // The stop string that was found; "" if there is none.
  std::string_view found() const {
    return is_found_ ? std::string_view(patterns_[found_].text) : "";
  }
  // The maximum length of the parts that Append returns first, and of Flush.
  size_t longest_bytes() const { return longest_bytes_; }

 private:
  // One string, searched for as by Knuth, Morris and Pratt.
  struct Pattern {
    std::string text;
    // For each number of bytes at the beginning of `text`, minus 1: the length of their longest
    // shorter beginning that is also their end.
    std::vector<uint32_t> borders;
    size_t matched = 0;  // The length of the longest beginning with which the text so far ends.

    // Whether the string is complete with `byte`.
    bool Add(char byte);
  };

  // What is held back: the longest beginning of a stop string with which the text ends.
  std::string_view Held() const;

  std::vector<Pattern> patterns_;
  size_t longest_bytes_ = 0;
  bool is_found_ = false;
  size_t found_ = 0;  // The index of the pattern.
};

}  // namespace cria
