#include "jinja/formatting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "jinja/literals.h"
#include "jinja/operators.h"
#include "jinja/string_functions.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

constexpr const char* kTooFewValues = "a format has more fields than values";

// Adds the value as str() writes it; fails if there is none.
void AddFormatted(Context& context, const Text& format, const Value* value, TextBuilder* out) {
  if (value == nullptr) return context.Fail(kTooFewValues);
  const Text& text = ToText(context, *value);
  out->Add(format.is_markup ? *Escape(context, &text) : text);
}

// The value for a field without a name, with an index, or with a name; null if there is none.
const Value* FindField(Call& call, std::string_view name, size_t* next) {
  const auto& [positional, keywords] = call.given;
  const auto index = name.empty() ? std::optional(static_cast<int64_t>((*next)++))
                                  : ReadWholeNumber(call.context, name, 10);
  if (index) {
    const auto at = static_cast<size_t>(*index);
    return at < positional.size() ? &positional[at] : nullptr;
  }
  const auto found = std::ranges::find(keywords, name, &Keyword::name);
  return found == keywords.end() ? nullptr : &found->value;
}

// A field such as %-5.1f, without its name.
struct PercentField {
  std::string_view flags;
  int64_t width = 0;
  int64_t precision = -1;
  char conversion = '\0';

  bool has(char flag) const { return flags.contains(flag); }
};

// The name in parentheses at the beginning of a field, which is removed.
std::string_view TakeFieldName(std::string_view* rest) {
  const size_t end = rest->find(')');
  if (!rest->starts_with('(') || end == rest->npos) return {};
  const std::string_view name = rest->substr(1, end - 1);
  rest->remove_prefix(end + 1);
  return name;
}

// A number of at most three digits, which is removed from the beginning.
int64_t TakeDigits(std::string_view* rest) {
  int64_t number = 0;
  for (int digits = 0; digits < 3 && !rest->empty() && (*rest)[0] >= '0' && (*rest)[0] <= '9';
       ++digits) {
    number = 10 * number + ((*rest)[0] - '0');
    rest->remove_prefix(1);
  }
  return number;
}

// Reads what is behind a name, and removes it.
PercentField TakeField(std::string_view* rest) {
  PercentField field;
  field.flags = rest->substr(0, rest->find_first_not_of("-0+ "));
  rest->remove_prefix(field.flags.size());
  field.width = TakeDigits(rest);
  if (rest->starts_with('.')) {
    rest->remove_prefix(1);
    field.precision = TakeDigits(rest);
  }
  if (!rest->empty()) {
    field.conversion = rest->front();
    rest->remove_prefix(1);
  }
  return field;
}

// The number with its sign and leading zeros.
Value NumberOf(Context& context, const PercentField& field, const Value& value) {
  const bool is_real = field.conversion == 'f';
  const bool is_whole = std::string_view("diu").contains(field.conversion);
  const bool has_digits = !value.is(Kind::kFloat) || std::isfinite(value.real);
  if (!IsNumber(value) || !(is_real || (is_whole && has_digits))) {
    context.Fail({"a format has '%",
                  {&field.conversion, 1},
                  "', which is not supported with a value of type ",
                  KindName(value.kind)});
    return {};
  }
  // The digits of a double before the point, and as many digits behind it as a field has.
  std::array<char, 1400> buffer;
  WholeBuffer whole_buffer;
  std::string_view digits;
  if (is_real) {
    const int precision = field.precision < 0 ? 6 : static_cast<int>(field.precision);
    digits = {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                           ToFloat(value), std::chars_format::fixed, precision)
                                 .ptr};
  } else {
    digits = WholeDigits(value, &whole_buffer);
  }
  const bool is_negative = digits.starts_with('-');
  if (is_negative) digits.remove_prefix(1);
  const std::string_view sign = is_negative      ? "-"
                                : field.has('+') ? "+"
                                : field.has(' ') ? " "
                                                 : "";
  int64_t size = is_real ? 0 : field.precision;
  if (field.has('0') && !field.has('-')) {
    size = std::max(size, field.width - static_cast<int64_t>(sign.size()));
  }
  const Value copy = Trusted(context, Copy(context, digits));
  return ApplyOperator(context, Operator::kConcatenate, Trusted(context, sign),
                       Pad(context, *copy.text, size, Trusted(context, "0"), true, false));
}

