#include "jinja/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "jinja/letters.h"
#include "jinja/literals.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

constexpr Text kEmptyText = {};

Value MakeText(Context& context, std::string_view bytes, bool is_trusted) {
  if (bytes.empty()) return String(&kEmptyText);
  const Piece piece = {bytes, is_trusted};
  const std::span<const Piece> pieces{context.New(piece), 1};
  return String(context.New<Text>({.pieces = pieces, .size_bytes = bytes.size()}));
}

// How Python's repr() writes a character in a string with these quotes; "" if it is unchanged.
std::string_view EscapeOf(Context& context, std::string_view character, char quote) {
  static constexpr std::string_view kEscaped = "\n\r\t\\";
  static constexpr std::array<std::string_view, kEscaped.size()> kEscapes = {"\\n", "\\r", "\\t",
                                                                             "\\\\"};
  const char first = character[0];
  if (const size_t at = kEscaped.find(first); at != kEscaped.npos) return kEscapes[at];
  if (first == quote) return quote == '"' ? "\\\"" : "\\'";
  const char32_t code = CodeOf(character);
  // A byte that is not UTF-8 has no code.
  if (IsPrintable(code) || (code == 0xFFFF && character.size() == 1)) return "";
  std::array<char, 10> escape = {'\\', code < 0x100 ? 'x' : code < 0x10000 ? 'u' : 'U'};
  const size_t size = code < 0x100 ? 4 : code < 0x10000 ? 6 : 10;
  for (size_t i = 2; i < size; ++i) escape[i] = kHexDigits[code >> 4 * (size - 1 - i) & 0xF];
  return Copy(context, {escape.data(), size});
}

// Adds a string as Python's repr() writes it: in quotes, if possible in '.
void AddQuoted(Context& context, const Text& text, TextBuilder* out) {
  const auto contains = [&](char quote) {
    return std::ranges::any_of(text.pieces,
                               [&](const Piece& piece) { return piece.bytes.contains(quote); });
  };
  const char quote = contains('\'') && !contains('"') ? '"' : '\'';
  if (text.is_markup) out->Add("Markup(", true);
  out->Add(quote == '"' ? "\"" : "'", true);
  for (const Piece& piece : text.pieces) {
    size_t begin = 0;
    for (size_t i = 0; i < piece.bytes.size() && !context.failed();) {
      const size_t size = CharacterBytes(piece.bytes.substr(i));
      const std::string_view escaped = EscapeOf(context, piece.bytes.substr(i, size), quote);
      if (!escaped.empty()) {
        out->Add(piece.bytes.substr(begin, i - begin), piece.is_trusted);
        out->Add(escaped, piece.is_trusted);
        begin = i + size;
      }
      i += size;
    }
    out->Add(piece.bytes.substr(begin), piece.is_trusted);
  }
  out->Add(quote == '"' ? "\"" : "'", true);
  if (text.is_markup) out->Add(")", true);
}

void AddFloat(double value, TextBuilder* out) {
  // Like Python, writes the shortest digits that are read as this number, and an exponent only if
  // the number is very large or very small.
  if (std::isnan(value)) return out->Add("nan", true);  // Its sign is not written.
  const double size = std::abs(value);
  const bool is_plain = size == 0.0 || (size >= 1e-4 && size < 1e16);
  std::array<char, 40> buffer;
  char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                            is_plain ? std::chars_format::fixed : std::chars_format::scientific)
                  .ptr;
  const std::string_view digits(buffer.data(), static_cast<size_t>(end - buffer.data()));
  out->AddCopy(digits);
  if (digits.find_first_of(".en") == std::string_view::npos) out->Add(".0", true);
}

std::strong_ordering CompareWholeDigits(std::string_view a, std::string_view b) {
  const bool is_negative = a.starts_with('-');
  if (is_negative != b.starts_with('-')) return b.starts_with('-') <=> is_negative;
  const std::strong_ordering order = a.size() == b.size() ? a <=> b : a.size() <=> b.size();
  return is_negative ? 0 <=> order : order;
}

void AddRepresentation(Context& context, const Value& value, int depth, TextBuilder* out);

void AddItems(Context& context, std::span<const Value> items, int depth, TextBuilder* out) {
  for (size_t i = 0; i < items.size() && !context.failed(); ++i) {
    if (i > 0) out->Add(", ", true);
    AddRepresentation(context, items[i], depth + 1, out);
  }
}

