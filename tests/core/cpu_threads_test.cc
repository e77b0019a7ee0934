#include "core/cpu_threads.h"

#include <gtest/gtest.h>

namespace cria {
namespace {

using platform::CpuTopology;
using platform::Processor;

constexpr uint64_t kMegahertz = 1'000'000;
constexpr uint32_t kLittle = 1;
constexpr uint32_t kBig = 2;

// Appends `count` cores of one kind, each with `threads_per_core` processors.
void AddCores(CpuTopology& topology, uint32_t count, uint64_t megahertz, uint32_t rank,
              uint32_t threads_per_core = 1) {
  const uint32_t first = topology.processors.empty() ? 0 : topology.processors.back().core + 1;
  for (uint32_t core = first; core < first + count; ++core) {
    for (uint32_t thread = 0; thread < threads_per_core; ++thread) {
      topology.processors.push_back({core, megahertz * kMegahertz, rank});
    }
  }
}

TEST(DefaultThreadCountTest, EqualCoresAllCount) {
  CpuTopology raspberry_pi_4;  // Cortex-A72
  AddCores(raspberry_pi_4, 4, 1800, kBig);
  EXPECT_EQ(DefaultThreadCount(raspberry_pi_4), 4u);

  CpuTopology raspberry_pi_zero_2;  // Cortex-A53: little cores, but there are no others.
  AddCores(raspberry_pi_zero_2, 4, 1000, kLittle);
  EXPECT_EQ(DefaultThreadCount(raspberry_pi_zero_2), 4u);

  CpuTopology raspberry_pi_5;  // Cortex-A76
  AddCores(raspberry_pi_5, 4, 2400, kBig);
  EXPECT_EQ(DefaultThreadCount(raspberry_pi_5), 4u);
}

TEST(DefaultThreadCountTest, LittleCoresAreLeftOut) {
  CpuTopology phone;  // Snapdragon 8 Gen 2, as one prime, three big and four little.
  AddCores(phone, 4, 2000, kLittle);
  AddCores(phone, 3, 2800, kBig);
  AddCores(phone, 1, 3200, kBig);
  EXPECT_EQ(DefaultThreadCount(phone), 4u);

  CpuTopology board;  // RK3588: the little cores run at three quarters of the big ones' clock.
  AddCores(board, 4, 1800, kLittle);
  AddCores(board, 4, 2400, kBig);
  EXPECT_EQ(DefaultThreadCount(board), 4u);
}

TEST(DefaultThreadCountTest, SlowCoresOfAnUnknownKindAreLeftOutByTheirClock) {
  CpuTopology topology;
  AddCores(topology, 2, 3000, kBig);
  AddCores(topology, 4, 1700, kBig);
  EXPECT_EQ(DefaultThreadCount(topology), 2u);
}

TEST(DefaultThreadCountTest, AFasterClockDoesNotMakeALittleCoreFast) {
  CpuTopology topology;
  AddCores(topology, 6, 2200, kLittle);
  AddCores(topology, 2, 2000, kBig);
  EXPECT_EQ(DefaultThreadCount(topology), 2u);
}

TEST(DefaultThreadCountTest, SeventyPercentOfTheClockIsTheBound) {
  CpuTopology topology;
  AddCores(topology, 1, 3000, kBig);
  AddCores(topology, 1, 2100, kBig);
  EXPECT_EQ(DefaultThreadCount(topology), 2u);
  AddCores(topology, 1, 2099, kBig);
  EXPECT_EQ(DefaultThreadCount(topology), 2u);
}

TEST(DefaultThreadCountTest, TwoThreadsOfOneCoreCountOnce) {
  CpuTopology topology;
  AddCores(topology, 6, 3600, kBig, 2);
  EXPECT_EQ(DefaultThreadCount(topology), 6u);
}

TEST(DefaultThreadCountTest, UnknownClocksAreTakenAsEqual) {
  CpuTopology topology;
  AddCores(topology, 2, 0, kBig);
  EXPECT_EQ(DefaultThreadCount(topology), 2u);
  AddCores(topology, 4, 0, kLittle);
  EXPECT_EQ(DefaultThreadCount(topology), 2u);
}

TEST(DefaultThreadCountTest, NothingKnownMeansOneThread) {
  EXPECT_EQ(DefaultThreadCount(CpuTopology{}), 1u);
}

TEST(DefaultThreadCountTest, TheProcessorOfThisMachineGivesAtLeastOne) {
  const CpuTopology topology = platform::ReadCpuTopology();
  ASSERT_FALSE(topology.processors.empty());
  const size_t count = DefaultThreadCount(topology);
  EXPECT_GE(count, 1u);
  EXPECT_LE(count, topology.processors.size());
}

}  // namespace
}  // namespace cria
