#include "mpi/late_rank.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace cria::mpi {
namespace {

using std::chrono::seconds;

constexpr seconds kLimit(10);

// Three ranks, of which a test says how far each is.
class LateRankTest : public testing::Test {
 protected:
  static RankProgress Waits(uint64_t exchange, RankPhase phase = RankPhase::kComputing) {
    return {.num_exchanges = exchange, .phase = phase, .waits = true};
  }
  static RankProgress Works(uint64_t exchange, RankPhase phase = RankPhase::kComputing) {
    return {.num_exchanges = exchange, .phase = phase};
  }
  void Update(size_t rank, const RankProgress& progress, seconds time = seconds(0)) {
    late_.Update(rank, progress, start_ + time);
  }
  std::optional<size_t> Find(seconds time) const { return late_.Find(start_ + time); }

  const LateRank::Clock::time_point start_ = LateRank::Clock::now();
  LateRank late_{3, kLimit, start_};
};

TEST_F(LateRankTest, IsTheOneForWhichOthersWaitTooLong) {
  Update(0, Waits(7));
  Update(1, Works(6));
  Update(2, Waits(7));
  EXPECT_EQ(Find(kLimit), std::nullopt);
  EXPECT_EQ(Find(kLimit + seconds(1)), 1u);
}

TEST_F(LateRankTest, MayBeRank0InTheMiddleOfAStep) {
  Update(0, Works(6));
  Update(1, Waits(7));
  Update(2, Waits(7));
  EXPECT_EQ(Find(kLimit + seconds(1)), 0u);
}

TEST_F(LateRankTest, IsNotRank0ThatHasNothingToDo) {
  Update(0, Works(6));
  Update(1, Waits(7, RankPhase::kIdle));
  Update(2, Waits(7, RankPhase::kIdle));
  EXPECT_EQ(Find(seconds(1'000'000)), std::nullopt);
}

TEST_F(LateRankTest, IsNoneThatGetsOn) {
  Update(0, Waits(7));
  Update(1, Works(6));
  // Each repetition of what is known changes nothing, and each exchange does.
  Update(0, Waits(7), seconds(9));
  Update(1, Works(7), seconds(9));
  Update(0, Waits(8), seconds(9));
  EXPECT_EQ(Find(seconds(18)), std::nullopt);
  EXPECT_EQ(Find(seconds(20)), 1u);
}

TEST_F(LateRankTest, HasMoreTimeToLoad) {
  Update(0, Waits(7, RankPhase::kLoading));
  Update(1, Works(6, RankPhase::kLoading));
  EXPECT_EQ(Find(kLimit * LateRank::kLoadingFactor), std::nullopt);
  EXPECT_EQ(Find(kLimit * LateRank::kLoadingFactor + seconds(1)), 1u);
  // It has packed another matrix.
  RankProgress packs = Works(6, RankPhase::kLoading);
  packs.num_phases = 1;
  Update(1, packs, kLimit * LateRank::kLoadingFactor);
  EXPECT_EQ(Find(kLimit * (LateRank::kLoadingFactor + 1)), std::nullopt);
}

TEST_F(LateRankTest, IsNoneAmongThoseThatAllCompute) {
  Update(0, Works(6));
  Update(1, Works(6));
  Update(2, Works(6));
  EXPECT_EQ(Find(kLimit + seconds(1)), std::nullopt);
}

TEST_F(LateRankTest, IsNoneOfWhichNothingIsKnown) {
  EXPECT_EQ(Find(kLimit + seconds(1)), std::nullopt);
  // Another rank than rank 0 knows of rank 0 and itself.
  Update(0, Waits(7));
  Update(2, Waits(7));
  EXPECT_EQ(Find(kLimit + seconds(1)), std::nullopt);
}

// Rank 1 knows of rank 0 and itself. Rank 0 waits for rank 2, and tells that this one gets on.
TEST_F(LateRankTest, IsNotRank0ThatWaitsForOneThatGetsOn) {
  RankProgress rank_0 = Waits(6);
  Update(0, rank_0);
  Update(1, Waits(7));
  EXPECT_EQ(Find(kLimit + seconds(1)), 0u);
  rank_0.num_seen = 1;
  Update(0, rank_0, kLimit);
  EXPECT_EQ(Find(kLimit + seconds(1)), std::nullopt);
  EXPECT_EQ(Find(2 * kLimit + seconds(1)), 0u);
}

TEST_F(LateRankTest, CountsWhatIsNew) {
  const uint32_t before = late_.num_changes();
  Update(0, Works(6));
  Update(1, Works(6));
  EXPECT_EQ(late_.num_changes(), before + 2);
  Update(1, Works(6));
  EXPECT_EQ(late_.num_changes(), before + 2);
  Update(1, Waits(7));
  EXPECT_EQ(late_.num_changes(), before + 3);
  late_.Restart(start_ + seconds(1));
  EXPECT_EQ(late_.num_changes(), before + 4);
}

TEST_F(LateRankTest, TimeThatThisProcessSleptDoesNotCount) {
  Update(0, Waits(7));
  Update(1, Works(6));
  late_.Restart(start_ + seconds(100));
  EXPECT_EQ(Find(seconds(100) + kLimit), std::nullopt);
  EXPECT_EQ(Find(seconds(101) + kLimit), 1u);
}

}  // namespace
}  // namespace cria::mpi
