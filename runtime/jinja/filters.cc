// Jinja's filters: the names after "|".

#include <algorithm>
#include <charconv>

#include "jinja/json.h"
#include "jinja/list_filters.h"
#include "jinja/literals.h"
#include "jinja/natives.h"
#include "jinja/operators.h"
#include "jinja/string_functions.h"

namespace cria::jinja {
namespace {

const Text& SelfText(Call& call) { return ToText(call.context, call.self); }

Value Trim(Call& call) {
  return Strip(call.context, SelfText(call), true, true, call.parameters[0]);
}
Value Upper(Call& call) { return ChangeCase(call.context, SelfText(call), LetterCase::kUpper); }
Value Lower(Call& call) { return ChangeCase(call.context, SelfText(call), LetterCase::kLower); }
Value Title(Call& call) { return ChangeCase(call.context, SelfText(call), LetterCase::kWords); }
Value Capitalize(Call& call) {
  return ChangeCase(call.context, SelfText(call), LetterCase::kCapitalized);
}
Value MakeString(Call& call) { return String(&SelfText(call)); }

Value ReplaceText(Call& call) {
  if (call.given.positional.size() + call.given.keywords.size() < 2) {
    call.context.Fail({"replace needs the new text as a second argument"});
    return {};
  }
  const Value& count = call.parameters[2];
  return Replace(call.context, SelfText(call), ToText(call.context, call.parameters[0]),
                 ToText(call.context, call.parameters[1]),
                 count.is_absent() ? -1 : ToInt(call.context, count, "a count"));
}

Value IndentLines(Call& call) {
  const auto& [width, first, blank, unused] = call.parameters;
  if (width.is(Kind::kString)) {
    return Indent(call.context, SelfText(call), *width.text, IsTrue(first), IsTrue(blank));
  }
  const int64_t spaces = width.is_absent() ? 4 : ToInt(call.context, width, "a width");
  const Value prefix =
      ApplyOperator(call.context, Operator::kMultiply, Trusted(call.context, " "), Int(spaces));
  if (call.context.failed()) return {};
  return Indent(call.context, SelfText(call), *prefix.text, IsTrue(first), IsTrue(blank));
}

Value Length(Call& call) {
  const Value& value = call.self;
  if (value.is(Kind::kString)) {
    call.context.ChargeBytes(value.text->size_bytes);
    return Int(static_cast<int64_t>(CountCharacters(Flat(call.context, *value.text))));
  }
  if (!IsIterable(value)) {
    call.context.Fail({"a value of type ", KindName(value.kind), " has no length"});
    return {};
  }
  return Int(static_cast<int64_t>(Items(call.context, value).size()));
}

Value Default(Call& call) {
  const auto& [value, boolean, unused1, unused2] = call.parameters;
  const bool is_kept = IsTrue(boolean) ? IsTrue(call.self) : !call.self.is(Kind::kUndefined);
  if (is_kept) return call.self;
  return value.is(Kind::kUndefined) ? Trusted(call.context, {}) : value;
}

// The number in a string, or nothing.
std::optional<double> ReadFloat(Context& context, const Text& text) {
  const std::string_view bytes = Flat(context, text);
  const auto [begin, end] = StrippedRange(bytes, true, true);
  return ReadDouble(bytes.substr(begin, end - begin));
}

Value ToWholeNumber(Call& call) {
  const Value& value = call.self;
  if (value.is(Kind::kInt)) return value;
  if (value.is(Kind::kBool)) return Int(value.boolean ? 1 : 0);
  std::optional<double> number;
  if (value.is(Kind::kFloat)) number = value.real;
  if (value.is(Kind::kString)) {
    const std::string_view bytes = Flat(call.context, *value.text);
    const auto [begin, end] = StrippedRange(bytes, true, true);
    int64_t whole = 0;
    const auto [stop, error] = std::from_chars(bytes.data() + begin, bytes.data() + end, whole);
    if (error == std::errc() && stop == bytes.data() + end) return Int(whole);
    number = ReadFloat(call.context, *value.text);
  }
  constexpr double kMax = 9e18;
  if (number && *number > -kMax && *number < kMax) return Int(static_cast<int64_t>(*number));
  return call.parameters[0].is(Kind::kUndefined) ? Int(0) : call.parameters[0];
}

Value ToRealNumber(Call& call) {
  if (IsNumber(call.self)) return Float(ToFloat(call.self));
  if (call.self.is(Kind::kString)) {
    if (const auto number = ReadFloat(call.context, *call.self.text)) return Float(*number);
  }
  return call.parameters[0].is(Kind::kUndefined) ? Float(0.0) : call.parameters[0];
}

Value Absolute(Call& call) {
  const bool is_negative = IsNumber(call.self) && ToFloat(call.self) < 0.0;
  return ApplySign(call.context, is_negative, call.self);
}

// For escape and safe: nothing is escaped here, so the value does not change.
Value Same(Call& call) { return call.self; }

constexpr Native kFilters[] = {
    {"trim", Trim, "chars"},
    {"upper", Upper},
    {"lower", Lower},
    {"title", Title},
    {"capitalize", Capitalize},
    {"string", MakeString},
    {"replace", ReplaceText, "old,new,count"},
    {"indent", IndentLines, "width,first,blank"},
    {"length", Length},
    {"count", Length},
    {"default", Default, "default_value,boolean"},
    {"d", Default, "default_value,boolean"},
    {"int", ToWholeNumber, "default"},
    {"float", ToRealNumber, "default"},
    {"abs", Absolute},
    {"safe", Same},
    {"tojson", ToJson, kToJsonParameters},
    {"join", JoinFilter, "d,attribute"},
    {"first", FirstFilter},
    {"last", LastFilter},
    {"list", ListFilter},
    {"items", ItemsFilter},
    {"dictsort", DictSortFilter},
    {"reverse", ReverseFilter},
    {"unique", UniqueFilter},
    {"sort", SortFilter, "reverse,case_sensitive,attribute"},
    {"map", MapFilter, "*"},
    {"select", SelectFilter, "*"},
    {"reject", RejectFilter, "*"},
    {"selectattr", SelectAttributeFilter, "*"},
    {"rejectattr", RejectAttributeFilter, "*"},
};

}  // namespace

const Native* FindFilter(std::string_view name) { return FindNative(kFilters, name); }

}  // namespace cria::jinja
