#include "jinja/formatting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/utf8.h"
#include "jinja/literals.h"
#include "jinja/operators.h"
#include "jinja/string_functions.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

constexpr const char* kTooFewValues = "a format has more fields than values";

// Adds the value as str() writes it.
void AddFormatted(Context& context, const Text& format, const Value& value, TextBuilder* out) {
  const Text& text = ToText(context, value);
  out->Add(format.is_markup ? *Escape(context, &text) : text);
}

// How a format with braces says which values it wants; one that has both kinds is an error.
struct BraceIndices {
  size_t next = 0;         // The value of the next field without a name.
  bool are_named = false;  // Fields have had indices.
};

// The value for a field without a name, with an index, or with a name; null if there is none.
const Value* FindField(Call& call, std::string_view name, BraceIndices* indices) {
  const auto& [positional, keywords] = call.given;
  const auto index = name.empty() ? std::optional(static_cast<int64_t>(indices->next))
                                  : ReadWholeNumber(call.context, name, 10);
  if (index) {
    if (name.empty()) ++indices->next;
    indices->are_named |= !name.empty();
    if (indices->are_named && indices->next > 0) {
      return call.context.Fail("a format has fields with and without an index"), nullptr;
    }
    const auto at = static_cast<size_t>(*index);
    return at < positional.size() ? &positional[at] : nullptr;
  }
  const auto found = std::ranges::find(keywords, name, &Keyword::name);
  return found == keywords.end() ? nullptr : &found->value;
}

// The values of a format with %: its fields with names take those of `mapping`, which may be null;
// the others, and the widths that "*" stands for, take `values`, one after the other.
struct PercentValues {
  std::span<const Value> values;
  const Value* mapping;
  size_t next = 0;

  const Value* Take() { return next < values.size() ? &values[next++] : nullptr; }
};

// A field such as %-5.1f, without its name.
struct PercentField {
  std::string_view flags;
  int64_t width = 0;  // If it is negative, the text is on the left.
  int64_t precision = -1;
  char conversion = '\0';

  bool has(char flag) const { return flags.contains(flag); }
  bool is_left() const { return has('-') || width < 0; }
};

// The name in parentheses at the beginning of a field, which is removed.
std::string_view TakeFieldName(std::string_view* rest) {
  const size_t end = rest->find(')');
  if (!rest->starts_with('(') || end == rest->npos) return {};
  const std::string_view name = rest->substr(1, end - 1);
  rest->remove_prefix(end + 1);
  return name;
}

// A number of at most three digits, which is removed from the beginning, or the value for "*".
int64_t TakeSize(Context& context, std::string_view* rest, PercentValues* values) {
  if (rest->starts_with('*')) {
    rest->remove_prefix(1);
    const Value* const value = values->Take();
    if (value == nullptr) return context.Fail(kTooFewValues), 0;
    constexpr auto kMax = static_cast<int64_t>(kMaxTextBytes);
    return std::clamp(ToInt(context, *value, "a width"), -kMax, kMax);
  }
  int64_t number = 0;
  for (int digits = 0; digits < 3 && !rest->empty() && (*rest)[0] >= '0' && (*rest)[0] <= '9';
       ++digits) {
    number = 10 * number + ((*rest)[0] - '0');
    rest->remove_prefix(1);
  }
  return number;
}

// Reads what is behind a name, and removes it.
PercentField TakeField(Context& context, std::string_view* rest, PercentValues* values) {
  PercentField field;
  field.flags = rest->substr(0, rest->find_first_not_of("-0+ #"));
  rest->remove_prefix(field.flags.size());
  field.width = TakeSize(context, rest, values);
  if (rest->starts_with('.')) {
    rest->remove_prefix(1);
    field.precision = std::max<int64_t>(TakeSize(context, rest, values), 0);
  }
  // As in Python, the sizes of C's types mean nothing.
  if (rest->starts_with('h') || rest->starts_with('l') || rest->starts_with('L')) {
    rest->remove_prefix(1);
  }
  if (!rest->empty()) {
    field.conversion = rest->front();
    rest->remove_prefix(1);
  }
  return field;
}

Value NotSupported(Context& context, const PercentField& field, const Value& value) {
  context.Fail({"a format has '%",
                {&field.conversion, 1},
                "', which is not supported with a value of type ",
                KindName(value.kind)});
  return {};
}

