#include "grammar/schema_scalars.h"

#include <algorithm>
#include <string>
#include <utility>

#include "grammar/characters.h"
#include "grammar/pattern.h"
#include "grammar/schema_formats.h"
#include "grammar/schema_values.h"
#include "jinja/text.h"

namespace cria::grammar {
namespace {

using jinja::Kind;
using jinja::Value;

// The values of `const` or `enum`.
std::span<const Value> ValuesOf(const Item& item) {
  const bool is_list = item.keyword == Keyword::kEnum && item.value.is(Kind::kList);
  return is_list ? item.value.list->items : std::span(&item.value, 1);
}

void Raise(Bound* lower, const Bound& other) {
  const int order = lower->at ? Compare(*other.at, *lower->at) : 1;
  if (order > 0 || (order == 0 && other.is_exclusive)) *lower = other;
}

void Reduce(Bound* upper, const Bound& other) {
  const int order = upper->at ? Compare(*other.at, *upper->at) : -1;
  if (order < 0 || (order == 0 && other.is_exclusive)) *upper = other;
}

}  // namespace

bool SchemaScalars::IsNothing(Node node) {
  if (node == Expressions::kNothing) return true;
  for (const KnownNothing& known : known_) {
    if (known.node == node) return known.is_nothing;
  }
  const Result<bool> is_nothing = e_.IsNothing(node);
  known_.push_back({node, is_nothing && *is_nothing});
  return known_.back().is_nothing;
}

void SchemaScalars::Demand(Demands& demands, Node node, bool is_negated, Node all) {
  if (is_negated) {
    if (demands.is_any) demands.node = all;
    node = e_.Not(node);
    demands.is_any = false;
  }
  demands.is_combined = demands.is_combined || !demands.is_any;
  demands.node = demands.is_any ? node : e_.Both(demands.node, node);
  demands.is_any = false;
}

void SchemaScalars::AddBound(const Item& item, Bound* lower, Bound* upper) {
  const bool is_lower =
      item.keyword == Keyword::kMinimum || item.keyword == Keyword::kExclusiveMinimum;
  const bool is_exclusive =
      item.keyword == Keyword::kExclusiveMinimum || item.keyword == Keyword::kExclusiveMaximum;
  // The negation of an inclusive bound is an exclusive one on the other side.
  const Bound bound = {NumberOf(item, item.value, report_), is_exclusive != item.is_negated};
  if (!bound.at) return;
  if (!item.is_negated && bound.at->is_negative != is_lower &&
      bound.at->whole.size() > JsonText::kMaxWholeDigits) {
    beyond_ = item;
  }
  if (is_lower != item.is_negated) {
    Raise(lower, bound);
  } else {
    Reduce(upper, bound);
  }
}

void SchemaScalars::FailBeyondDigits() {
  if (!beyond_) return;
  report_.FailKeyword(ErrorCode::kUnsupported, beyond_->schema, NameOfKeyword(beyond_->keyword),
                      "demands numbers of more than 20 digits before the point, which are not "
                      "written");
}

Node SchemaScalars::Multiples(const Item& item) {
  const std::optional<Decimal> of = NumberOf(item, item.value, report_);
  if (!of) return Expressions::kNothing;
  std::string digits = of->whole + of->fraction;
  digits.erase(0, digits.find_first_not_of('0'));
  const size_t last = digits.find_last_not_of('0');
  const bool is_one_digit = last == 0 && !of->is_negative;
  if (!is_one_digit || (digits[0] != '1' && digits[0] != '2' && digits[0] != '5') ||
      digits.size() > JsonText::kMaxWholeDigits ||
      of->fraction.size() > JsonText::kMaxFractionDigits) {
    report_.FailKeyword(ErrorCode::kUnsupported, item.schema, "multipleOf",
                        "is supported only for 1, 2 and 5, and these times or divided by 10, 100 "
                        "and so on");
    return Expressions::kNothing;
  }
  const int exponent = of->fraction.empty() ? static_cast<int>(digits.size()) - 1
                                            : -static_cast<int>(of->fraction.size());
  return MultiplesOf(e_, static_cast<uint8_t>(digits[0] - '0'), exponent);
}

// The constants of these types. What must not be written is a number in all its spellings.
Node SchemaScalars::Values(const Item& item, Types types) {
  std::vector<Node> nodes;
  for (const Value& value : ValuesOf(item)) {
    if ((TypeOfValue(value) & types) == 0) continue;
    if (value.is(Kind::kString)) {
      nodes.push_back(Literal(e_, index_.Bytes(value), CharacterEncoding::kJsonString));
      continue;
    }
    const std::optional<Decimal> number = NumberOf(item, value, report_);
    if (!number) break;
    nodes.push_back(item.is_negated ? SpellingsOf(e_, *number) : e_.Text(number->Text()));
  }
  return e_.Choice(nodes);
}

Node SchemaScalars::Numbers(const Case& found) {
  const Types types = found.types & kNumberTypes;
  Bound lower;
  Bound upper;
  Demands demands;
  const NumberKind kind = types == kNumberTypes ? NumberKind::kAny
                          : types == kWholeType ? NumberKind::kWhole
                                                : NumberKind::kFractional;
  const Node all = NumberInRange(e_, {}, {}, kind);
  for (const Item& item : found.items) {
    if (TypesOfKeyword(item.keyword) == kNumberTypes && item.keyword != Keyword::kMultipleOf) {
      AddBound(item, &lower, &upper);
    }
  }
  if (lower.at || upper.at) {
    Demand(demands, NumberInRange(e_, lower, upper, kind), false, all);
    demands.is_combined = true;
  }
  for (const Item& item : found.items) {
    if (item.keyword == Keyword::kMultipleOf) {
      const Node multiples = Multiples(item);
      // Such as no fraction: the other digits come from what is demanded besides.
      if (demands.is_any) Demand(demands, all, false, all);
      Demand(demands, multiples, item.is_negated, all);
    } else if (item.keyword == Keyword::kConst || item.keyword == Keyword::kEnum) {
      Demand(demands, Values(item, types), item.is_negated, all);
    }
  }
  if (demands.is_any) return all;
  return demands.is_combined && IsNothing(demands.node) ? Expressions::kNothing : demands.node;
}

Node SchemaScalars::Pattern(const Value& pattern, const jinja::Dict* schema,
                            std::string_view keyword) {
  if (!pattern.is(Kind::kString)) {
    report_.FailKeyword(ErrorCode::kUsage, schema, keyword, "must be a string");
    return Expressions::kNothing;
  }
  for (const KnownPattern& known : patterns_) {
    if (known.text == pattern.text) return known.node;
  }
  const Result<Node> node =
      ReadPattern(e_, index_.Bytes(pattern), CharacterEncoding::kJsonString, /*anchored=*/false);
  if (!node) {
    std::string problem = "is '";
    problem.append(index_.Bytes(pattern)).append("': ").append(node.error().message());
    report_.FailKeyword(node.error().code(), schema, keyword, problem);
    return Expressions::kNothing;
  }
  patterns_.push_back({pattern.text, *node});
  return *node;
}

Node SchemaScalars::Format(const Item& item) {
  const std::string_view pattern = FormatPattern(index_.Bytes(item.value));
  if (pattern.empty()) return Expressions::kNothing;
  for (const KnownPattern& known : patterns_) {
    if (known.text == item.value.text) return known.node;
  }
  const Result<Node> node =
      ReadPattern(e_, pattern, CharacterEncoding::kJsonString, /*anchored=*/true);
  if (!node) {
    report_.Fail(node.error());
    return Expressions::kNothing;
  }
  patterns_.push_back({item.value.text, *node});
  return *node;
}

Node SchemaScalars::StringContents(const Case& found) {
  const Node all = text_.AnyCharacters();
  Demands demands;
  uint32_t least = 0;
  uint32_t most = kUnbounded;
  for (const Item& item : found.items) {
    switch (item.keyword) {
      case Keyword::kConst:
      case Keyword::kEnum:
        Demand(demands, Values(item, kStringType), item.is_negated, all);
        break;
      case Keyword::kPattern:
        Demand(demands, Pattern(item.value, item.schema, "pattern"), item.is_negated, all);
        break;
      case Keyword::kFormat:
        if (!item.value.is(Kind::kString)) {
          report_.FailKeyword(ErrorCode::kUsage, item.schema, "format", "must be a string");
          break;
        }
        if (FormatPattern(index_.Bytes(item.value)).empty()) {
          // An annotation, which always holds.
          if (item.is_negated) return Expressions::kNothing;
          break;
        }
        Demand(demands, Format(item), item.is_negated, all);
        break;
      case Keyword::kMinLength:
      case Keyword::kMaxLength: {
        const uint32_t count = CountOf(item, report_);
        const bool is_least = item.keyword == Keyword::kMinLength;
        if (is_least && !item.is_negated) least = std::max(least, count);
        if (!is_least && !item.is_negated) most = std::min(most, count);
        if (is_least && item.is_negated && count == 0) return Expressions::kNothing;
        if (is_least && item.is_negated) most = std::min(most, count - 1);
        if (!is_least && item.is_negated && count == kUnbounded) return Expressions::kNothing;
        if (!is_least && item.is_negated) least = std::max(least, count + 1);
        break;
      }
      default:
        break;
    }
  }
  if (least > most) return Expressions::kNothing;
  if (least > 0 || most < kUnbounded) {
    const Node any = AnyCharacter(e_, CharacterEncoding::kJsonString);
    Demand(demands, e_.Repeat(any, least, most), false, all);
  }
  if (demands.is_any) return all;
  return demands.is_combined && IsNothing(demands.node) ? Expressions::kNothing : demands.node;
}

}  // namespace cria::grammar
