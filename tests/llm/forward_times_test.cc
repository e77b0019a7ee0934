#include "llm/forward_times.h"

#include <gtest/gtest.h>

namespace cria {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A single token takes ten milliseconds, and each token of a prompt beside it one more.
ForwardTimes Measured() {
  ForwardTimes times(128);
  times.Learn(1, 0, milliseconds(10));
  times.Learn(1, 8, milliseconds(18));
  return times;
}

TEST(ForwardTimesTest, WaitsForAPartOfTheUsualTime) {
  ForwardTimes times(128);
  EXPECT_EQ(times.Patience(false), milliseconds(0)) << "nothing is known";
  times.Learn(1, 0, milliseconds(80));
  EXPECT_EQ(times.Patience(false), milliseconds(20));
  EXPECT_EQ(times.Patience(true), milliseconds(40));
  // An eighth of a later time counts.
  times.Learn(1, 0, milliseconds(160));
  EXPECT_EQ(times.Patience(true), milliseconds(45));
  // Prompts are not usual.
  times.Learn(0, 100, milliseconds(900));
  EXPECT_EQ(times.Patience(true), milliseconds(45));
}

TEST(ForwardTimesTest, PromptsAreReadInPartsThatTakeThreeTimesAsLong) {
  ForwardTimes times(128);
  times.Learn(1, 0, milliseconds(10));
  EXPECT_EQ(times.PromptTokensBeside(1), 8u) << "no part of a prompt was read yet";
  // A token of the prompt takes a millisecond.
  times.Learn(1, 8, milliseconds(18));
  EXPECT_EQ(times.PromptTokensBeside(1), 20u);
  // A quarter of a later time counts, and at most that of one that took twice as long.
  times.Learn(1, 20, milliseconds(1000));
  EXPECT_EQ(times.PromptTokensBeside(1), 16u);
  for (int i = 0; i < 40; ++i) times.Learn(1, 16, milliseconds(1000));
  EXPECT_EQ(times.PromptTokensBeside(1), 1u);
  for (int i = 0; i < 80; ++i) times.Learn(1, 128, microseconds(10'010));
  EXPECT_EQ(times.PromptTokensBeside(1), 128u) << "never more than a chunk";
}

TEST(ForwardTimesTest, MoreSingleTokensHaveLongerPartsOfPromptsBesideThem) {
  ForwardTimes times = Measured();
  EXPECT_EQ(times.PromptTokensBeside(8), 0u) << "the time of eight alone is measured first";
  times.Learn(8, 0, milliseconds(24));
  EXPECT_EQ(times.PromptTokensBeside(8), 48u);
  EXPECT_EQ(times.PromptTokensBeside(1), 20u);
}

TEST(ForwardTimesTest, APartOfAPromptAloneIsLearntToo) {
  ForwardTimes times(128);
  times.Learn(1, 0, milliseconds(10));
  times.Learn(0, 1, milliseconds(10));
  EXPECT_EQ(times.PromptTokensBeside(1), 8u);
  times.Learn(0, 101, milliseconds(60));
  EXPECT_EQ(times.PromptTokensBeside(1), 40u);
}

TEST(ForwardTimesTest, TheShortEndOfAPromptIsNotLearnt) {
  ForwardTimes times = Measured();
  times.Learn(1, 2, milliseconds(18));
  EXPECT_EQ(times.PromptTokensBeside(1), 20u);
}

TEST(ForwardTimesTest, SingleTokensAreMeasuredAgainIfThereAreAlwaysPrompts) {
  ForwardTimes times(128);
  times.Learn(1, 0, milliseconds(10));
  for (int i = 0; i < 255; ++i) times.Learn(1, 20, milliseconds(30));
  EXPECT_EQ(times.PromptTokensBeside(1), 20u);
  times.Learn(1, 20, milliseconds(30));
  EXPECT_EQ(times.PromptTokensBeside(1), 0u);
  times.Learn(1, 0, milliseconds(10));
  EXPECT_EQ(times.PromptTokensBeside(1), 20u);
}

TEST(ForwardTimesTest, AMeasurementOnASlowMachineIsForgottenByShorterForwardsWithPrompts) {
  ForwardTimes times = Measured();
  times.Learn(8, 0, milliseconds(1000));
  EXPECT_EQ(times.PromptTokensBeside(8), 128u);
  for (int i = 0; i < 100; ++i) times.Learn(8, 32, milliseconds(40));
  EXPECT_LT(times.costs().Seconds(8), 0.045);
  EXPECT_LE(times.PromptTokensBeside(8), 90u);
}

TEST(ForwardTimesTest, MoreSingleTokensThanHaveTimesAreKnownTogether) {
  ForwardTimes times(128);
  EXPECT_EQ(times.PromptTokensBeside(100), 0u);
  times.Learn(100, 0, milliseconds(10));
  EXPECT_EQ(times.PromptTokensBeside(90), 8u);
}

TEST(ForwardTimesTest, AChunkMayBeShorterThanTheFirstPart) {
  ForwardTimes times(4);
  times.Learn(1, 0, milliseconds(10));
  EXPECT_EQ(times.PromptTokensBeside(1), 4u);
}

}  // namespace
}  // namespace cria
