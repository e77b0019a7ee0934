#include "server/calls/json_scanner.h"

#include <string_view>

namespace cria::server {
namespace {

// No tool or field that is looked for has a longer name.
constexpr size_t kMaxKeyBytes = 32;

bool IsWordByte(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '+' || byte == '-' || byte == '.';
}

}  // namespace

void JsonScanner::Begin(size_t watched_depth) {
  watched_depth_ = watched_depth;
  depth_ = 0;
  expected_ = Expected::kValue;
  is_in_word_ = is_in_string_ = is_escaped_ = false;
}

void JsonScanner::GoToValueEnd() {
  depth_ = watched_depth_;
  objects_ |= uint64_t{1} << (depth_ - 1);
  expected_ = Expected::kNext;
  is_in_word_ = is_in_string_ = is_escaped_ = false;
}

JsonScanner::Step JsonScanner::Take(char byte) {
  if (is_in_string_) return TakeStringByte(byte);
  if (is_in_word_ && IsWordByte(byte)) return Step::kInside;
  is_in_word_ = false;
  if (IsJsonSpace(byte)) return Step::kInside;
  switch (expected_) {
    case Expected::kFirstElement:
      if (byte == ']') return Close(byte);
      [[fallthrough]];
    case Expected::kValue:
      return BeginValue(byte);
    case Expected::kFirstKey:
      if (byte == '}') return Close(byte);
      [[fallthrough]];
    case Expected::kKey:
      if (byte != '"') return Step::kInvalid;
      is_in_string_ = is_key_ = true;
      key_.clear();
      return Step::kInside;
    case Expected::kColon:
      if (byte != ':') return Step::kInvalid;
      expected_ = Expected::kValue;
      return Step::kInside;
    case Expected::kNext:
      break;
  }
  if (byte != ',') return Close(byte);
  expected_ = IsObject(depth_) ? Expected::kKey : Expected::kValue;
  return Step::kInside;
}

JsonScanner::Step JsonScanner::TakeStringByte(char byte) {
  if (static_cast<unsigned char>(byte) < ' ') return Step::kInvalid;
  if (byte != '"' || is_escaped_) {
    is_escaped_ = byte == '\\' && !is_escaped_;
    if (is_key_ && key_.size() < kMaxKeyBytes) key_ += byte;
    return Step::kInside;
  }
  is_in_string_ = false;
  expected_ = is_key_ ? Expected::kColon : Expected::kNext;
  if (!is_watched()) return Step::kInside;
  return is_key_ ? Step::kKey : Step::kValueEnd;
}

JsonScanner::Step JsonScanner::BeginValue(char byte) {
  constexpr std::string_view kWordBegins = "-0123456789tfn";
  const bool is_field = is_watched();
  const bool is_element = depth_ > 0 && depth_ + 1 == watched_depth_;
  expected_ = Expected::kNext;
  if (byte == '"') {
    is_in_string_ = true;
    is_key_ = false;
  } else if (byte == '{' || byte == '[') {
    if (depth_ == kMaxJsonDepth) return Step::kInvalid;
    const uint64_t bit = uint64_t{1} << depth_++;
    objects_ = byte == '{' ? objects_ | bit : objects_ & ~bit;
    expected_ = byte == '{' ? Expected::kFirstKey : Expected::kFirstElement;
    if (is_watched()) return Step::kObject;
  } else if (kWordBegins.contains(byte)) {
    is_in_word_ = true;
  } else {
    return Step::kInvalid;
  }
  return is_field ? Step::kValue : is_element ? Step::kElement : Step::kInside;
}

JsonScanner::Step JsonScanner::Close(char byte) {
  const bool is_object = IsObject(depth_);
  if (depth_ == 0 || byte != (is_object ? '}' : ']')) return Step::kInvalid;
  const bool was_watched = is_watched();
  --depth_;
  expected_ = Expected::kNext;
  if (was_watched) return Step::kObjectEnd;
  return is_watched() ? Step::kValueEnd : Step::kInside;
}

}  // namespace cria::server
