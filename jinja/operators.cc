#include "jinja/operators.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "jinja/formatting.h"
#include "jinja/natives.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

constexpr std::array<std::string_view, 16> kOperatorSymbols = {
    "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

bool IsUndefined(Context& context, const Value& value) {
  if (!value.is(Kind::kUndefined)) return false;
  FailOfUndefined(context, value, {});
  return true;
}

Value Misfit(Context& context, Operator op, const Value& a, const Value& b) {
  if (!IsUndefined(context, a) && !IsUndefined(context, b)) {
    context.Fail({"'", kOperatorSymbols[static_cast<size_t>(op)],
                  "' is not possible with values of type ", KindName(a.kind), " and ",
                  KindName(b.kind)});
  }
  return {};
}

Value Power(Context& context, int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t product = 1;
  for (; exponent > 0 && !context.failed(); --exponent) {
    context.Charge(1);
    if (__builtin_mul_overflow(product, base, &product)) {
      context.Fail("a number is too large");
    }
    if (base == 0 || base == 1) break;
  }
  return Int(product);
}

Value WholeArithmetic(Context& context, Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kPower:
      return Power(context, a, b);
    default: {
      // The remaining operators divide.
      if (b == 0) {
        context.Fail("a division by zero");
        return {};
      }
      if (op == Operator::kDivide) {
        return Float(static_cast<double>(a) / static_cast<double>(b));
      }
      if (b == -1) {
        overflow = __builtin_sub_overflow(int64_t{0}, a, &result);
        if (op == Operator::kModulo) return Int(0);
        break;
      }
      // The quotient is rounded down, so the remainder has the divisor's sign.
      const bool is_rounded_up = a % b != 0 && (a < 0) != (b < 0);
      if (op == Operator::kModulo) return Int(a % b + (is_rounded_up ? b : 0));
      return Int(a / b - (is_rounded_up ? 1 : 0));
    }
  }
  if (overflow) context.Fail("a number is too large");
  return Int(result);
}

struct FloorDivision {
  double quotient;
  double remainder;
};

// Divides as Python does: the remainder is exact and has the divisor's sign, and the quotient is
// the whole number that belongs to it.
FloorDivision DivideDown(double x, double y) {
  double remainder = std::fmod(x, y);
  double quotient = (x - remainder) / y;  // Nearly whole.
  if (remainder == 0.0) {
    remainder = std::copysign(0.0, y);
  } else if ((remainder < 0.0) != (y < 0.0)) {
    remainder += y;
    quotient -= 1.0;
  }
  if (quotient == 0.0) return {std::copysign(0.0, x / y), remainder};
  const double below = std::floor(quotient);
  return {quotient - below > 0.5 ? below + 1.0 : below, remainder};
}

Value Arithmetic(Context& context, Operator op, const Value& a, const Value& b) {
  if (a.is(Kind::kNumeral) || b.is(Kind::kNumeral)) {
    context.Fail({"'", kOperatorSymbols[static_cast<size_t>(op)],
                  "' is not possible with whole numbers of more than 64 bits"});
    return {};
  }
  if (!a.is(Kind::kFloat) && !b.is(Kind::kFloat)) {
    return WholeArithmetic(context, op, ToWord(a), ToWord(b));
  }
  const double x = ToFloat(a);
  const double y = ToFloat(b);
  const bool divides =
      op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && y == 0.0) {
    context.Fail("a division by zero");
    return {};
  }
  switch (op) {
    case Operator::kAdd:
      return Float(x + y);
    case Operator::kSubtract:
      return Float(x - y);
    case Operator::kMultiply:
      return Float(x * y);
    case Operator::kDivide:
      return Float(x / y);
    case Operator::kFloorDivide:
      return Float(DivideDown(x, y).quotient);
    case Operator::kModulo:
      return Float(DivideDown(x, y).remainder);
    default:
      return Float(std::pow(x, y));
  }
}

// Both texts; the one that is not markup is escaped if `is_markup`.
Value Join(Context& context, const Text& a, const Text& b, bool is_markup) {
  TextBuilder joined(context);
  for (const Text* text : {&a, &b}) joined.Add(is_markup ? *Escape(context, text) : *text);
  return joined.Take(is_markup);
}

