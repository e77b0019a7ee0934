#include "grammar/number_ranges.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include "grammar/json_text.h"

namespace cria::grammar {
namespace {

constexpr uint32_t kWhole = JsonText::kMaxWholeDigits;
constexpr uint32_t kFraction = JsonText::kMaxFractionDigits;

int CompareMagnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int order = a.whole.compare(b.whole); order != 0) return order;
  return a.fraction.compare(b.fraction);
}

// Expressions for digits of numbers without a sign. "Tail" is a point and what follows, or nothing.
class Magnitudes {
 public:
  Magnitudes(Expressions& expressions, bool has_fractions)
      : e_(expressions), has_fractions_(has_fractions) {}

  Node All() {
    const Node whole = e_.Choice(e_.Byte('0'), Longer(0));
    return e_.Sequence(whole, AnyTail());
  }

  Node AtLeast(const Decimal& number, bool is_exclusive) {
    return e_.Choice(
        e_.Sequence(WholeAbove(number.whole), AnyTail()),
        e_.Sequence(ExactWhole(number.whole), TailAbove(number.fraction, is_exclusive)));
  }

  Node AtMost(const Decimal& number, bool is_exclusive) {
    return e_.Choice(
        e_.Sequence(WholeBelow(number.whole), AnyTail()),
        e_.Sequence(ExactWhole(number.whole), TailBelow(number.fraction, is_exclusive)));
  }

 private:
  Node Digit(char first = '0', char last = '9') {
    ByteSet set;
    set.AddRange(static_cast<uint8_t>(first), static_cast<uint8_t>(last));
    return e_.Bytes(set);
  }
  Node Digits(size_t min, size_t max) {
    return e_.Repeat(Digit(), static_cast<uint32_t>(min), static_cast<uint32_t>(max));
  }
  // Whole numbers of more than this many digits, but not 0.
  Node Longer(size_t digits) {
    if (digits >= kWhole) return Expressions::kNothing;
    return e_.Sequence(Digit('1'), Digits(digits, kWhole - 1));
  }
  Node ExactWhole(std::string_view whole) {
    return whole.size() > kWhole ? Expressions::kNothing : e_.Text(whole);
  }

  Node WholeAbove(std::string_view whole) {
    std::vector<Node> options = {Longer(whole.size())};
    for (size_t i = 0; i < whole.size() && whole.size() <= kWhole; ++i) {
      if (whole[i] == '9') continue;
      options.push_back(Branch(whole, i, static_cast<char>(whole[i] + 1), '9',
                               Digits(whole.size() - i - 1, whole.size() - i - 1)));
    }
    return e_.Choice(options);
  }

  Node WholeBelow(std::string_view whole) {
    std::vector<Node> options;
    if (whole.size() > 1) {
      options.push_back(e_.Byte('0'));
      const size_t more = std::min<size_t>(whole.size() - 2, kWhole - 1);
      options.push_back(e_.Sequence(Digit('1'), Digits(0, more)));
    }
    for (size_t i = 0; i < whole.size() && whole.size() <= kWhole; ++i) {
      const char first = i == 0 && whole.size() > 1 ? '1' : '0';
      if (whole[i] <= first) continue;
      options.push_back(Branch(whole, i, first, static_cast<char>(whole[i] - 1),
                               Digits(whole.size() - i - 1, whole.size() - i - 1)));
    }
    return e_.Choice(options);
  }

  // The first `i` digits of `digits`, then a digit from `first` to `last`, then `rest`.
  Node Branch(std::string_view digits, size_t i, char first, char last, Node rest) {
    return e_.Sequence(std::array{e_.Text(digits.substr(0, i)), Digit(first, last), rest});
  }

  Node AnyTail() {
    if (!has_fractions_) return Expressions::kEmpty;
    return e_.Optional(e_.Sequence(e_.Byte('.'), Digits(1, kFraction)));
  }

  Node TailAbove(std::string_view fraction, bool is_exclusive) {
    if (!has_fractions_) {
      return fraction.empty() && !is_exclusive ? Expressions::kEmpty : Expressions::kNothing;
    }
    if (fraction.empty() && !is_exclusive) return AnyTail();
    std::vector<Node> options;
    const size_t size = std::min<size_t>(fraction.size(), kFraction);
    for (size_t i = 0; i < size; ++i) {
      if (fraction[i] == '9') continue;
      options.push_back(Branch(fraction, i, static_cast<char>(fraction[i] + 1), '9',
                               Digits(0, kFraction - i - 1)));
    }
    if (fraction.size() <= kFraction) {
      const size_t left = kFraction - fraction.size();
      Node more = Digits(0, left);
      if (is_exclusive) more = left == 0 ? Expressions::kNothing : NotAllZero(left);
      options.push_back(e_.Sequence(e_.Text(fraction), more));
    }
    return e_.Sequence(e_.Byte('.'), e_.Choice(options));
  }

