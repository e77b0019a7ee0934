#include "cli/mpi/rank_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/unwrap.h"

namespace cria::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Taken {
  RankOptions options;
  std::vector<std::string> others;
};

Taken Take(std::vector<std::string> arguments) {
  Taken taken;
  taken.options = Unwrap(TakeRankOptions(arguments));
  taken.others = std::move(arguments);
  return taken;
}

std::string Refusal(std::vector<std::string> arguments) {
  const Result<RankOptions> options = TakeRankOptions(arguments);
  if (options) return "taken";
  EXPECT_EQ(options.error().code(), ErrorCode::kUsage);
  return std::string(options.error().message());
}

TEST(RankOptionsTest, StandBetweenThoseOfTheCommand) {
  const Taken taken =
      Take({"chat", "--rank-weights", "2,1,0.5", "-m", "a.cria", "--rank-timeout", "3",
            "--rank-start=7", "--rank-stall", "20", "--rank-wire", "int8", "-t", "2"});
  EXPECT_THAT(taken.others, ElementsAre("chat", "-m", "a.cria", "-t", "2"));
  EXPECT_THAT(taken.options.link.weights, ElementsAre(2.0, 1.0, 0.5));
  EXPECT_EQ(taken.options.link.wire, WireType::kInt8);
  EXPECT_EQ(taken.options.limits.silence, std::chrono::seconds(3));
  EXPECT_EQ(taken.options.limits.start, std::chrono::seconds(7));
  EXPECT_EQ(taken.options.limits.stall, std::chrono::seconds(20));
}

TEST(RankOptionsTest, OfAPlanAreRanksAndTheNetwork) {
  const Taken taken =
      Take({"plan", "--ranks=4", "--network-mbit", "100", "--network-ms=0.5", "--json"});
  EXPECT_THAT(taken.others, ElementsAre("plan", "--json"));
  EXPECT_EQ(taken.options.num_ranks, 4u);
  EXPECT_EQ(taken.options.LinkOf(2).wire, WireType::kF32);
  EXPECT_THAT(taken.options.LinkOf(2).weights, ElementsAre(1.0, 1.0));
  EXPECT_DOUBLE_EQ(taken.options.network.bytes_per_second, 12.5e6);
  EXPECT_DOUBLE_EQ(taken.options.network.latency_seconds, 0.5e-3);
}

TEST(RankOptionsTest, WhatStandsBehindTwoDashesIsLeft) {
  const Taken taken = Take({"run", "--", "--ranks", "4"});
  EXPECT_THAT(taken.others, ElementsAre("run", "--", "--ranks", "4"));
  EXPECT_EQ(taken.options.num_ranks, 0u);
}

TEST(RankOptionsTest, BadValuesAreRefused) {
  EXPECT_THAT(Refusal({"--ranks"}), HasSubstr("--ranks takes a whole number"));
  EXPECT_THAT(Refusal({"--ranks", "-1"}), HasSubstr("not \"-1\""));
  EXPECT_THAT(Refusal({"--ranks", "4x"}), HasSubstr("not \"4x\""));
  EXPECT_THAT(Refusal({"--rank", "4", "--ranks", "4"}), HasSubstr("--rank 4 is not one of"));
  EXPECT_THAT(Refusal({"--rank-wire", "f64"}), HasSubstr("takes f32, f16 or int8, not \"f64\""));
  EXPECT_THAT(Refusal({"--rank-timeout", "0.5"}), HasSubstr("at least 3"));
  EXPECT_THAT(Refusal({"--ranks", "4", "--rank-weights", "2,1"}),
              HasSubstr("--rank-weights has 2 numbers for --ranks 4"));
  EXPECT_THAT(Refusal({"--network-ms", "1,2"}), HasSubstr("takes one number"));
  for (const char* const weights : {"", "0", "1,", ",1", "1,,1", "-1", "nan", "inf", "1 2"}) {
    EXPECT_THAT(Refusal({"--rank-weights", weights}), HasSubstr("takes numbers above 0"))
        << weights;
  }
}

TEST(RankOptionsTest, ANumberOfRanksThatDoNotRunIsRefused) {
  const RankOptions two = Take({"--ranks", "2"}).options;
  for (const size_t num_running : {0, 3}) EXPECT_TRUE(CheckRankOptions(two, "plan", num_running));
  EXPECT_TRUE(CheckRankOptions(two, "run", 2));
  EXPECT_TRUE(CheckRankOptions({}, "run", 0));
  for (const size_t num_running : {0, 3}) {
    const Status refused = CheckRankOptions(two, "run", num_running);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
    EXPECT_THAT(std::string(refused.error().message()), HasSubstr("mpirun -np 2 cria run"));
  }
}

TEST(RankOptionsTest, PackingNeedsARankAndNothingElseTakesOne) {
  const RankOptions one_of_two = Take({"--ranks", "2", "--rank", "1"}).options;
  EXPECT_TRUE(CheckRankOptions(one_of_two, "pack", 0));
  EXPECT_TRUE(CheckRankOptions({}, "pack", 0));
  const Status whole = CheckRankOptions(Take({"--ranks", "2"}).options, "pack", 0);
  ASSERT_FALSE(whole);
  EXPECT_THAT(std::string(whole.error().message()), HasSubstr("say which with --rank"));
  const Status running = CheckRankOptions({}, "pack", 2);
  ASSERT_FALSE(running);
  EXPECT_THAT(std::string(running.error().message()), HasSubstr("cria pack --ranks 2 --rank R"));
  EXPECT_FALSE(CheckRankOptions(Take({"--network-ms", "1"}).options, "run", 2));
  EXPECT_FALSE(CheckRankOptions(Take({"--rank-weights", "2,1"}).options, "pack", 0));
  EXPECT_TRUE(CheckRankOptions(Take({"--rank-weights", "2,1"}).options, "run", 2));
  for (const char* const command : {"plan", "run"}) {
    const Status refused = CheckRankOptions(one_of_two, command, 2);
    ASSERT_FALSE(refused) << command;
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
    EXPECT_THAT(std::string(refused.error().message()), HasSubstr("--rank is for pack"));
  }
}

}  // namespace
}  // namespace cria::cli
