#include "grammar/number_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "grammar/expression_texts.h"

namespace cria::grammar {
namespace {

// In thousandths, so that all numbers here are exact.
Decimal DecimalOfThousandths(int64_t thousandths) {
  return *ReadDecimal(std::to_string(thousandths) + "e-3");
}

bool IsWithin(int64_t number, const Bound& lower, const Bound& upper, int64_t low, int64_t high) {
  if (lower.at && (number < low || (lower.is_exclusive && number == low))) return false;
  return !upper.at || (number <= high && !(upper.is_exclusive && number == high));
}

// With zeros behind it, which change nothing, and a point if there is none.
std::string WithZeros(const std::string& text, size_t zeros) {
  return (text.contains('.') ? text : text + ".") + std::string(zeros, '0');
}

TEST(NumberRangesTest, RandomRangesAllowWhatIsBetweenTheirBounds) {
  std::mt19937 random(1);
  const auto number = [&random] {
    const int64_t scale = std::array{1, 10, 100, 1000, 12345}[random() % 5];
    return (static_cast<int64_t>(random() % 2001) - 1000) * scale / (random() % 2 == 0 ? 1 : 10);
  };
  int allowed = 0;
  for (int i = 0; i < 150; ++i) {
    const int64_t low = number();
    const int64_t high = number();
    Bound lower = {DecimalOfThousandths(low), random() % 2 == 0};
    Bound upper = {DecimalOfThousandths(high), random() % 2 == 0};
    if (random() % 4 == 0) lower = {};
    if (random() % 4 == 0) upper = {};
    const auto kind = static_cast<NumberKind>(random() % 3);
    ExpressionTexts texts;
    const Node node = NumberInRange(texts.expressions(), lower, upper, kind);
    const bool is_empty = !texts.Begin(node).has_value();
    for (int k = 0; k < 60; ++k) {
      const int64_t near = k % 3 == 0 ? low : high;
      const int64_t value = k < 30 ? number() : near + static_cast<int64_t>(random() % 5) - 2;
      const std::string text = DecimalOfThousandths(value).Text();
      const bool is_kind =
          kind == NumberKind::kAny || (value % 1000 == 0) == (kind == NumberKind::kWhole);
      const bool expected = is_kind && IsWithin(value, lower, upper, low, high);
      SCOPED_TRACE(testing::Message() << text << " between " << low << " and " << high);
      if (is_empty) {
        ASSERT_FALSE(expected);
        continue;
      }
      ASSERT_EQ(texts.Matches(text), expected);
      ASSERT_EQ(texts.Matches(WithZeros(text, 2)), expected && kind != NumberKind::kWhole);
      allowed += expected;
    }
  }
  EXPECT_GT(allowed, 1000);
}

TEST(NumberRangesTest, DecimalsAreExact) {
  EXPECT_EQ(WholeDecimal(INT64_MIN).Text(), "-9223372036854775808");
  EXPECT_EQ(WholeDecimal(0).Text(), "0");
  const std::pair<const char*, const char*> numbers[] = {
      {"0.1", "0.1"},
      {"-0.0", "0"},
      {"0e9999999999999999999", "0"},
      {"300.0", "300"},
      {"-2.50", "-2.5"},
      {"18446744073709551616", "18446744073709551616"},
      {"-9223372036854775809", "-9223372036854775809"},
      {"1e2", "100"},
      {"1.25E+1", "12.5"},
      {"1200e-2", "12"},
      {"1205e-4", "0.1205"},
      {"0.05", "0.05"},
      {"0.05e1", "0.5"},
      {"0.05e4", "500"},
      {"-3e-2", "-0.03"},
      {"123456789.123456789123456789", "123456789.123456789123456789"},
  };
  for (const auto& [written, text] : numbers) {
    ASSERT_TRUE(ReadDecimal(written)) << written;
    EXPECT_EQ(ReadDecimal(written)->Text(), text) << written;
  }
  EXPECT_EQ(ReadDecimal("1e308")->whole.size(), 309U);
  EXPECT_EQ(ReadDecimal("5e-324")->fraction.size(), 324U);
  EXPECT_EQ(ReadDecimal("1e399")->whole.size(), 400U);
  EXPECT_EQ(ReadDecimal("0." + std::string(1000, '0') + "1e1000")->Text(), "0.1");
  for (const char* number : {"1e400", "1e-401", "1e99999999999999999999",
                             "-1e-99999999999999999999", "1e2000000000000"}) {
    EXPECT_FALSE(ReadDecimal(number)) << number;
  }
}

TEST(NumberRangesTest, DecimalsHaveAnOrder) {
  EXPECT_LT(Compare(WholeDecimal(-5), WholeDecimal(3)), 0);
  EXPECT_LT(Compare(WholeDecimal(-5), WholeDecimal(-3)), 0);
  EXPECT_GT(Compare(WholeDecimal(10), WholeDecimal(9)), 0);
  EXPECT_GT(Compare(*ReadDecimal("0.25"), *ReadDecimal("0.2")), 0);
  EXPECT_EQ(Compare(*ReadDecimal("2.0"), WholeDecimal(2)), 0);
}

TEST(NumberRangesTest, BoundsBeyondTheLongestNumber) {
  ExpressionTexts large;
  EXPECT_TRUE(large.Begin(
      NumberInRange(large.expressions(), {}, {ReadDecimal("1e300")}, NumberKind::kAny)));
  EXPECT_TRUE(large.Matches("99999999999999999999.5"));
  EXPECT_FALSE(large.Matches("100000000000000000000"));
  ExpressionTexts tiny;
  EXPECT_TRUE(tiny.Begin(NumberInRange(tiny.expressions(), {ReadDecimal("1e-300")},
                                       {WholeDecimal(1)}, NumberKind::kAny)));
  EXPECT_FALSE(tiny.Matches("0"));
  EXPECT_FALSE(tiny.Matches("0.0"));
  EXPECT_TRUE(tiny.Matches("0.00000000000000000001"));
  EXPECT_FALSE(tiny.Matches("0.000000000000000000001"));
  ExpressionTexts none;
  EXPECT_FALSE(
      none.Begin(NumberInRange(none.expressions(), {ReadDecimal("1e20")}, {}, NumberKind::kAny)));
}

TEST(NumberRangesTest, SpellingsOfANumberHaveZerosBehindIt) {
  ExpressionTexts texts;
  Expressions& e = texts.expressions();
  EXPECT_TRUE(
      texts.Begin(e.Choice(SpellingsOf(e, WholeDecimal(0)), SpellingsOf(e, *ReadDecimal("-1.5")))));
  for (const char* text : {"0", "-0", "0.0", "-0.00", "-1.5", "-1.50"}) {
    EXPECT_TRUE(texts.Matches(text)) << text;
  }
  for (const char* text : {"0.", "00", "1.5", "-1.", "-1.05"}) {
    EXPECT_FALSE(texts.Matches(text)) << text;
  }
}

TEST(NumberRangesTest, MultiplesAreSeenByTheirDigits) {
  for (const uint8_t digit : {1, 2, 5}) {
    for (int exponent = -2; exponent <= 2; ++exponent) {
      ExpressionTexts texts;
      Expressions& e = texts.expressions();
      ASSERT_TRUE(texts.Begin(MultiplesOf(e, digit, exponent)));
      int64_t step = 1000 * digit;  // In thousandths.
      for (int i = 0; i < std::abs(exponent); ++i) step = exponent < 0 ? step / 10 : step * 10;
      for (int64_t value = -2'000'000; value < 2'000'000; value += 1235) {
        for (const int64_t near : {value, value / step * step}) {
          const std::string text = DecimalOfThousandths(near).Text();
          ASSERT_EQ(texts.Matches(text), near % step == 0) << text << " by " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cria::grammar
