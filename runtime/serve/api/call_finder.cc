#include "serve/api/call_finder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

constexpr std::string_view kJsonSpace = " \t\r\n";

// Removes white space and then `expected`. Returns whether all of it was there; `text` is empty
// afterwards if it ended before that was certain.
bool TakeAfterSpace(std::string_view& text, std::string_view expected, bool& may_follow) {
  text.remove_prefix(std::min(text.find_first_not_of(kJsonSpace), text.size()));
  if (text.starts_with(expected)) {
    text.remove_prefix(expected.size());
    return true;
  }
  may_follow = expected.starts_with(text);
  return false;
}

}  // namespace

CallFinder::CallFinder(const ToolFormat& format)
    : opening_bytes_(format.opening().size()), may_be_bare_(format.may_be_bare()) {
  opening_ = ValueOf(StopStrings::Create({std::string(format.opening())}));
}

CallFinder::Bare CallFinder::FindBare(std::string_view text) {
  // {"name": or {"type": "function", …, as far as it goes.
  bool may_follow = false;
  if (!TakeAfterSpace(text, "{", may_follow)) return may_follow ? Bare::kPerhaps : Bare::kNo;
  static constexpr std::array<std::string_view, 2> kFirstFields = {"\"name\"", "\"type\""};
  bool may_be_any = false;
  for (const std::string_view field : kFirstFields) {
    std::string_view rest = text;
    if (TakeAfterSpace(rest, field, may_follow) && TakeAfterSpace(rest, ":", may_follow)) {
      return Bare::kYes;
    }
    may_be_any = may_be_any || may_follow;
  }
  return may_be_any ? Bare::kPerhaps : Bare::kNo;
}

std::string CallFinder::Search(std::string_view text) {
  std::string passed;
  for (const std::string_view part : opening_.Append(text)) passed += part;
  passed_bytes_ += passed.size();
  if (opening_.is_found()) {
    is_found_ = true;
    begin_ = passed_bytes_;
    content_begin_ = begin_ + opening_bytes_;
  }
  return passed;
}

std::string CallFinder::Append(std::string_view text) {
  if (is_found_) return "";
  if (!may_be_bare_) return Search(text);
  held_ += text;
  switch (FindBare(held_)) {
    case Bare::kPerhaps:
      return "";
    case Bare::kYes:
      is_found_ = true;
      begin_ = content_begin_ = held_.find('{');
      return "";
    case Bare::kNo:
      break;
  }
  may_be_bare_ = false;
  return Search(std::exchange(held_, {}));
}

std::string CallFinder::Flush() {
  if (is_found_) return "";
  std::string rest = std::exchange(held_, {});
  if (may_be_bare_) {
    may_be_bare_ = false;
    return rest;
  }
  return std::string(opening_.Flush());
}

}  // namespace cria::serve