// Adds the value as Python's repr() writes it.
void AddRepresentation(Context& context, const Value& value, int depth, TextBuilder* out) {
  if (depth > kMaxDepth) return context.Fail("a value is nested too deeply");
  context.Charge(1);
  switch (value.kind) {
    case Kind::kUndefined:
      return out->Add("Undefined", true);
    case Kind::kNone:
      return out->Add("None", true);
    case Kind::kBool:
      return out->Add(value.boolean ? "True" : "False", true);
    case Kind::kInt:
    case Kind::kNumeral: {
      WholeBuffer buffer;
      return out->AddCopy(WholeDigits(value, &buffer));
    }
    case Kind::kFloat:
      return AddFloat(value.real, out);
    case Kind::kString:
      return AddQuoted(context, *value.text, out);
    case Kind::kList: {
      const std::string_view view = value.list->view == nullptr ? "" : value.list->view;
      if (view == "range") {
        return context.Fail("a range is not written as a list; the filter 'list' makes one of it");
      }
      out->Add(view, true);
      out->Add(view.empty() ? "[" : "([", true);
      AddItems(context, value.list->items, depth, out);
      return out->Add(view.empty() ? "]" : "])", true);
    }
    case Kind::kTuple:
      out->Add("(", true);
      AddItems(context, value.list->items, depth, out);
      return out->Add(value.list->items.size() == 1 ? ",)" : ")", true);
    case Kind::kDict:
      out->Add("{", true);
      for (const Entry& entry : value.dict->entries) {
        if (&entry != value.dict->entries.data()) out->Add(", ", true);
        AddRepresentation(context, entry.key, depth + 1, out);
        out->Add(": ", true);
        AddRepresentation(context, entry.value, depth + 1, out);
        if (context.failed()) return;
      }
      return out->Add("}", true);
    default:
      FailOfType(context, value, " is not written as text");
      return;
  }
}

}  // namespace

std::string_view WholeDigits(const Value& value, WholeBuffer* buffer) {
  if (value.is(Kind::kNumeral)) return *value.digits;
  char* const begin = buffer->data();
  char* const end = begin + buffer->size();
  // Adding 0 takes the sign from -0.
  char* const stop =
      value.is(Kind::kFloat)
          ? std::to_chars(begin, end, std::trunc(value.real) + 0.0, std::chars_format::fixed, 0).ptr
          : std::to_chars(begin, end, ToWord(value)).ptr;
  return {begin, stop};
}

Value Trusted(Context& context, std::string_view bytes) { return MakeText(context, bytes, true); }

Value Untrusted(Context& context, std::string_view bytes) {
  return MakeText(context, bytes, false);
}

Value Numeral(Context& context, std::string_view digits) {
  Value value;
  value.kind = Kind::kNumeral;
  value.digits = context.New(digits);
  return value;
}

Value MakeList(Context& context, std::span<const Value> items, Kind kind) {
  Value value;
  value.kind = kind;
  value.list = context.New<List>({items});
  return value;
}

Value MakeView(Context& context, std::span<const Value> items, const char* view) {
  Value value;
  value.kind = Kind::kList;
  value.list = context.New<List>({.items = items, .view = view});
  return value;
}

Value MakeGenerator(Context& context, std::span<const Value> items) {
  Value value;
  value.kind = Kind::kGenerator;
  value.generator = context.New<Generator>({items});
  return value;
}

Value MakeDict(Context& context, std::span<const Entry> entries) {
  Value value;
  value.kind = Kind::kDict;
  value.dict = context.New<Dict>({entries});
  return value;
}

void FailOfUndefined(Context& context, const Value& value, std::string_view what,
                     std::string_view quoted) {
  const std::string_view quote = quoted.empty() ? "" : "'";
  context.Fail({"'", value.name == nullptr ? "a value" : *value.name, "' is undefined", what, quote,
                quoted, quote});
}

Value FailOfType(Context& context, const Value& value, const char* what) {
  context.Fail({"a value of type ", KindName(value.kind), what});
  return {};
}

Value Undefined(Context& context, std::string_view name) {
  Value value;
  if (!name.empty()) value.name = context.New(name);
  return value;
}

std::string_view KindName(Kind kind) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "undefined", "NoneType", "bool",     "int",    "int",       "float",
      "str",       "list",     "tuple",    "dict",   "namespace", "generator",
      "loop",      "cycler",   "function", "method", "macro"};
  return kNames[static_cast<size_t>(kind)];
}

bool IsTrue(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.real != 0.0;
    case Kind::kString:
      return value.text->size_bytes != 0;
    case Kind::kList:
    case Kind::kTuple:
      return !value.list->items.empty();
    case Kind::kDict:
      return !value.dict->entries.empty();
    default:
      return true;
  }
}

bool IsNumber(const Value& value) {
  return value.is(Kind::kBool) || value.is(Kind::kInt) || value.is(Kind::kNumeral) ||
         value.is(Kind::kFloat);
}