  // At most `size` digits, of which one is not 0.
  Node NotAllZero(size_t size) {
    std::vector<Node> options;
    options.reserve(size);
    for (size_t zeros = 0; zeros < size; ++zeros) {
      options.push_back(e_.Sequence(std::array{
          e_.Repeat(e_.Byte('0'), static_cast<uint32_t>(zeros), static_cast<uint32_t>(zeros)),
          Digit('1'), Digits(0, size - zeros - 1)}));
    }
    return e_.Choice(options);
  }

  Node TailBelow(std::string_view fraction, bool is_exclusive) {
    if (!has_fractions_) {
      return fraction.empty() && is_exclusive ? Expressions::kNothing : Expressions::kEmpty;
    }
    std::vector<Node> options;
    const size_t size = std::min<size_t>(fraction.size(), kFraction);
    for (size_t i = 0; i < size; ++i) {
      if (fraction[i] > '0') {
        options.push_back(Branch(fraction, i, '0', static_cast<char>(fraction[i] - 1),
                                 Digits(0, kFraction - i - 1)));
      }
      // Fewer digits of the bound itself are less than it, as its last digit is not 0.
      if (i > 0) options.push_back(e_.Text(fraction.substr(0, i)));
    }
    if (fraction.size() > kFraction) {
      options.push_back(e_.Text(fraction.substr(0, kFraction)));
    } else if (!is_exclusive) {
      const size_t least = fraction.empty() ? 1 : 0;
      const auto most = static_cast<uint32_t>(kFraction - fraction.size());
      options.push_back(e_.Sequence(e_.Text(fraction), e_.Repeat(e_.Byte('0'), least, most)));
    }
    const Node tail = e_.Sequence(e_.Byte('.'), e_.Choice(options));
    return fraction.empty() && is_exclusive ? tail : e_.Optional(tail);
  }

  Expressions& e_;
  bool has_fractions_;
};

// From `lower` to `upper`, both without a sign; `lower` may be none, which is 0.
Node MagnitudesBetween(Expressions& e, const Bound& lower, const Bound& upper, bool has_fractions) {
  Magnitudes magnitudes(e, has_fractions);
  const bool has_lower = lower.at && (!lower.at->is_zero() || lower.is_exclusive);
  if (!has_lower && !upper.at) return magnitudes.All();
  if (!has_lower) return magnitudes.AtMost(*upper.at, upper.is_exclusive);
  const Node above = magnitudes.AtLeast(*lower.at, lower.is_exclusive);
  if (!upper.at) return above;
  return e.Both(above, magnitudes.AtMost(*upper.at, upper.is_exclusive));
}

Bound Negated(const Bound& bound) {
  Bound negated = bound;
  if (negated.at && !negated.at->is_zero()) negated.at->is_negative = !bound.at->is_negative;
  return negated;
}

// Whether numbers less than 0 lie above a lower bound, or, negated, greater ones below an upper.
bool IsBelowZero(const Bound& bound) { return !bound.at || bound.at->is_negative; }

// Any number whose value is not whole.
Node Fractional(Expressions& e) {
  ByteSet all;
  all.AddRange('0', '9');
  ByteSet positive;
  positive.AddRange('1', '9');
  const Node digit = e.Bytes(all);
  const Node digits = e.Repeat(digit, 0, kUnbounded);
  return e.Sequence(std::array{e.Optional(e.Byte('-')), digit, digits, e.Byte('.'), digits,
                               e.Bytes(positive), digits});
}

}  // namespace

std::string Decimal::Text() const {
  std::string text = is_negative ? "-" + whole : whole;
  if (!fraction.empty()) text += '.' + fraction;
  return text;
}

Decimal WholeDecimal(int64_t number) {
  Decimal decimal;
  decimal.whole = std::to_string(number);
  decimal.is_negative = number < 0;
  if (decimal.is_negative) decimal.whole.erase(0, 1);
  return decimal;
}

