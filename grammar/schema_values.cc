#include "grammar/schema_values.h"

#include <charconv>
#include <string_view>

namespace cria::grammar {

using jinja::Kind;

Types TypeOfValue(const jinja::Value& value) {
  switch (value.kind) {
    case Kind::kNone:
      return kNullType;
    case Kind::kBool:
      return value.boolean ? kTrueType : kFalseType;
    case Kind::kInt:
      return kWholeType;
    case Kind::kNumeral: {
      const std::optional<Decimal> number = ReadDecimal(*value.digits);
      if (!number) return kNumberTypes;
      return number->fraction.empty() ? kWholeType : kFractionalType;
    }
    case Kind::kString:
      return kStringType;
    case Kind::kDict:
      return kObjectType;
    default:
      return kArrayType;
  }
}

std::optional<Decimal> DecimalOfValue(const jinja::Value& value) {
  if (value.is(Kind::kInt)) return WholeDecimal(value.integer);
  if (value.is(Kind::kNumeral)) return ReadDecimal(*value.digits);
  return std::nullopt;
}

std::optional<Decimal> NumberOf(const Item& item, const jinja::Value& value, SchemaReport& report) {
  std::optional<Decimal> number = DecimalOfValue(value);
  if (!number) {
    const bool is_number = value.is(Kind::kNumeral);
    report.FailKeyword(is_number ? ErrorCode::kUnsupported : ErrorCode::kUsage, item.schema,
                       NameOfKeyword(item.keyword),
                       is_number ? "has a number of more than 400 digits" : "must be a number");
  }
  return number;
}

uint32_t CountOf(const Item& item, SchemaReport& report) {
  const std::optional<Decimal> number = NumberOf(item, item.value, report);
  if (!number) return 0;
  const char* const name = NameOfKeyword(item.keyword);
  if (number->is_negative || !number->fraction.empty()) {
    report.FailKeyword(ErrorCode::kUsage, item.schema, name,
                       "must be a whole number that is not negative");
    return 0;
  }
  int64_t whole = 0;  // The library has from_chars for this type anyway.
  const char* const end = number->whole.data() + number->whole.size();
  const bool fits = std::from_chars(number->whole.data(), end, whole).ec == std::errc();
  const uint32_t count = fits && whole < kUnbounded ? static_cast<uint32_t>(whole) : kUnbounded;
  if (count == kUnbounded && !item.is_negated && std::string_view(name).starts_with("min")) {
    report.FailKeyword(ErrorCode::kOutOfRange, item.schema, name,
                       "demands more than can be counted");
  }
  return count;
}

}  // namespace cria::grammar
