#include "jinja/string_functions.h"

#include <algorithm>
#include <limits>

namespace cria::jinja {
namespace {

// Collects the parts of a string that is split.
class Parts {
 public:
  Parts(Context& context, const Text& text) : context_(context), text_(text), parts_(context) {}

  void Add(size_t begin, size_t end) { parts_.Add(Slice(context_, text_, begin, end)); }
  Value TakeReversed() {
    std::ranges::reverse(parts_.items());
    return Take();
  }
  Value Take() const { return MakeList(context_, parts_.items()); }

 private:
  Context& context_;
  const Text& text_;
  Growing<Value> parts_;
};

Value SplitAtWhiteSpace(Context& context, const Text& text, int64_t most) {
  const std::string_view bytes = Flat(context, text);
  Parts parts(context, text);
  size_t begin = StrippedRange(bytes, true, false).first;
  while (begin < bytes.size() && !context.failed()) {
    if (most-- == 0) {
      parts.Add(begin, bytes.size());
      break;
    }
    size_t end = begin;
    while (end < bytes.size() && !IsWhiteSpace(bytes.substr(end))) {
      end += CharacterBytes(bytes.substr(end));
    }
    parts.Add(begin, end);
    begin = end;
    while (begin < bytes.size() && IsWhiteSpace(bytes.substr(begin))) {
      begin += CharacterBytes(bytes.substr(begin));
    }
  }
  return parts.Take();
}

Value SplitFromRight(Context& context, const Text& text, std::string_view separator, int64_t most) {
  const std::string_view bytes = Flat(context, text);
  Parts parts(context, text);
  size_t end = bytes.size();
  while (!context.failed()) {
    const size_t at = bytes.substr(0, end).rfind(separator);
    if (most-- == 0 || at == std::string_view::npos) break;
    parts.Add(at + separator.size(), end);
    end = at;
  }
  parts.Add(0, end);
  return parts.TakeReversed();
}

}  // namespace

Value ChangeCase(Context& context, const Text& text, LetterCase letter_case) {
  switch (letter_case) {
    case LetterCase::kUpper:
      return ChangeBytes(context, text, [](char, char byte) { return ToUpper(byte); });
    case LetterCase::kLower:
      return ChangeBytes(context, text, [](char, char byte) { return ToLower(byte); });
    case LetterCase::kTitle:
      return ChangeBytes(context, text, [](char before, char byte) {
        return IsLetter(before) ? ToLower(byte) : ToUpper(byte);
      });
    case LetterCase::kWords:
      return ChangeBytes(context, text, [](char before, char byte) {
        constexpr std::string_view kBeforeWords = " \t\n\r\f\v-({[<";
        return kBeforeWords.contains(before) ? ToUpper(byte) : ToLower(byte);
      });
    case LetterCase::kCapitalized:
      break;
  }
  const Value lower = ChangeCase(context, text, LetterCase::kLower);
  if (text.size_bytes == 0) return lower;
  const Value first = Slice(context, *lower.text, 0, 1);
  TextBuilder capitalized(context);
  capitalized.Add(*ChangeCase(context, *first.text, LetterCase::kUpper).text);
  capitalized.Add(*Slice(context, *lower.text, 1, text.size_bytes).text);
  return capitalized.Take();
}

Value Strip(Context& context, const Text& text, bool left, bool right, const Value& characters) {
  context.ChargeBytes(text.size_bytes);
  const std::string_view removed =
      characters.is_absent() ? std::string_view() : Flat(context, ToText(context, characters));
  // An empty argument removes nothing, not white space.
  if (!characters.is_absent() && removed.empty()) return String(&text);
  const auto [begin, end] = StrippedRange(Flat(context, text), left, right, removed);
  return Slice(context, text, begin, end);
}

Value Replace(Context& context, const Text& text, const Text& old, const Text& replacement,
              int64_t most) {
  const std::string_view bytes = Flat(context, text);
  const std::string_view searched = Flat(context, old);
  if (searched.empty()) {
    context.Fail({"replacing the empty string is not supported"});
    return {};
  }
  context.ChargeBytes(bytes.size());
  TextBuilder replaced(context);
  size_t begin = 0;
  for (; most != 0 && !context.failed(); --most) {
    const size_t at = bytes.find(searched, begin);
    if (at == std::string_view::npos) break;
    replaced.Add(*Slice(context, text, begin, at).text);
    replaced.Add(replacement);
    begin = at + searched.size();
  }
  replaced.Add(*Slice(context, text, begin, bytes.size()).text);
  return replaced.Take();
}

Value Split(Context& context, const Text& text, const Value& separator, int64_t most,
            bool from_right) {
  context.ChargeBytes(text.size_bytes);
  if (separator.is_absent()) {
    if (from_right && most >= 0) {
      context.Fail({"rsplit() at white space with a limit is not supported"});
    }
    return SplitAtWhiteSpace(context, text, most);
  }
  const std::string_view cut = Flat(context, ToText(context, separator));
  if (cut.empty()) {
    context.Fail({"a string cannot be split at an empty one"});
    return {};
  }
  if (from_right) return SplitFromRight(context, text, cut, most);
  const std::string_view bytes = Flat(context, text);
  Parts parts(context, text);
  size_t begin = 0;
  while (!context.failed()) {
    const size_t at = bytes.find(cut, begin);
    if (most-- == 0 || at == std::string_view::npos) break;
    parts.Add(begin, at);
    begin = at + cut.size();
  }
  parts.Add(begin, bytes.size());
  return parts.Take();
}

Value SplitLines(Context& context, const Text& text, bool keeps_ends) {
  const std::string_view bytes = Flat(context, text);
  context.ChargeBytes(bytes.size());
  Parts parts(context, text);
  for (size_t begin = 0; begin < bytes.size() && !context.failed();) {
    const size_t end = std::min(bytes.find_first_of("\r\n", begin), bytes.size());
    const size_t end_bytes = end == bytes.size()                     ? 0
                             : bytes.substr(end).starts_with("\r\n") ? 2
                                                                     : 1;
    parts.Add(begin, keeps_ends ? end + end_bytes : end);
    begin = end + end_bytes;
  }
  return parts.Take();
}

Value Join(Context& context, std::span<const Value> items, const Text& separator) {
  TextBuilder joined(context);
  for (size_t i = 0; i < items.size() && !context.failed(); ++i) {
    if (i > 0) joined.Add(separator);
    joined.Add(ToText(context, items[i]));
  }
  return joined.Take();
}

Value Indent(Context& context, const Text& text, const Text& prefix, bool first, bool blank) {
  const Value lines = SplitLines(context, text, /*keeps_ends=*/true);
  TextBuilder indented(context);
  for (const Value& line : lines.list->items) {
    const bool is_first = &line == lines.list->items.data();
    const std::string_view bytes = Flat(context, *line.text);
    const bool is_blank = StrippedRange(bytes, true, true).first == bytes.size();
    if (is_first ? first : !is_blank || blank) indented.Add(prefix);
    indented.Add(*line.text);
  }
  return indented.Take();
}

}  // namespace cria::jinja