double ToFloat(const Value& value) {
  if (value.is(Kind::kFloat)) return value.real;
  if (value.is(Kind::kNumeral)) return ReadDouble(*value.digits).value_or(0.0);
  return static_cast<double>(ToWord(value));
}

int64_t ToWord(const Value& value) {
  return value.is(Kind::kBool) ? (value.boolean ? 1 : 0) : value.integer;
}

std::partial_ordering CompareNumbers(const Value& a, const Value& b) {
  if (a.is(Kind::kFloat)) {
    return b.is(Kind::kFloat) ? a.real <=> b.real : 0 <=> CompareNumbers(b, a);
  }
  const bool is_real = b.is(Kind::kFloat);
  if (is_real && !std::isfinite(b.real)) return 0.0 <=> b.real;
  if (!is_real && !a.is(Kind::kNumeral) && !b.is(Kind::kNumeral)) return ToWord(a) <=> ToWord(b);
  WholeBuffer buffers[2];
  const auto order = CompareWholeDigits(WholeDigits(a, &buffers[0]), WholeDigits(b, &buffers[1]));
  if (!is_real || order != 0) return order;
  return std::trunc(b.real) <=> b.real;
}

bool Equal(Context& context, const Value& a, const Value& b, int depth) {
  if (depth > kMaxDepth) {
    context.Fail("a value is nested too deeply");
    return false;
  }
  context.Charge(1);
  if (IsNumber(a) && IsNumber(b)) return CompareNumbers(a, b) == 0;
  if (a.kind != b.kind || context.failed()) return false;
  switch (a.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      if (a.text->size_bytes != b.text->size_bytes) return false;
      context.ChargeBytes(a.text->size_bytes);
      return Flat(context, *a.text) == Flat(context, *b.text);
    case Kind::kList:
    case Kind::kTuple:
      return std::ranges::equal(a.list->items, b.list->items, [&](const Value& x, const Value& y) {
        return Equal(context, x, y, depth + 1);
      });
    case Kind::kDict:
      return a.dict->entries.size() == b.dict->entries.size() &&
             std::ranges::all_of(a.dict->entries, [&](const Entry& entry) {
               const Value* other = Find(context, b.dict->entries, entry.key);
               return other != nullptr && Equal(context, entry.value, *other, depth + 1);
             });
    default:
      return a.list == b.list;  // True if both are the same object.
  }
}

const Value* Find(Context& context, std::span<const Entry> entries, const Value& key) {
  for (const Entry& entry : entries) {
    if (Equal(context, entry.key, key)) return &entry.value;
    if (context.failed()) break;
  }
  return nullptr;
}

const Value* Find(std::span<const Entry> entries, std::string_view key) {
  for (const Entry& entry : entries) {
    if (!entry.key.is(Kind::kString)) continue;
    // A name of an attribute is always one piece, so keys of several pieces cannot match.
    const auto pieces = entry.key.text->pieces;
    if (pieces.size() == 1 && pieces[0].bytes == key) return &entry.value;
  }
  return nullptr;
}

std::span<const Value> Items(Context& context, const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return {};
    case Kind::kList:
    case Kind::kTuple:
      return value.list->items;
    case Kind::kGenerator:
      return std::exchange(value.generator->items, {});
    case Kind::kDict: {
      Growing<Value> keys(context);
      for (const Entry& entry : value.dict->entries) keys.Add(entry.key);
      return keys.items();
    }
    case Kind::kString: {
      Growing<Value> characters(context);
      for (const Piece& piece : value.text->pieces) {
        for (size_t i = 0; i < piece.bytes.size() && !context.failed();) {
          const size_t size = CharacterBytes(piece.bytes.substr(i));
          characters.Add(MakeText(context, piece.bytes.substr(i, size), piece.is_trusted));
          context.Charge(1);
          i += size;
        }
      }
      return characters.items();
    }
    default:
      FailOfType(context, value, " cannot be iterated");
      return {};
  }
}

bool IsIterable(const Value& value) {
  return value.is(Kind::kUndefined) || value.is_sequence() || value.is(Kind::kDict) ||
         value.is(Kind::kString) || value.is(Kind::kGenerator);
}

Value Representation(Context& context, const Value& value) {
  TextBuilder text(context);
  AddRepresentation(context, value, 0, &text);
  return text.Take();
}

const Text& ToText(Context& context, const Value& value) {
  if (value.is(Kind::kString)) return *value.text;
  if (value.is(Kind::kUndefined)) return kEmptyText;
  return *Representation(context, value).text;
}

}  // namespace cria::jinja
