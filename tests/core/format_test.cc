#include "core/format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <format>
#include <limits>
#include <string>
#include <string_view>

namespace cria {
namespace {

// What std::format makes of the same text.
#define EXPECT_AS_STANDARD(...) EXPECT_EQ(Format(__VA_ARGS__), std::format(__VA_ARGS__))

TEST(FormatTest, TextsAreFilledIn) {
  const std::string text = "text";
  EXPECT_AS_STANDARD("");
  EXPECT_AS_STANDARD("{{}} {{{}}} }}", 1);
  EXPECT_AS_STANDARD("{} {} {} {}", text, std::string_view(text), "literal", text.c_str());
  EXPECT_AS_STANDARD("{1} {0} {1}", "a", "b");
  EXPECT_AS_STANDARD("{}: {}; a: {}", 'c', true, false);
  EXPECT_AS_STANDARD("{:<8}|{:>8}|{:^7}|{:*^9}|{:8}", text, text, text, text, text);
  EXPECT_AS_STANDARD("{:.2}|{:5.3}|{:>3}", text, text, text);
  EXPECT_AS_STANDARD("{:<{}}|{:>{}}|{:.{}}", text, 9, text, 7, text, 1);
  EXPECT_AS_STANDARD("{:>6}|{:.1}|{:>2}", "äöü", "äöü", "");
}

TEST(FormatTest, Integers) {
  for (const int64_t value :
       {int64_t{0}, int64_t{7}, int64_t{-42}, int64_t{255}, std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max()}) {
    EXPECT_AS_STANDARD("{} {:d} {:x} {:X}", value, value, value, value);
    EXPECT_AS_STANDARD("{:02} {:06} {:016x} {:<5}| {:>24} {:^7}", value, value, value, value, value,
                       value);
    EXPECT_AS_STANDARD("{:0{}} {:<05}|{:-<6}", value, 8, value, value);
  }
  EXPECT_AS_STANDARD("{} {:x}", std::numeric_limits<uint64_t>::max(),
                     std::numeric_limits<uint64_t>::max());
  EXPECT_AS_STANDARD("{} {} {} {}", int8_t{-3}, uint8_t{200}, short{5}, 6u);
  EXPECT_AS_STANDARD("{:d} {:d} {:02x}", 'c', true, 'c');
}

TEST(FormatTest, RealNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -0.0, 1.0, -2.5, 0.1, 1e300, 1e-300, 123456.789, 99.995, 1e21,
                             kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_AS_STANDARD("{} {:f} {:g} {:.0f} {:.2f} {:.5f}", value, value, value, value, value,
                       value);
    EXPECT_AS_STANDARD("{:.3g} {:.3} {:>10.3g} {:<8.1f}| {:07.1f} {:3.0f} {:.{}f}", value, value,
                       value, value, value, value, value, 4);
    EXPECT_AS_STANDARD("{} {}", static_cast<float>(value), static_cast<float>(value) / 3);
  }
}

}  // namespace
}  // namespace cria
