#include "server/api/text_answer.h"

#include <algorithm>
#include <utility>

#include "core/utf8.h"
#include "server/api/log_probability_json.h"

namespace cria::server {
namespace {

// The text of an object without its braces, or of a string without its quotation marks.
std::string Inside(const Json& value) {
  std::string text = Written(value);
  text.pop_back();
  text.erase(0, 1);
  return text;
}

// How many bytes at the end of the text begin a character that may go on.
size_t IncompleteBytes(std::string_view text) {
  for (size_t bytes = 1; bytes < std::min(kMaxUtf8Bytes, text.size() + 1); ++bytes) {
    const std::string_view end = text.substr(text.size() - bytes);
    if (FirstUtf8Character(end).state == Utf8State::kIncomplete) return bytes;
  }
  return 0;
}

}  // namespace

std::string TextAnswer::Members(const Json& object) { return Inside(object); }

void TextAnswer::Add(std::string_view json) {
  held_ += json;
  if (held_.size() <= kHeldBytes) return;
  if (!std::exchange(has_begun_, true)) response_.BeginText();
  response_.WriteText(held_);
  held_.clear();
}

void TextAnswer::AddCharacters(std::string_view text) {
  constexpr size_t kPieceBytes = 4096;
  while (!text.empty()) {
    character_ += text.substr(0, kPieceBytes);
    text.remove_prefix(std::min(kPieceBytes, text.size()));
    const size_t whole = character_.size() - IncompleteBytes(character_);
    Add(Inside(ValidText(std::string_view(character_).substr(0, whole))));
    character_.erase(0, whole);
  }
}

void TextAnswer::EndString() { Add(Inside(ValidText(std::exchange(character_, {})))); }

void TextAnswer::Finish() {
  if (!has_begun_) return response_.SendText(kJsonContentType, std::move(held_));
  response_.WriteText(held_);
  response_.EndText();
}

}  // namespace cria::server
