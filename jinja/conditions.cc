// Jinja's tests: the words after "is".

#include "jinja/natives.h"
#include "jinja/operators.h"
#include "jinja/string_functions.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

Value IsDefined(Call& call) { return Bool(!call.self.is(Kind::kUndefined)); }
Value IsUndefined(Call& call) { return Bool(call.self.is(Kind::kUndefined)); }
Value IsNone(Call& call) { return Bool(call.self.is(Kind::kNone)); }
Value IsBoolean(Call& call) { return Bool(call.self.is(Kind::kBool)); }
Value IsTrueItself(Call& call) { return Bool(call.self.is(Kind::kBool) && call.self.boolean); }
Value IsFalseItself(Call& call) { return Bool(call.self.is(Kind::kBool) && !call.self.boolean); }
Value IsInteger(Call& call) {
  return Bool(call.self.is(Kind::kInt) || call.self.is(Kind::kNumeral));
}
Value IsFloat(Call& call) { return Bool(call.self.is(Kind::kFloat)); }
Value IsAnyNumber(Call& call) { return Bool(IsNumber(call.self)); }
Value IsString(Call& call) { return Bool(call.self.is(Kind::kString)); }
Value IsMapping(Call& call) { return Bool(call.self.is(Kind::kDict)); }
// In Jinja, whatever has a length and items is a sequence.
Value IsSequence(Call& call) { return Bool(HasLength(call.self)); }
Value IsAnyIterable(Call& call) { return Bool(IsIterable(call.self)); }
// In Jinja, undefined values are callable; calling one is an error.
Value IsCallable(Call& call) {
  return Bool(call.self.is(Kind::kUndefined) || call.self.is(Kind::kFunction) ||
              call.self.is(Kind::kMethod) || call.self.is(Kind::kMacro));
}

Value Compare(Call& call, Operator op) {
  return ApplyOperator(call.context, op, call.self, call.parameters[0]);
}
Value IsEqual(Call& call) { return Compare(call, Operator::kEqual); }
Value IsNotEqual(Call& call) { return Compare(call, Operator::kNotEqual); }
Value IsLess(Call& call) { return Compare(call, Operator::kLess); }
Value IsLessOrEqual(Call& call) { return Compare(call, Operator::kLessOrEqual); }
Value IsGreater(Call& call) { return Compare(call, Operator::kGreater); }
Value IsGreaterOrEqual(Call& call) { return Compare(call, Operator::kGreaterOrEqual); }
Value IsIn(Call& call) { return Compare(call, Operator::kIn); }
Value IsSame(Call& call) {
  const Value& other = call.parameters[0];
  // Values with items are the same only if they are one object.
  const bool has_items = call.self.is_sequence() || call.self.is(Kind::kDict);
  return Bool(call.self.kind == other.kind &&
              (has_items ? call.self.list == other.list : Equal(call.context, call.self, other)));
}

bool HasRemainder(Call& call, const Value& divisor, int64_t remainder) {
  return Equal(call.context, ApplyOperator(call.context, Operator::kModulo, call.self, divisor),
               Int(remainder));
}
Value IsDivisible(Call& call) { return Bool(HasRemainder(call, call.parameters[0], 0)); }
Value IsOdd(Call& call) { return Bool(HasRemainder(call, Int(2), 1)); }
Value IsEven(Call& call) { return Bool(HasRemainder(call, Int(2), 0)); }

// Whether the value is the name of a filter or test.
bool IsName(Call& call, const Native* (*find)(std::string_view name)) {
  return call.self.is(Kind::kString) && find(Flat(call.context, *call.self.text)) != nullptr;
}

Value HasCase(Call& call, CaseOf wanted) {
  return Bool(HasOnlyCase(Flat(call.context, ToText(call.context, call.self)), wanted));
}
Value IsLower(Call& call) { return HasCase(call, CaseOf::kLower); }
Value IsUpper(Call& call) { return HasCase(call, CaseOf::kUpper); }
Value IsFilter(Call& call) { return Bool(IsName(call, FindFilter)); }
Value IsTest(Call& call) { return Bool(IsName(call, FindTest)); }
Value IsEscaped(Call& call) {
  return Bool(call.self.is(Kind::kString) && call.self.text->is_markup);
}

constexpr Native kTests[] = {
    {"defined", IsDefined},
    {"undefined", IsUndefined},
    {"none", IsNone},
    {"boolean", IsBoolean},
    {"true", IsTrueItself},
    {"false", IsFalseItself},
    {"integer", IsInteger},
    {"float", IsFloat},
    {"number", IsAnyNumber},
    {"string", IsString},
    {"mapping", IsMapping},
    {"sequence", IsSequence},
    {"iterable", IsAnyIterable},
    {"callable", IsCallable},
    {"equalto other", IsEqual},
    {"eq other", IsEqual},
    {"ne other", IsNotEqual},
    {"lt other", IsLess},
    {"lessthan other", IsLess},
    {"le other", IsLessOrEqual},
    {"gt other", IsGreater},
    {"greaterthan other", IsGreater},
    {"ge other", IsGreaterOrEqual},
    {"in seq", IsIn},
    // As arguments of filters, tests are named by the operators of expressions.
    {"== other", IsEqual},
    {"!= other", IsNotEqual},
    {"< other", IsLess},
    {"<= other", IsLessOrEqual},
    {"> other", IsGreater},
    {">= other", IsGreaterOrEqual},
    {"sameas other", IsSame},
    {"divisibleby num", IsDivisible},
    {"odd", IsOdd},
    {"even", IsEven},
    {"lower", IsLower},
    {"upper", IsUpper},
    {"filter", IsFilter},
    {"test", IsTest},
    {"escaped", IsEscaped},
};

}  // namespace

const Native* FindTest(std::string_view name) { return FindNative(kTests, name); }

}  // namespace cria::jinja
