#include "llm/forward_times.h"

#include <gtest/gtest.h>

namespace cria {
namespace {

using std::chrono::milliseconds;

TEST(ForwardTimesTest, WaitsForAPartOfTheUsualTime) {
  ForwardTimes times(128);
  EXPECT_EQ(times.Patience(false), milliseconds(0)) << "nothing is known";
  times.Learn(1, milliseconds(80), /*has_prompt=*/false, /*delays_others=*/true);
  EXPECT_EQ(times.Patience(false), milliseconds(20));
  EXPECT_EQ(times.Patience(true), milliseconds(40));
  // An eighth of a later time counts.
  times.Learn(1, milliseconds(160), false, true);
  EXPECT_EQ(times.Patience(true), milliseconds(45));
  // Prompts are not usual.
  times.Learn(100, milliseconds(900), true, false);
  EXPECT_EQ(times.Patience(true), milliseconds(45));
}

TEST(ForwardTimesTest, PromptsAreReadInPartsThatTakeThreeTimesAsLong) {
  ForwardTimes times(20);
  EXPECT_EQ(times.prompt_tokens(), 8u);
  times.Learn(8, milliseconds(10), true, true);
  EXPECT_EQ(times.prompt_tokens(), 8u) << "no single token was run yet";
  times.Learn(1, milliseconds(10), false, true);
  times.Learn(8, milliseconds(40), true, true);
  EXPECT_EQ(times.prompt_tokens(), 6u);
  times.Learn(6, milliseconds(40), true, /*delays_others=*/false);
  EXPECT_EQ(times.prompt_tokens(), 6u) << "nobody waited";
  // At most half as many more, and never more than a chunk.
  for (const size_t tokens : {9u, 13u, 19u, 20u, 20u}) {
    times.Learn(6, milliseconds(1), true, true);
    EXPECT_EQ(times.prompt_tokens(), tokens);
  }
  for (int i = 0; i < 10; ++i) times.Learn(20, milliseconds(1000), true, true);
  EXPECT_EQ(times.prompt_tokens(), 1u);
}

TEST(ForwardTimesTest, AChunkMayBeShorterThanTheFirstPart) {
  EXPECT_EQ(ForwardTimes(4).prompt_tokens(), 4u);
}

}  // namespace
}  // namespace cria
