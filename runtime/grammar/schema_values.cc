#include "grammar/schema_values.h"

#include <cmath>

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
    case Kind::kFloat:
      return std::trunc(value.real) == value.real ? kWholeType : kFractionalType;
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
  if (value.is(Kind::kFloat)) return DecimalOfDouble(value.real);
  return std::nullopt;
}

uint32_t CountOf(const Item& item, SchemaReport& report) {
  const double count =
      item.value.is(Kind::kInt) || item.value.is(Kind::kFloat) ? jinja::ToFloat(item.value) : -1.0;
  if (!(count >= 0) || std::trunc(count) != count) {
    report.FailKeyword(ErrorCode::kUsage, item.schema, NameOfKeyword(item.keyword),
                       "must be a whole number that is not negative");
    return 0;
  }
  return count < kUnbounded ? static_cast<uint32_t>(count) : kUnbounded;
}

}  // namespace cria::grammar
