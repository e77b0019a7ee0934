// Methods of strings, lists and dictionaries, as in Python; those that change a value are not
// allowed.

#include <algorithm>
#include <limits>
#include <optional>

#include "jinja/formatting.h"
#include "jinja/natives.h"
#include "jinja/string_functions.h"

namespace cria::jinja {
namespace {

const Text& Self(Call& call) { return *call.self.text; }

// A maximum count; absent means no limit.
int64_t Count(Call& call, const Value& value) {
  return value.is_absent() ? -1 : ToInt(call.context, value, "a count");
}

std::string_view ArgumentBytes(Call& call, size_t index) {
  const Value& argument = call.parameters[index];
  if (!argument.is(Kind::kString)) {
    call.context.Fail({"a method of a string is given a value of type ", KindName(argument.kind)});
    return {};
  }
  return Flat(call.context, *argument.text);
}

Value StripLeft(Call& call) {
  return Strip(call.context, Self(call), true, false, call.parameters[0]);
}
Value StripRight(Call& call) {
  return Strip(call.context, Self(call), false, true, call.parameters[0]);
}

Value SplitText(Call& call) {
  return Split(call.context, Self(call), call.parameters[0], Count(call, call.parameters[1]),
               false);
}
Value SplitTextFromRight(Call& call) {
  return Split(call.context, Self(call), call.parameters[0], Count(call, call.parameters[1]), true);
}
Value SplitTextLines(Call& call) {
  return SplitLines(call.context, Self(call), IsTrue(call.parameters[0]));
}

// A part of the string.
struct Window {
  std::string_view bytes;
  int64_t begin;  // In characters.
};

// What is between the two positions that a method is given behind its first argument; nothing if
// the second one is before the first.
std::optional<Window> SearchedPart(Call& call) {
  const std::string_view bytes = Flat(call.context, Self(call));
  call.context.ChargeBytes(bytes.size());
  const auto& [wanted, start, stop, unused] = call.parameters;
  if (start.is_absent() && stop.is_absent()) return Window{bytes, 0};
  const auto size = static_cast<int64_t>(CountCharacters(bytes));
  const auto position = [&](const Value& value, int64_t absent) {
    if (value.is_absent()) return absent;
    const int64_t at = ToInt(call.context, value, "a position");
    return at < 0 ? std::max<int64_t>(at + size, 0) : at;
  };
  const int64_t begin = position(start, 0);
  const int64_t end = std::min(position(stop, size), size);
  if (begin > end) return {};
  const size_t first = CharacterOffset(bytes, static_cast<size_t>(begin));
  const size_t last = CharacterOffset(bytes, static_cast<size_t>(end));
  return Window{bytes.substr(first, last - first), begin};
}

// Whether the string begins, or ends, with the argument or with one of several.
bool HasAffix(Call& call, bool at_end) {
  const auto part = SearchedPart(call);
  const Value argument = call.parameters[0];
  const std::span<const Value> affixes =
      argument.is(Kind::kTuple) ? argument.list->items : std::span(&argument, 1);
  return std::ranges::any_of(affixes, [&](const Value& affix) {
    call.parameters[0] = affix;
    const std::string_view wanted = ArgumentBytes(call, 0);
    return part && (at_end ? part->bytes.ends_with(wanted) : part->bytes.starts_with(wanted));
  });
}
Value StartsWith(Call& call) { return Bool(HasAffix(call, false)); }
Value EndsWith(Call& call) { return Bool(HasAffix(call, true)); }

Value RemovePrefix(Call& call) {
  const size_t size = HasAffix(call, false) ? ArgumentBytes(call, 0).size() : 0;
  return Slice(call.context, Self(call), size, Self(call).size_bytes);
}
Value RemoveSuffix(Call& call) {
  const size_t size = HasAffix(call, true) ? ArgumentBytes(call, 0).size() : 0;
  return Slice(call.context, Self(call), 0, Self(call).size_bytes - size);
}

Value TitleMethod(Call& call) { return ChangeCase(call.context, Self(call), LetterCase::kTitle); }
Value SwapCaseMethod(Call& call) {
  return ChangeCase(call.context, Self(call), LetterCase::kSwapped);
}
Value CaseFoldMethod(Call& call) {
  return ChangeCase(call.context, Self(call), LetterCase::kFolded);
}

Value ReplaceMethod(Call& call) {
  ArgumentBytes(call, 0);
  ArgumentBytes(call, 1);
  if (call.context.failed()) return {};
  const bool is_markup = Self(call).is_markup;
  const auto argument = [&](size_t index) -> const Text& {
    const Text& text = *call.parameters[index].text;
    return is_markup ? *Escape(call.context, &text) : text;
  };
  const Value replaced =
      Replace(call.context, Self(call), argument(0), argument(1), Count(call, call.parameters[2]));
  return is_markup ? AsMarkup(call.context, *replaced.text) : replaced;
}

Value JoinItems(Call& call) {
  const auto items = Items(call.context, call.parameters[0]);
  for (const Value& item : items) {
    if (!item.is(Kind::kString) && !Self(call).is_markup) {
      return FailOfType(call.context, item,
                        " is not joined by a string; the filter 'join' does so");
    }
  }
  return Join(call.context, items, Self(call), Self(call).is_markup);
}

// The index of the character at which the argument is found, or -1.
Value FoundAt(Call& call, size_t (*find)(std::string_view bytes, std::string_view wanted)) {
  const std::string_view wanted = ArgumentBytes(call, 0);
  const auto part = SearchedPart(call);
  const size_t at = part ? find(part->bytes, wanted) : std::string_view::npos;
  if (at == std::string_view::npos) return Int(-1);
  return Int(part->begin + static_cast<int64_t>(CountCharacters(part->bytes.substr(0, at))));
}
Value FindText(Call& call) {
  return FoundAt(
      call, [](std::string_view bytes, std::string_view wanted) { return bytes.find(wanted); });
}
Value FindLastText(Call& call) {
  return FoundAt(
      call, [](std::string_view bytes, std::string_view wanted) { return bytes.rfind(wanted); });
}

// Like find and rfind, but fails if the text is not found.
Value MustBeFound(Call& call, const Value& found) {
  if (ToInt(call.context, found, "a position") >= 0) return found;
  call.context.Fail({"a string does not contain '", ArgumentBytes(call, 0), "'"});
  return {};
}
Value IndexOfText(Call& call) { return MustBeFound(call, FindText(call)); }
Value LastIndexOfText(Call& call) { return MustBeFound(call, FindLastText(call)); }

// The text before the argument, the argument, and the text after it. If the argument is not found,
// the first of them is the whole text, or the last if `from_right`, and the others are empty.
Value PartsAround(Call& call, bool from_right) {
  const Text& text = Self(call);
  const std::string_view bytes = Flat(call.context, text);
  const std::string_view wanted = ArgumentBytes(call, 0);
  call.context.ChargeBytes(bytes.size());
  if (wanted.empty()) call.context.Fail("a string cannot be cut at an empty one");
  const size_t found = from_right ? bytes.rfind(wanted) : bytes.find(wanted);
  const bool is_there = found != std::string_view::npos;
  const size_t begin = is_there ? found : from_right ? 0 : bytes.size();
  const size_t end = is_there ? begin + wanted.size() : begin;
  Growing<Value> parts(call.context);
  parts.Add(Slice(call.context, text, 0, begin));
  parts.Add(is_there ? call.parameters[0] : Trusted(call.context, {}));
  parts.Add(Slice(call.context, text, end, bytes.size()));
  return MakeList(call.context, parts.items(), Kind::kTuple);
}
Value Partition(Call& call) { return PartsAround(call, false); }
Value PartitionFromRight(Call& call) { return PartsAround(call, true); }

Value Padded(Call& call, bool left, bool right) {
  const Value& fill = call.parameters[1];
  return Pad(call.context, Self(call), ToInt(call.context, call.parameters[0], "a width"),
             fill.is(Kind::kUndefined) ? Trusted(call.context, " ") : fill, left, right);
}
Value AlignRight(Call& call) { return Padded(call, true, false); }
Value AlignLeft(Call& call) { return Padded(call, false, true); }
Value Center(Call& call) { return Padded(call, true, true); }

Value FillWithZeros(Call& call) {
  const Text& text = Self(call);
  const std::string_view bytes = Flat(call.context, text);
  const size_t sign = bytes.starts_with('-') || bytes.starts_with('+') ? 1 : 0;
  const int64_t width = ToInt(call.context, call.parameters[0], "a width");
  // A width that is negative is less than any length.
  const Value digits = Pad(call.context, *Slice(call.context, text, sign, bytes.size()).text,
                           std::max<int64_t>(width, 0) - static_cast<int64_t>(sign),
                           Trusted(call.context, "0"), true, false);
  if (call.context.failed()) return {};
  TextBuilder filled(call.context);
  filled.Add(*Slice(call.context, text, 0, sign).text);
  filled.Add(*digits.text);
  return filled.Take(text.is_markup);
}

Value ExpandTabs(Call& call) {
  Context& context = call.context;
  const Value& given = call.parameters[0];
  const int64_t tab = given.is(Kind::kUndefined) ? 8 : ToInt(context, given, "a width");
  const Text& text = Self(call);
  const std::string_view bytes = Flat(context, text);
  context.ChargeBytes(bytes.size());
  TextBuilder expanded(context);
  int64_t column = 0;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size() && !context.failed();) {
    const size_t size = CharacterBytes(bytes.substr(at));
    if (bytes[at] == '\t') {
      expanded.Add(*Slice(context, text, begin, at).text);
      const int64_t spaces = tab > 0 ? tab - column % tab : 0;
      const Value filling =
          Pad(context, *Trusted(context, {}).text, spaces, Trusted(context, " "), false, true);
      if (context.failed()) break;
      expanded.Add(*filling.text);
      // Only what is left of it counts, and so it stays small.
      column = 0;
      begin = at + size;
    } else {
      column = bytes[at] == '\n' || bytes[at] == '\r' ? 0 : column + 1;
    }
    at += size;
  }
  expanded.Add(*Slice(context, text, begin, bytes.size()).text);
  return expanded.Take(text.is_markup);
}

// Whether each word begins with a capital, and has no other.
Value AreTitle(Call& call) {
  std::string_view bytes = Flat(call.context, Self(call));
  call.context.ChargeBytes(bytes.size());
  bool is_found = false;
  bool in_word = false;
  for (; !bytes.empty(); bytes.remove_prefix(CharacterBytes(bytes))) {
    const CaseOf is = FindCase(CodeOf(bytes));
    const bool is_cased = is != CaseOf::kNone;
    if (is_cased && in_word != (is == CaseOf::kLower)) return Bool(false);
    in_word = is_cased;
    is_found = is_found || is_cased;
  }
  return Bool(is_found);
}

Value CountText(Call& call) {
  const std::string_view wanted = ArgumentBytes(call, 0);
  const auto part = SearchedPart(call);
  if (!part) return Int(0);
  const std::string_view bytes = part->bytes;
  if (wanted.empty()) return Int(static_cast<int64_t>(CountCharacters(bytes)) + 1);
  int64_t count = 0;
  for (size_t at = bytes.find(wanted); at != std::string_view::npos;
       at = bytes.find(wanted, at + wanted.size())) {
    ++count;
  }
  return Int(count);
}

// Whether the string is not empty, unless it `may_be_empty`, and `matches` is true for all of its
// characters.
Value AreAll(Call& call, bool (*matches)(char32_t c), bool may_be_empty = false) {
  std::string_view bytes = Flat(call.context, Self(call));
  call.context.ChargeBytes(bytes.size());
  if (bytes.empty()) return Bool(may_be_empty);
  for (; !bytes.empty(); bytes.remove_prefix(CharacterBytes(bytes))) {
    if (!matches(CodeOf(bytes))) return Bool(false);
  }
  return Bool(true);
}
Value AreDecimal(Call& call) { return AreAll(call, IsDecimal); }
Value AreDigits(Call& call) { return AreAll(call, IsAnyDigit); }
Value AreNumeric(Call& call) { return AreAll(call, IsNumeric); }
Value AreLetters(Call& call) { return AreAll(call, IsAlpha); }
Value AreDigitsOrLetters(Call& call) { return AreAll(call, IsAlphanumeric); }
Value ArePrintable(Call& call) { return AreAll(call, IsPrintable, /*may_be_empty=*/true); }
Value AreAscii(Call& call) {
  return AreAll(call, [](char32_t c) { return c < 0x80; }, /*may_be_empty=*/true);
}
Value AreSpaces(Call& call) {
  const std::string_view bytes = Flat(call.context, Self(call));
  return Bool(!bytes.empty() && StrippedRange(bytes, true, true).first == bytes.size());
}

Value AreLower(Call& call) {
  return Bool(HasOnlyCase(Flat(call.context, Self(call)), CaseOf::kLower));
}
Value AreUpper(Call& call) {
  return Bool(HasOnlyCase(Flat(call.context, Self(call)), CaseOf::kUpper));
}

constexpr Native kStringMethods[] = {
    {"strip chars", TrimText},
    {"lstrip chars", StripLeft},
    {"rstrip chars", StripRight},
    {"split sep,maxsplit", SplitText},
    {"rsplit sep,maxsplit", SplitTextFromRight},
    {"splitlines keepends", SplitTextLines},
    {"startswith prefix,start,end", StartsWith},
    {"endswith suffix,start,end", EndsWith},
    {"removeprefix prefix", RemovePrefix},
    {"removesuffix suffix", RemoveSuffix},
    {"upper", UpperText},
    {"lower", LowerText},
    {"title", TitleMethod},
    {"capitalize", CapitalizeText},
    {"replace old,new,count", ReplaceMethod},
    {"join iterable", JoinItems},
    {"find sub,start,end", FindText},
    {"rfind sub,start,end", FindLastText},
    {"count sub,start,end", CountText},
    {"index sub,start,end", IndexOfText},
    {"rindex sub,start,end", LastIndexOfText},
    {"partition sep", Partition},
    {"rpartition sep", PartitionFromRight},
    {"ljust width,fillchar", AlignLeft},
    {"rjust width,fillchar", AlignRight},
    {"center width,fillchar", Center},
    {"casefold", CaseFoldMethod},
    {"swapcase", SwapCaseMethod},
    {"format *", FormatMethod},
    {"format_map mapping", FormatMapMethod},
    {"zfill width", FillWithZeros},
    {"expandtabs tabsize", ExpandTabs},
    {"istitle", AreTitle},
    {"isdigit", AreDigits},
    {"isdecimal", AreDecimal},
    {"isnumeric", AreNumeric},
    {"isprintable", ArePrintable},
    {"isascii", AreAscii},
    {"islower", AreLower},
    {"isupper", AreUpper},
    {"isalpha", AreLetters},
    {"isalnum", AreDigitsOrLetters},
    {"isspace", AreSpaces},
};

Value DictItems(Call& call) {
  Growing<Value> items(call.context);
  for (const Entry& entry : call.self.dict->entries) {
    Growing<Value> pair(call.context);
    pair.Add(entry.key);
    pair.Add(entry.value);
    items.Add(MakeList(call.context, pair.items(), Kind::kTuple));
  }
  call.context.Charge(items.size());
  return MakeView(call.context, items.items(), "dict_items");
}

Value DictKeys(Call& call) {
  return MakeView(call.context, Items(call.context, call.self), "dict_keys");
}

Value DictValues(Call& call) {
  Growing<Value> values(call.context);
  for (const Entry& entry : call.self.dict->entries) values.Add(entry.value);
  call.context.Charge(values.size());
  return MakeView(call.context, values.items(), "dict_values");
}

Value DictGet(Call& call) {
  const Value* found = Find(call.context, call.self.dict->entries, call.parameters[0]);
  if (found != nullptr) return *found;
  return call.parameters[1].is(Kind::kUndefined) ? None() : call.parameters[1];
}

// The index of an item in a list; fails if the list does not have it.
Value IndexOfItem(Call& call) {
  const auto items = call.self.list->items;
  for (size_t i = 0; i < items.size() && !call.context.failed(); ++i) {
    if (Equal(call.context, items[i], call.parameters[0])) return Int(static_cast<int64_t>(i));
  }
  call.context.Fail("a list does not have the item whose index is asked for");
  return {};
}

Value CountItems(Call& call) {
  return Int(std::ranges::count_if(call.self.list->items, [&](const Value& item) {
    return Equal(call.context, item, call.parameters[0]);
  }));
}

// No method changes a value, so a copy is the value itself.
Value CopyOf(Call& call) { return call.self; }

constexpr Native kListMethods[] = {
    {"index value", IndexOfItem}, {"count value", CountItems}, {"copy", CopyOf}};

constexpr Native kDictMethods[] = {{"items", DictItems},
                                   {"keys", DictKeys},
                                   {"values", DictValues},
                                   {"get key,default", DictGet},
                                   {"copy", CopyOf}};

}  // namespace

const Native* FindStringMethod(std::string_view name) { return FindNative(kStringMethods, name); }
const Native* FindListMethod(std::string_view name) { return FindNative(kListMethods, name); }
const Native* FindDictMethod(std::string_view name) { return FindNative(kDictMethods, name); }

}  // namespace cria::jinja
