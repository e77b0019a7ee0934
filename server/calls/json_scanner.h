#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/requests/json_bounds.h"

namespace cria::server {

inline bool IsJsonSpace(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

// The text without white space at its beginning.
inline std::string_view SkipJsonSpace(std::string_view text) {
  return {std::ranges::find_if_not(text, IsJsonSpace), text.end()};
}

// Follows the text of one JSON object or list, byte by byte and in fixed memory, and tells where
// the fields of some objects are: those of the text itself, or those of the objects in its list.
// Numbers and other words are only checked for their characters.
class JsonScanner {
 public:
  enum class Step : uint8_t {
    kInside,     // None of the others.
    kObject,     // The byte begins a watched object.
    kElement,    // The byte begins another value in a list of watched objects.
    kKey,        // The byte ends the name of a watched object's field: key().
    kValue,      // The byte begins the value of such a field.
    kValueEnd,   // The byte ends that value, if it is a string, an object or a list.
    kObjectEnd,  // The byte ends a watched object.
    kInvalid,    // The byte cannot follow: the text is no JSON, or nested too deep.
  };

  // Begins a text, whose first byte must be { or [. The objects at this depth are watched: 1 is the
  // text itself, 2 the elements of its list, 0 none.
  void Begin(size_t watched_depth);
  // After the text is complete or invalid, there must be a new one.
  Step Take(char byte);
  // Goes to behind a value of a watched object, which is open or has just ended.
  void GoToValueEnd();

  bool is_complete() const { return depth_ == 0 && expected_ == Expected::kNext; }
  size_t watched_depth() const { return watched_depth_; }
  // The last field's name. Long ones are cut off, and escapes stay as they are.
  const std::string& key() const { return key_; }

 private:
  enum class Expected : uint8_t { kValue, kFirstElement, kKey, kFirstKey, kColon, kNext };

  // Whether what is open at this depth is an object.
  bool IsObject(size_t depth) const { return depth > 0 && (objects_ >> (depth - 1) & 1) != 0; }
  bool is_watched() const { return depth_ == watched_depth_ && IsObject(depth_); }
  Step TakeStringByte(char byte);
  Step BeginValue(char byte);
  Step Close(char byte);

  size_t watched_depth_ = 0;
  size_t depth_ = 0;  // How many objects and lists are open.
  uint64_t objects_ = 0;
  static_assert(kMaxJsonDepth <= 64, "objects_ has a bit for each depth");
  Expected expected_ = Expected::kValue;
  bool is_in_word_ = false;  // A number, true, false or null.
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool is_key_ = false;  // The string is the name of a field.
  std::string key_;
};

}  // namespace cria::server
