#include "jinja/string_functions.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/utf8.h"
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

// Whether no letter follows, which decides the form of a sigma in lower case.
bool EndsWord(std::string_view rest) {
  while (!rest.empty() && IsCaseIgnorable(CodeOf(rest))) rest.remove_prefix(CharacterBytes(rest));
  return rest.empty() || FindCase(CodeOf(rest)) == CaseOf::kNone;
}

// Decides for one character after another how its case changes.
class CaseChooser {
 public:
  explicit CaseChooser(LetterCase letter_case) : case_(letter_case) {}

  CaseMapping Next(std::string_view character) {
    const char32_t c = CodeOf(character);
    const CaseOf is = FindCase(c);
    const CaseMapping mapping = Choose(is);
    if (!IsCaseIgnorable(c)) after_letter_ = is != CaseOf::kNone;
    after_cased_ = is != CaseOf::kNone;
    begins_word_ = std::string_view("-({[<").contains(character) || IsWhiteSpace(character);
    is_first_ = false;
    return mapping;
  }
  // Whether a letter came before, with at most apostrophes, marks and the like between.
  bool after_letter() const { return after_letter_; }

 private:
  CaseMapping Choose(CaseOf is) const {
    switch (case_) {
      case LetterCase::kUpper:
        return CaseMapping::kUpper;
      case LetterCase::kTitle:
        return after_cased_ ? CaseMapping::kLower : CaseMapping::kTitle;
      case LetterCase::kWords:
        return begins_word_ ? CaseMapping::kUpper : CaseMapping::kLower;
      case LetterCase::kCapitalized:
        return is_first_ ? CaseMapping::kTitle : CaseMapping::kLower;
      case LetterCase::kSwapped:
        return is == CaseOf::kLower   ? CaseMapping::kUpper
               : is == CaseOf::kUpper ? CaseMapping::kLower
                                      : CaseMapping::kTitle;
      case LetterCase::kFolded:
        return CaseMapping::kFold;
      default:
        return CaseMapping::kLower;
    }
  }

  LetterCase case_;
  bool is_first_ = true;
  bool begins_word_ = true;
  bool after_cased_ = false;
  bool after_letter_ = false;
};

}  // namespace

Value ChangeCase(Context& context, const Text& text, LetterCase letter_case) {
  constexpr char32_t kSigma = 0x3A3;
  constexpr int32_t kFinalSigma = 0x3C2;
  std::string_view rest = Flat(context, text);
  context.Charge(text.size_bytes / 4);
  TextBuilder changed(context);
  CaseChooser chooser(letter_case);
  for (const Piece& piece : text.pieces) {
    Growing<char> bytes(context);
    for (size_t at = 0; at < piece.bytes.size() && !context.failed();) {
      const std::string_view character =
          piece.bytes.substr(at, CharacterBytes(piece.bytes.substr(at)));
      at += character.size();
      rest.remove_prefix(character.size());
      const bool after_letter = chooser.after_letter();
      const char32_t c = CodeOf(character);
      const CaseMapping mapping = chooser.Next(character);
      MappedCharacters mapped = MapCase(c, mapping);
      if (c == kSigma && mapping == CaseMapping::kLower && after_letter && EndsWord(rest)) {
        mapped.characters[0] = kFinalSigma;
      }
      const bool is_kept = mapped.size == 1 && static_cast<char32_t>(mapped.characters[0]) == c;
      for (size_t i = 0; i < mapped.size; ++i) {
        std::array<char, kMaxUtf8Bytes> buffer;
        for (const char byte :
             is_kept ? character : EncodeUtf8(static_cast<char32_t>(mapped.characters[i]), &buffer))
          bytes.Add(byte);
      }
    }
    changed.Add({bytes.items().data(), bytes.size()}, piece.is_trusted);
  }
  // The filter `title` joins words, which gives a plain string.
  return changed.Take(text.is_markup && letter_case != LetterCase::kWords);
}

Value Strip(Context& context, const Text& text, bool left, bool right, const Value& characters) {
  context.ChargeBytes(text.size_bytes);
  if (!characters.is_absent() && !characters.is(Kind::kString)) {
    return FailOfType(context, characters, " is not a text whose characters could be removed");
  }
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
    context.Fail("a string is filled up with one character");
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
  return padded.Take(text.is_markup);
}

bool HasOnlyCase(std::string_view bytes, CaseOf wanted) {
  bool is_found = false;
  for (; !bytes.empty(); bytes.remove_prefix(CharacterBytes(bytes))) {
    const CaseOf is = FindCase(CodeOf(bytes));
    if (is != CaseOf::kNone && is != wanted) return false;
    is_found = is_found || is == wanted;
  }
  return is_found;
}

Value Split(Context& context, const Text& text, const Value& separator, int64_t max_splits,
            bool from_right) {
  context.ChargeBytes(text.size_bytes);
  if (separator.is_absent()) {
    return from_right && max_splits >= 0 ? SplitAtWhiteSpaceFromRight(context, text, max_splits)
                                         : SplitAtWhiteSpace(context, text, max_splits);
  }
  if (!separator.is(Kind::kString)) {
    return FailOfType(context, separator, " is not a text that could separate parts");
  }
  const std::string_view cut = Flat(context, *separator.text);
  if (cut.empty()) {
    context.Fail("a string cannot be split at an empty one");
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

Value Join(Context& context, std::span<const Value> items, const Text& separator, bool is_markup) {
  TextBuilder joined(context);
  for (size_t i = 0; i < items.size() && !context.failed(); ++i) {
    if (i > 0) joined.Add(separator);
    const Text& text = ToText(context, items[i]);
    joined.Add(is_markup ? *Escape(context, &text) : text);
  }
  return joined.Take(is_markup);
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
  return indented.Take(text.is_markup);
}

}  // namespace cria::jinja