std::optional<Decimal> ReadDecimal(std::string_view number) {
  const bool is_negative = number.starts_with('-');
  if (is_negative) number.remove_prefix(1);
  const size_t letter = std::min(number.find_first_of("eE"), number.size());
  std::string digits(number.substr(0, letter));
  // The digits before the point, which may be less than none.
  auto before = static_cast<int64_t>(std::min(digits.find('.'), digits.size()));
  std::erase(digits, '.');
  const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.empty()) return Decimal();
  if (letter < number.size()) {
    std::string_view power = number.substr(letter + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    int64_t exponent = 0;
    const auto read = std::from_chars(power.data(), power.data() + power.size(), exponent);
    constexpr int64_t kMaxExponent = int64_t{1} << 40;  // The lengths of texts are less.
    if (read.ec != std::errc() || std::abs(exponent) > kMaxExponent) return std::nullopt;
    before += exponent;
  }
  before -= static_cast<int64_t>(zeros);
  const int64_t after = static_cast<int64_t>(digits.size()) - before;
  if (before > kMaxDecimalDigits || after > kMaxDecimalDigits) return std::nullopt;
  if (before < 0) digits.insert(size_t{0}, static_cast<size_t>(-before), '0');
  if (after < 0) digits.append(static_cast<size_t>(-after), '0');
  const auto point = static_cast<size_t>(std::max<int64_t>(before, 0));
  return Decimal{is_negative, point == 0 ? "0" : digits.substr(0, point), digits.substr(point)};
}

int Compare(const Decimal& a, const Decimal& b) {
  if (a.is_negative != b.is_negative) return a.is_negative ? -1 : 1;
  return a.is_negative ? CompareMagnitudes(b, a) : CompareMagnitudes(a, b);
}

Node NumberInRange(Expressions& e, const Bound& lower, const Bound& upper, NumberKind kind) {
  const bool has_fractions = kind != NumberKind::kWhole;
  Node node = Expressions::kNothing;
  if (!lower.at && !upper.at) {
    node = e.Sequence(e.Optional(e.Byte('-')), Magnitudes(e, has_fractions).All());
  } else {
    if (lower.at && upper.at && Compare(*lower.at, *upper.at) > 0) return Expressions::kNothing;
    // The numbers from 0 on, then those below.
    if (!upper.at || !upper.at->is_negative) {
      node = MagnitudesBetween(e, IsBelowZero(lower) ? Bound() : lower, upper, has_fractions);
    }
    if (IsBelowZero(lower)) {
      const Bound zero = {Decimal(), true};
      const Bound least = upper.at && upper.at->is_negative ? Negated(upper) : zero;
      node = e.Choice(node, e.Sequence(e.Byte('-'),
                                       MagnitudesBetween(e, least, Negated(lower), has_fractions)));
    }
  }
  return kind == NumberKind::kFractional ? e.Both(node, Fractional(e)) : node;
}

Node SpellingsOf(Expressions& e, const Decimal& number) {
  const Node zeros = e.Repeat(e.Byte('0'), 0, kUnbounded);
  const Node text = e.Text(number.Text());
  if (!number.fraction.empty()) return e.Sequence(text, zeros);
  const Node point = e.Optional(e.Sequence(std::array{e.Byte('.'), e.Byte('0'), zeros}));
  const Node sign = number.is_zero() ? e.Optional(e.Byte('-')) : Expressions::kEmpty;
  return e.Sequence(std::array{sign, text, point});
}

Node MultiplesOf(Expressions& e, uint8_t digit, int exponent) {
  ByteSet all;
  all.AddRange('0', '9');
  ByteSet last;
  for (int i = 0; i < 10; i += digit) last.Add(static_cast<uint8_t>('0' + i));
  const Node digits = e.Repeat(e.Bytes(all), 0, kUnbounded);
  const Node zero = e.Byte('0');
  const Node zeros = e.Repeat(zero, 0, kUnbounded);
  const Node point = e.Byte('.');
  const Node no_fraction = e.Optional(e.Sequence(std::array{point, zero, zeros}));
  const Node sign = e.Optional(e.Byte('-'));
  if (exponent >= 0) {
    const auto count = static_cast<uint32_t>(exponent);
    const Node multiple =
        e.Sequence(std::array{digits, e.Bytes(last), e.Repeat(zero, count, count)});
    return e.Sequence(std::array{sign, e.Choice(multiple, zero), no_fraction});
  }
  const auto count = static_cast<uint32_t>(-exponent);
  const Node fewer = e.Repeat(e.Bytes(all), 0, count - 1);
  const Node exact =
      e.Sequence(std::array{e.Repeat(e.Bytes(all), count - 1, count - 1), e.Bytes(last), zeros});
  const Node tail = e.Sequence(point, e.Choice(fewer, exact));
  return e.Sequence(std::array{sign, e.Bytes(all), digits, e.Optional(tail)});
}

}  // namespace cria::grammar