Value Repeat(Context& context, const Value& value, int64_t count) {
  if (value.is(Kind::kString)) {
    TextBuilder repeated(context);
    for (; count > 0 && value.text->size_bytes > 0 && !context.failed(); --count) {
      repeated.Add(*value.text);
    }
    return repeated.Take(value.text->is_markup);
  }
  Growing<Value> items(context);
  for (; count > 0 && !value.list->items.empty() && !context.failed(); --count) {
    for (const Value& item : value.list->items) items.Add(item);
    context.Charge(value.list->items.size());
  }
  return MakeList(context, items.items(), value.kind);
}

Value AddAny(Context& context, const Value& a, const Value& b) {
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    return Join(context, *a.text, *b.text, a.text->is_markup || b.text->is_markup);
  }
  if (!a.is_sequence() || a.kind != b.kind) return Misfit(context, Operator::kAdd, a, b);
  Growing<Value> items(context);
  for (const Value& item : a.list->items) items.Add(item);
  for (const Value& item : b.list->items) items.Add(item);
  context.Charge(items.size());
  return MakeList(context, items.items(), a.kind);
}

bool Contains(Context& context, const Value& container, const Value& item) {
  if (container.is(Kind::kString) && item.is(Kind::kString)) {
    context.ChargeBytes(container.text->size_bytes);
    return Flat(context, *container.text).contains(Flat(context, *item.text));
  }
  if (container.is(Kind::kDict)) {
    return Find(context, container.dict->entries, item) != nullptr;
  }
  if (container.is_sequence() || container.is(Kind::kGenerator)) {
    return std::ranges::any_of(Items(context, container),
                               [&](const Value& other) { return Equal(context, other, item); });
  }
  if (!container.is(Kind::kUndefined)) Misfit(context, Operator::kIn, item, container);
  return false;
}

// The begin or end of a slice: negative values count from the end; the result is inside the
// sequence.
int64_t SliceBound(Context& context, const Value& value, int64_t size, int64_t absent, int64_t min,
                   int64_t max) {
  if (value.is_absent()) return absent;
  int64_t bound = ToInt(context, value, "a bound of a slice");
  if (bound < 0) bound = bound < -size ? -1 : bound + size;
  return std::clamp(bound, min, max);
}

}  // namespace

Value ApplyOperator(Context& context, Operator op, const Value& a, const Value& b) {
  switch (op) {
    case Operator::kConcatenate:
      return Join(context, ToText(context, a), ToText(context, b), /*is_markup=*/false);
    case Operator::kEqual:
      return Bool(Equal(context, a, b));
    case Operator::kNotEqual:
      return Bool(!Equal(context, a, b));
    case Operator::kLess:
      return Bool(Less(context, a, b));
    case Operator::kGreater:
      return Bool(Less(context, b, a));
    case Operator::kLessOrEqual:
      return Bool(!Less(context, b, a));
    case Operator::kGreaterOrEqual:
      return Bool(!Less(context, a, b));
    case Operator::kIn:
      return Bool(Contains(context, b, a));
    case Operator::kNotIn:
      return Bool(!Contains(context, b, a));
    default:
      break;
  }
  if (IsNumber(a) && IsNumber(b)) return Arithmetic(context, op, a, b);
  if (op == Operator::kAdd) return AddAny(context, a, b);
  if (op == Operator::kMultiply) {
    const auto repeats = [](const Value& value) {
      return value.is(Kind::kString) || value.is_sequence();
    };
    const auto is_count = [](const Value& value) {
      return value.is(Kind::kInt) || value.is(Kind::kBool);
    };
    if (repeats(a) && is_count(b)) return Repeat(context, a, ToWord(b));
    if (repeats(b) && is_count(a)) return Repeat(context, b, ToWord(a));
  }
  if (op == Operator::kModulo && a.is(Kind::kString)) return ApplyPercent(context, *a.text, b);
  return Misfit(context, op, a, b);
}

