#include "cli/terminal/block_drawing.h"

#include <gtest/gtest.h>

#include <vector>

namespace cria::cli {
namespace {

std::string Spark(const std::vector<double>& values) { return Sparkline(values); }

TEST(SparklineTest, HeightsAreSharesOfTheLargest) {
  EXPECT_EQ(Spark({}), "");
  EXPECT_EQ(Spark({5}), "█");
  EXPECT_EQ(Spark({0, 7, 14}), "▁▅█");
  EXPECT_EQ(Spark({1, 2, 3, 4, 5, 6, 7, 0}), "▂▃▄▅▆▇█▁");
  EXPECT_EQ(Spark({0, 0}), "▁▁");
}

TEST(PartsBarTest, PartsAreSharesOfTheWhole) {
  EXPECT_EQ(PartsBar(2, 3, 10, 10), "██▒▒▒░░░░░");
  EXPECT_EQ(PartsBar(0, 0, 10, 4), "░░░░");
  EXPECT_EQ(PartsBar(10, 0, 10, 4), "████");
  EXPECT_EQ(PartsBar(1, 9, 10, 4), "▒▒▒▒");
  EXPECT_EQ(PartsBar(8, 8, 10, 5), "████▒") << "more than the whole";
  EXPECT_EQ(PartsBar(3, 3, 0, 3), "░░░") << "nothing is known";
  EXPECT_EQ(PartsBar(1, 1, 2, 0), "");
}

}  // namespace
}  // namespace cria::cli