// The number with its sign and leading zeros.
Value NumberOf(Context& context, const PercentField& field, const Value& value) {
  constexpr int64_t kMaxPrecision = 999;
  const char kind = field.conversion == 'O' ? '\0' : ToLower(field.conversion);
  const bool is_real = kind != '\0' && std::string_view("feg").contains(kind);
  const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : 10;
  // The flag "#" writes a point also if no digit follows.
  const bool may_lack_point = kind == 'g' || field.precision == 0;
  const bool is_decimal =
      field.conversion != '\0' && std::string_view("diu").contains(field.conversion);
  bool fits = is_decimal && (!value.is(Kind::kFloat) || std::isfinite(value.real));
  if (is_real) {
    fits = field.precision <= kMaxPrecision && !(field.has('#') && may_lack_point) &&
           (!value.is(Kind::kNumeral) || std::isfinite(ToFloat(value)));
  } else if (base != 10) {
    fits = value.is(Kind::kInt) || value.is(Kind::kBool);
  }
  if (!IsNumber(value) || !fits) return NotSupported(context, field, value);
  // The digits of a double before the point, and as many digits behind it as a field has.
  std::array<char, 1400> buffer;
  char* const end = buffer.data() + buffer.size();
  WholeBuffer whole_buffer;
  std::string_view digits;
  if (is_real) {
    const int precision = field.precision < 0 ? 6 : static_cast<int>(field.precision);
    const auto format = kind == 'f'   ? std::chars_format::fixed
                        : kind == 'e' ? std::chars_format::scientific
                                      : std::chars_format::general;
    digits = {buffer.data(),
              std::to_chars(buffer.data(), end, ToFloat(value), format, precision).ptr};
  } else if (base != 10) {
    digits = {buffer.data(), std::to_chars(buffer.data(), end, ToWord(value), base).ptr};
  } else {
    digits = WholeDigits(value, &whole_buffer);
  }
  const bool is_capital = field.conversion != kind;
  for (char& c : buffer) {
    if (&c == digits.data() + digits.size() || !is_capital) break;
    if (ToLower(c) == c && IsLetter(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  const bool is_negative = digits.starts_with('-');
  if (is_negative) digits.remove_prefix(1);
  TextBuilder before(context);
  before.Add(is_negative ? "-" : field.has('+') ? "+" : field.has(' ') ? " " : "", true);
  if (field.has('#') && base != 10) {
    before.Add(is_capital ? "0X" : base == 16 ? "0x" : "0o", true);
  }
  const Value sign = before.Take();
  int64_t size = is_real ? 0 : field.precision;
  if (field.has('0') && !field.is_left()) {
    size = std::max(size, field.width - static_cast<int64_t>(sign.text->size_bytes));
  }
  const Value copy = Trusted(context, Copy(context, digits));
  return ApplyOperator(context, Operator::kConcatenate, sign,
                       Pad(context, *copy.text, size, Trusted(context, "0"), true, false));
}

// The character, or that with this code.
Value CharacterOf(Context& context, const PercentField& field, const Value& value) {
  if (value.is(Kind::kString) && CountCharacters(Flat(context, *value.text)) == 1) return value;
  constexpr int64_t kEnd = 0x110000;
  const bool is_whole = value.is(Kind::kInt) || value.is(Kind::kBool);
  const int64_t code = is_whole ? ToWord(value) : 0;
  if (!is_whole || code < 0 || code >= kEnd || (code >= 0xD800 && code < 0xE000)) {
    return NotSupported(context, field, value);
  }
  std::array<char, kMaxUtf8Bytes> buffer;
  // Numbers do not say where they come from, so they spell no special token.
  return Untrusted(context, Copy(context, EncodeUtf8(static_cast<uint32_t>(code), &buffer)));
}

void AddField(Context& context, const Text& format, const PercentField& field, const Value& value,
              TextBuilder* out) {
  const bool is_text = field.conversion == 's' || field.conversion == 'r';
  Value text;
  if (is_text) {
    text =
        field.conversion == 's' ? String(&ToText(context, value)) : Representation(context, value);
    if (format.is_markup) text = String(Escape(context, text.text));
    if (field.precision >= 0) text = GetSlice(context, text, {}, Int(field.precision), {});
  } else if (format.is_markup && std::string_view("oxXc").contains(field.conversion)) {
    text = NotSupported(context, field, value);
  } else if (field.conversion == 'c') {
    text = CharacterOf(context, field, value);
  } else {
    text = NumberOf(context, field, value);
  }
  if (context.failed()) return;
  text = Pad(context, *text.text, std::abs(field.width), Trusted(context, " "), !field.is_left(),
             field.is_left());
  if (!context.failed()) out->Add(*text.text);
}

Value FormatByPercent(Context& context, const Text& format, PercentValues values) {
  const std::string_view bytes = Flat(context, format);
  context.ChargeBytes(bytes.size());
  TextBuilder out(context);
  for (size_t at = 0; !context.failed();) {
    const size_t percent = std::min(bytes.find('%', at), bytes.size());
    out.Add(*Slice(context, format, at, percent).text);
    if (percent == bytes.size()) break;
    std::string_view rest = bytes.substr(percent + 1);
    const size_t rest_bytes = rest.size();
    const std::string_view name = TakeFieldName(&rest);
    const bool has_name = rest.size() < rest_bytes;
    const PercentField field = TakeField(context, &rest, &values);
    at = bytes.size() - rest.size();
    if (bytes.substr(percent, at - percent) == "%%") {
      out.Add(*Slice(context, format, percent, percent + 1).text);
      continue;
    }
    const Value* const mapping = values.mapping;
    const Value* value = nullptr;
    if (!has_name) {
      value = values.Take();
    } else if (mapping != nullptr && mapping->is(Kind::kDict)) {
      value = Find(mapping->dict->entries, name);
    }
    if (value == nullptr) {
      context.Fail(kTooFewValues);
    } else {
      AddField(context, format, field, *value, &out);
    }
  }
  if (values.mapping == nullptr && values.Take() != nullptr) {
    context.Fail("a format has fewer fields than values");
  }
  return out.Take(format.is_markup);
}

// How format() shows a value: the part of a field behind its name, such as "!r" or ":>8.2f".
struct BraceField {
  PercentField number;
  Value fill;
  char align = '\0';  // '<', '>', '^'; 0: texts are on the left, numbers on the right.
};

// Reads what is behind ":"; fails if there is something that is not supported.
BraceField TakeBraceField(Context& context, const Text& format, std::string_view spec,
                          const Value& value) {
  constexpr std::string_view kAligns = "<>^";
  const std::string_view whole = spec;
  BraceField field = {.number = {}, .fill = Trusted(context, " ")};
  const size_t fill_bytes = spec.empty() ? 0 : CharacterBytes(spec);
  if (fill_bytes < spec.size() && kAligns.contains(spec[fill_bytes])) {
    const std::string_view fill = spec.substr(0, fill_bytes);
    field.fill = IsTrusted(format) ? Trusted(context, fill) : Untrusted(context, fill);
    field.align = spec[fill_bytes];
    spec.remove_prefix(fill_bytes + 1);
  } else if (!spec.empty() && kAligns.contains(spec[0])) {
    field.align = spec[0];
    spec.remove_prefix(1);
  }
  if (spec.starts_with('-')) spec.remove_prefix(1);
  // These mean something else, or nothing, in a field with "%".
  bool is_supported = spec.find_first_of("-*hlL") == spec.npos;
  PercentField& number = field.number;
  PercentValues no_values = {.values = {}, .mapping = nullptr};
  if (is_supported) number = TakeField(context, &spec, &no_values);
  const bool is_text = value.is(Kind::kString);
  const bool is_real = value.is(Kind::kFloat);
  const bool has_precision = number.precision >= 0;
  if (number.conversion == '\0') {
    is_supported = is_supported && !value.is(Kind::kBool);
    number.conversion = is_text || is_real ? 's' : 'd';
  }
  const char kind = number.conversion;
  is_supported = is_supported && spec.empty() && (is_text || IsNumber(value));
  if (kind == 's') {
    is_supported = is_supported && number.flags.empty() && (is_text || (is_real && !has_precision));
  } else if (kind == 'd') {
    is_supported = is_supported && !is_real && !has_precision;
  } else {
    is_supported = is_supported && std::string_view("xXoeEfFgG").contains(kind);
  }
  // A sign comes first, and leading zeros are aligned in a way of their own.
  const std::string_view behind_sign =
      number.flags.substr(number.flags.starts_with('+') || number.flags.starts_with(' ') ? 1 : 0);
  is_supported = is_supported && (behind_sign.empty() || behind_sign == "0" || behind_sign == "#" ||
                                  behind_sign == "#0");
  if (!is_supported || (number.has('0') && field.align != '\0')) {
    context.Fail({"a format has ':", whole, "', which is not supported with a value of type ",
                  KindName(value.kind)});
  }
  return field;
}

void AddBraceField(Context& context, const Text& format, std::string_view how, const Value& value,
                   TextBuilder* out) {
  Value shown = value;
  if (how.starts_with("!r") || how.starts_with("!s")) {
    shown = how[1] == 'r' ? Representation(context, value) : String(&ToText(context, value));
    how.remove_prefix(2);
  }
  if (how.empty() || how == ":") return AddFormatted(context, format, shown, out);
  if (how[0] != ':') return context.Fail({"a format has '", how, "', which is not supported"});
  // As in Python, markup has no width; other texts are escaped with what makes them wider.
  if (format.is_markup && shown.is(Kind::kString) && shown.text->is_markup) {
    return context.Fail({"a format has '", how, "', which is not supported with markup"});
  }
  BraceField field = TakeBraceField(context, format, how.substr(1), shown);
  const int64_t width = field.number.width;
  if (!field.number.has('0')) field.number.width = 0;
  TextBuilder plain(context);
  if (!context.failed()) AddField(context, Text(), field.number, shown, &plain);
  if (context.failed()) return;
  Value text = plain.Take();
  const bool is_left = field.align == '<' || (field.align == '\0' && shown.is(Kind::kString));
  if (field.align == '^') {
    const auto size = static_cast<int64_t>(CountCharacters(Flat(context, *text.text)));
    text = Pad(context, *text.text, size + std::max<int64_t>(width - size, 0) / 2, field.fill, true,
               false);
  }
  text = Pad(context, *text.text, width, field.fill, !is_left && field.align != '^',
             is_left || field.align == '^');
  if (context.failed()) return;
  out->Add(format.is_markup ? *Escape(context, text.text) : *text.text);
}

}  // namespace

Value FormatMethod(Call& call) {
  Context& context = call.context;
  const Text& format = *call.self.text;
  const std::string_view bytes = Flat(context, format);
  context.ChargeBytes(bytes.size());
  TextBuilder out(context);
  BraceIndices indices;
  for (size_t at = 0; at < bytes.size() && !context.failed();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    const std::string_view rest = bytes.substr(brace);
    const bool is_doubled = rest.starts_with("{{") || rest.starts_with("}}");
    out.Add(*Slice(context, format, at, is_doubled ? brace + 1 : brace).text);
    at = brace + 2;
    if (is_doubled || rest.empty()) continue;
    const size_t end = rest.find('}');
    const std::string_view field = rest.substr(1, end - 1);
    const std::string_view name = field.substr(0, field.find_first_of("!:"));
    if (end == 0 || end == rest.npos || field.contains('{') ||
        name.find_first_of(".[") != name.npos) {
      context.Fail({"a format has '", rest.substr(0, end), "', which is not supported"});
      break;
    }
    const Value* const value = FindField(call, name, &indices);
    if (value == nullptr) {
      context.Fail(kTooFewValues);
      break;
    }
    AddBraceField(context, format, field.substr(name.size()), *value, &out);
    at = brace + end + 1;
  }
  return out.Take(format.is_markup);
}

Value FormatMapMethod(Call& call) {
  call.given = {{}, {}};
  Growing<Keyword> keywords(call.context);
  const Value& mapping = call.parameters[0];
  if (!mapping.is(Kind::kDict)) return FailOfType(call.context, mapping, " has no names");
  for (const Entry& entry : mapping.dict->entries) {
    if (!entry.key.is(Kind::kString)) continue;
    keywords.Add({Flat(call.context, *entry.key.text), entry.value});
  }
  call.given.keywords = keywords.items();
  return FormatMethod(call);
}

Value FormatFilter(Call& call) {
  const auto& [positional, keywords] = call.given;
  if (!positional.empty() && !keywords.empty()) {
    call.context.Fail("format takes values with names or without, not both");
    return {};
  }
  const Text& format = ToText(call.context, call.self);
  if (keywords.empty()) {
    return FormatByPercent(call.context, format, {.values = positional, .mapping = nullptr});
  }
  return ApplyPercent(call.context, format, MakeDict(call.context, GivenEntries(call)));
}

Value ApplyPercent(Context& context, const Text& format, const Value& value) {
  if (value.is(Kind::kTuple)) {
    return FormatByPercent(context, format, {.values = value.list->items, .mapping = nullptr});
  }
  // Python takes everything with items, except for tuples and strings, for a mapping.
  const bool is_mapping =
      value.is(Kind::kDict) || value.is(Kind::kList) || value.is(Kind::kUndefined);
  return FormatByPercent(context, format,
                         {.values = {&value, 1}, .mapping = is_mapping ? &value : nullptr});
}

}  // namespace cria::jinja