Value ApplySign(Context& context, bool is_negative, const Value& value) {
  if (!IsNumber(value)) {
    if (!IsUndefined(context, value)) {
      FailOfType(context, value, " has no sign");
    }
    return {};
  }
  if (value.is(Kind::kNumeral) && !is_negative) return value;
  if (value.is(Kind::kFloat)) return Float(is_negative ? -value.real : value.real);
  const Operator op = is_negative ? Operator::kSubtract : Operator::kAdd;
  return Arithmetic(context, op, Int(0), value);
}

bool Less(Context& context, const Value& a, const Value& b, int depth) {
  if (IsNumber(a) && IsNumber(b)) return CompareNumbers(a, b) < 0;
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    context.ChargeBytes(std::min(a.text->size_bytes, b.text->size_bytes));
    // UTF-8's byte order is the order of the code points.
    return Flat(context, *a.text) < Flat(context, *b.text);
  }
  if (a.is_sequence() && a.kind == b.kind && depth <= kMaxDepth) {
    context.Charge(1);
    const auto x = a.list->items;
    const auto y = b.list->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()) && !context.failed(); ++i) {
      if (!Equal(context, x[i], y[i])) return Less(context, x[i], y[i], depth + 1);
    }
    return x.size() < y.size();
  }
  Misfit(context, Operator::kLess, a, b);
  return false;
}

// Uses insertion sort, because templates sort few items and std::stable_sort takes ten times the
// code.
void SortEntries(Context& context, std::span<Entry> entries, bool reverse) {
  for (size_t i = 1; i < entries.size() && !context.failed(); ++i) {
    context.Charge(1);
    const auto goes_before = [&](const Entry& a, const Entry& b) {
      return reverse ? Less(context, b.key, a.key) : Less(context, a.key, b.key);
    };
    const Entry entry = entries[i];
    size_t at = i;
    for (; at > 0 && goes_before(entry, entries[at - 1]); --at) {
      entries[at] = entries[at - 1];
      context.Charge(1);
      if (context.failed()) return;
    }
    entries[at] = entry;
  }
}

Value GetSlice(Context& context, const Value& container, const Value& start, const Value& stop,
               const Value& step) {
  if (!container.is(Kind::kString) && !container.is_sequence()) {
    if (!IsUndefined(context, container)) {
      FailOfType(context, container, " cannot be sliced");
    }
    return {};
  }
  const int64_t stride = step.is_absent() ? 1 : ToInt(context, step, "the step of a slice");
  if (stride == 0) context.Fail("the step of a slice is zero");
  const bool is_text = container.is(Kind::kString);
  // If the stride is 1, text is sliced directly, without an item for each character.
  const bool is_cut = is_text && stride == 1;
  const std::span<const Value> items =
      is_cut ? std::span<const Value>() : Items(context, container);
  const std::string_view bytes = is_cut ? Flat(context, *container.text) : std::string_view();
  context.ChargeBytes(bytes.size());
  const auto size = static_cast<int64_t>(is_cut ? CountCharacters(bytes) : items.size());
  const bool forward = stride > 0;
  const int64_t min = forward ? 0 : -1;
  const int64_t max = forward ? size : size - 1;
  const int64_t begin = SliceBound(context, start, size, forward ? 0 : max, min, max);
  const int64_t end = SliceBound(context, stop, size, forward ? size : -1, min, max);
  if (context.failed()) return {};
  if (is_cut) {
    const size_t first = CharacterOffset(bytes, static_cast<size_t>(begin));
    const auto count = static_cast<size_t>(std::max<int64_t>(end - begin, 0));
    return Slice(context, *container.text, first,
                 first + CharacterOffset(bytes.substr(first), count));
  }
  Growing<Value> chosen(context);
  int64_t index = begin;
  while (forward ? index < end : index > end) {
    chosen.Add(items[static_cast<size_t>(index)]);
    if (__builtin_add_overflow(index, stride, &index)) break;
  }
  context.Charge(chosen.size());
  if (!is_text) return MakeList(context, chosen.items(), container.kind);
  TextBuilder joined(context);
  for (const Value& character : chosen.items()) joined.Add(*character.text);
  return joined.Take(container.text->is_markup);
}

}  // namespace cria::jinja