void AddField(Context& context, const Text& format, const PercentField& field, const Value& value,
              TextBuilder* out) {
  Value text;
  if (field.conversion == 's') {
    text = String(&ToText(context, value));
    if (format.is_markup) text = String(Escape(context, text.text));
    if (field.precision >= 0) text = GetSlice(context, text, {}, Int(field.precision), {});
  } else {
    text = NumberOf(context, field, value);
  }
  if (context.failed()) return;
  text =
      Pad(context, *text.text, field.width, Trusted(context, " "), !field.has('-'), field.has('-'));
  if (!context.failed()) out->Add(*text.text);
}

// The fields with names take values of `mapping`, which may be null; the others take `values`, one
// after the other.
Value FormatByPercent(Context& context, const Text& format, std::span<const Value> values,
                      const Value* mapping) {
  const std::string_view bytes = Flat(context, format);
  context.ChargeBytes(bytes.size());
  TextBuilder out(context);
  size_t next = 0;
  for (size_t at = 0; !context.failed();) {
    const size_t percent = std::min(bytes.find('%', at), bytes.size());
    out.Add(*Slice(context, format, at, percent).text);
    if (percent == bytes.size()) break;
    std::string_view rest = bytes.substr(percent + 1);
    const size_t rest_bytes = rest.size();
    const std::string_view name = TakeFieldName(&rest);
    const bool has_name = rest.size() < rest_bytes;
    const PercentField field = TakeField(&rest);
    at = bytes.size() - rest.size();
    if (bytes.substr(percent, at - percent) == "%%") {
      out.Add(*Slice(context, format, percent, percent + 1).text);
      continue;
    }
    const Value* value = nullptr;
    if (has_name && mapping != nullptr && mapping->is(Kind::kDict)) {
      value = Find(mapping->dict->entries, name);
    } else if (!has_name && next < values.size()) {
      value = &values[next++];
    }
    if (value == nullptr) {
      context.Fail(kTooFewValues);
    } else {
      AddField(context, format, field, *value, &out);
    }
  }
  if (mapping == nullptr && next < values.size()) {
    context.Fail("a format has fewer fields than values");
  }
  return out.Take(format.is_markup);
}

}  // namespace

Value FormatMethod(Call& call) {
  Context& context = call.context;
  const Text& format = *call.self.text;
  const std::string_view bytes = Flat(context, format);
  context.ChargeBytes(bytes.size());
  TextBuilder out(context);
  size_t next = 0;
  for (size_t at = 0; at < bytes.size() && !context.failed();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    const std::string_view rest = bytes.substr(brace);
    const bool is_doubled = rest.starts_with("{{") || rest.starts_with("}}");
    out.Add(*Slice(context, format, at, is_doubled ? brace + 1 : brace).text);
    at = brace + 2;
    if (is_doubled || rest.empty()) continue;
    const size_t end = rest.find('}');
    const std::string_view name = rest.substr(1, end - 1);
    if (end == 0 || end == rest.npos || name.find_first_of("{.[!:") != name.npos) {
      context.Fail({"a format has '", rest.substr(0, end), "', which is not supported"});
      break;
    }
    AddFormatted(context, format, FindField(call, name, &next), &out);
    at = brace + end + 1;
  }
  return out.Take(format.is_markup);
}

Value FormatFilter(Call& call) {
  const auto& [positional, keywords] = call.given;
  if (!positional.empty() && !keywords.empty()) {
    call.context.Fail("format takes values with names or without, not both");
    return {};
  }
  const Text& format = ToText(call.context, call.self);
  if (keywords.empty()) return FormatByPercent(call.context, format, positional, nullptr);
  return ApplyPercent(call.context, format, MakeDict(call.context, GivenEntries(call)));
}

Value ApplyPercent(Context& context, const Text& format, const Value& value) {
  if (value.is(Kind::kTuple)) return FormatByPercent(context, format, value.list->items, nullptr);
  // Python takes everything with items, except for tuples and strings, for a mapping.
  const bool is_mapping =
      value.is(Kind::kDict) || value.is(Kind::kList) || value.is(Kind::kUndefined);
  return FormatByPercent(context, format, {&value, 1}, is_mapping ? &value : nullptr);
}

}  // namespace cria::jinja
