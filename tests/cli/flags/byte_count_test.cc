#include "cli/flags/byte_count.h"

#include <gtest/gtest.h>

namespace cria::cli {
namespace {

TEST(ByteCountTest, UnitsArePowersOfAThousandUnlessTheyHaveAnI) {
  EXPECT_EQ(ParseByteCount("0"), 0u);
  EXPECT_EQ(ParseByteCount("123"), 123u);
  EXPECT_EQ(ParseByteCount("123B"), 123u);
  EXPECT_EQ(ParseByteCount("2K"), 2000u);
  EXPECT_EQ(ParseByteCount("2Ki"), 2048u);
  for (const char* text : {"700M", "700MB", "700m", "700mb", "700 MB", "700000kB"}) {
    EXPECT_EQ(ParseByteCount(text), 700'000'000u) << text;
  }
  for (const char* text : {"700Mi", "700MiB", "700mib", "700 MiB", "716800KiB"}) {
    EXPECT_EQ(ParseByteCount(text), uint64_t{700} << 20) << text;
  }
  EXPECT_EQ(ParseByteCount("3G"), 3'000'000'000u);
  EXPECT_EQ(ParseByteCount("3GiB"), uint64_t{3} << 30);
  EXPECT_EQ(ParseByteCount("5T"), 5'000'000'000'000u);
  EXPECT_EQ(ParseByteCount("5Ti"), uint64_t{5} << 40);
}

TEST(ByteCountTest, UnitsMayHaveDecimals) {
  EXPECT_EQ(ParseByteCount("1.5G"), 1'500'000'000u);
  EXPECT_EQ(ParseByteCount("1.5 GiB"), uint64_t{3} << 29);
  EXPECT_EQ(ParseByteCount("0.000001T"), 1'000'000u);
  EXPECT_EQ(ParseByteCount("2.05kB"), 2050u);
  EXPECT_EQ(ParseByteCount("18446744.073709T"), 18'446'744'073'709'000'000u);
  for (const char* text :
       {"1.5", "1.5B", "1.G", ".5G", "1.0000000G", "1.-5G", "1.5.5G", "1,5G", "18446744.073710T"}) {
    EXPECT_EQ(ParseByteCount(text), std::nullopt) << text;
  }
}

TEST(ByteCountTest, OtherTextIsNoNumberOfBytes) {
  for (const char* text :
       {"", "M", "-1", "+1", "1P", "1x", "1MM", "1iB", "1i", "1Bi", "1MBB", "1  M", "0x10",
        "18446744073709551616", "18446744073709551615K", "16777216Ti"}) {
    EXPECT_EQ(ParseByteCount(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseByteCount("18446744073709551615"), UINT64_MAX);
}

}  // namespace
}  // namespace cria::cli
