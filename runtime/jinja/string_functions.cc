#include "jinja/string_functions.h"

#include <algorithm>
#include <limits>

#include "jinja/operators.h"

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

Value SplitAtWhiteSpace(Context& context, const Text& text, int64_t max_splits) {
  const std::string_view bytes = Flat(context, text);
  Parts parts(context, text);
  size_t begin = StrippedRange(bytes, true, false).first;
  while (begin < bytes.size() && !context.failed()) {
    if (max_splits-- == 0) {
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

// The length of the line break at the beginning of `bytes`, as Python defines it, or 0.
size_t LineEndBytes(std::string_view bytes) {
  // Most bytes do not begin a line break.
  const auto first = static_cast<unsigned char>(bytes.empty() ? ' ' : bytes[0]);
  if (first > 0x1E && first != 0xC2 && first != 0xE2) return 0;
  for (const std::string_view end : {"\r\n", "\n", "\r", "\v", "\f", "\x1C", "\x1D", "\x1E",
                                     "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    if (bytes.starts_with(end)) return end.size();
  }
  return 0;
}

// Splits at white space at most `max_splits` times, from the right.
Value SplitAtWhiteSpaceFromRight(Context& context, const Text& text, int64_t max_splits) {
  const Value words = SplitAtWhiteSpace(context, text, -1);
  const auto all = words.list->items;
  if (context.failed() || static_cast<int64_t>(all.size()) <= max_splits) return words;
  // The text before the last words stays one part, with the white space at its beginning.
  const std::string_view bytes = Flat(context, text);
  const size_t first_words = all.size() - static_cast<size_t>(max_splits);
  size_t cut = 0;
  for (size_t i = 0; i < first_words; ++i) {
    while (IsWhiteSpace(bytes.substr(cut))) cut += CharacterBytes(bytes.substr(cut));
    cut += all[i].text->size_bytes;
  }
  Growing<Value> parts(context);
  parts.Add(Slice(context, text, 0, cut));
  for (const Value& word : all.subspan(first_words)) parts.Add(word);
  return MakeList(context, parts.items());
}

Value SplitFromRight(Context& context, const Text& text, std::string_view separator,
                     int64_t max_splits) {
  const std::string_view bytes = Flat(context, text);
  Parts parts(context, text);
  size_t end = bytes.size();
  while (!context.failed()) {
    const size_t at = bytes.substr(0, end).rfind(separator);
    if (max_splits-- == 0 || at == std::string_view::npos) break;
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
              int64_t max_count) {
  const std::string_view bytes = Flat(context, text);
  const std::string_view searched = Flat(context, old);
  context.ChargeBytes(bytes.size());
  TextBuilder replaced(context);
  size_t begin = 0;
  // The empty string is before every character and at the end.
  for (; searched.empty() && max_count != 0 && !context.failed(); --max_count) {
    replaced.Add(replacement);
    if (begin == bytes.size()) break;
    const size_t end = begin + CharacterBytes(bytes.substr(begin));
    replaced.Add(*Slice(context, text, begin, end).text);
    begin = end;
  }
  if (searched.empty()) max_count = 0;
  for (; max_count != 0 && !context.failed(); --max_count) {
    const size_t at = bytes.find(searched, begin);
    if (at == std::string_view::npos) break;
    replaced.Add(*Slice(context, text, begin, at).text);
    replaced.Add(replacement);
    begin = at + searched.size();
  }
  replaced.Add(*Slice(context, text, begin, bytes.size()).text);
  return replaced.Take();
}

Value Pad(Context& context, const Text& text, int64_t width, const Value& fill, bool left,
          bool right) {
  if (!fill.is(Kind::kString) || CountCharacters(Flat(context, *fill.text)) != 1) {
    context.Fail({"a string is filled up with one character"});
  }
  const std::string_view bytes = Flat(context, text);
  context.ChargeBytes(bytes.size());
  const auto size = static_cast<int64_t>(CountCharacters(bytes));
  const int64_t all = std::max(width, size) - size;
  // If an odd number of characters is added on both sides, the extra one is on the left if the
  // width is odd, as in Python.
  const int64_t before = !left ? 0 : right ? all / 2 + (all & width & 1) : all;
  const auto filling = [&](int64_t count) {
    return ApplyOperator(context, Operator::kMultiply, fill, Int(count));
  };
  const Value begin = filling(before);
  const Value end = filling(all - before);
  if (context.failed()) return {};
  TextBuilder padded(context);
  padded.Add(*begin.text);
  padded.Add(text);
  padded.Add(*end.text);
  return padded.Take();
}

bool HasOnlyCase(std::string_view bytes, char (*change)(char byte)) {
  const auto change_back = change == ToUpper ? ToLower : ToUpper;
  return std::ranges::any_of(bytes, [&](char byte) { return change(byte) != byte; }) &&
         std::ranges::none_of(bytes, [&](char byte) { return change_back(byte) != byte; });
}

Value Split(Context& context, const Text& text, const Value& separator, int64_t max_splits,
            bool from_right) {
  context.ChargeBytes(text.size_bytes);
  if (separator.is_absent()) {
    return from_right && max_splits >= 0 ? SplitAtWhiteSpaceFromRight(context, text, max_splits)
                                         : SplitAtWhiteSpace(context, text, max_splits);
  }
  const std::string_view cut = Flat(context, ToText(context, separator));
  if (cut.empty()) {
    context.Fail({"a string cannot be split at an empty one"});
    return {};
  }
  if (from_right) return SplitFromRight(context, text, cut, max_splits);
  const std::string_view bytes = Flat(context, text);
  Parts parts(context, text);
  size_t begin = 0;
  while (!context.failed()) {
    const size_t at = bytes.find(cut, begin);
    if (max_splits-- == 0 || at == std::string_view::npos) break;
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
    size_t end = begin;
    while (end < bytes.size() && LineEndBytes(bytes.substr(end)) == 0) ++end;
    const size_t end_bytes = LineEndBytes(bytes.substr(end));
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
  // A line break at the end of the text is followed by another line, which is empty.
  TextBuilder ended(context);
  ended.Add(text);
  ended.Add("\n", true);
  const Value whole = ended.Take();
  const Value lines = SplitLines(context, *whole.text, /*keeps_ends=*/false);
  TextBuilder indented(context);
  for (const Value& line : lines.list->items) {
    const bool is_first = &line == lines.list->items.data();
    if (!is_first) indented.Add("\n", true);
    if (is_first ? first : line.text->size_bytes > 0 || blank) indented.Add(prefix);
    indented.Add(*line.text);
  }
  return indented.Take();
}

}  // namespace cria::jinja
