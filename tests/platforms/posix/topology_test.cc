#include <gtest/gtest.h>
#include <sched.h>

#include "core/platform.h"

namespace cria::platform {
namespace {

TEST(CpuTopologyTest, ListsTheProcessorsThatThisProcessMayUse) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const CpuTopology topology = ReadCpuTopology();
  ASSERT_FALSE(topology.processors.empty());
  EXPECT_LE(topology.processors.size(), static_cast<size_t>(CPU_COUNT(&allowed)));
}

TEST(CpuTopologyTest, AProcessBoundToOneProcessorHasOne) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const CpuTopology topology = ReadCpuTopology();
  ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(topology.processors.size(), 1u);
}

TEST(CpuTopologyTest, SaysTheSameTwice) {
  const CpuTopology first = ReadCpuTopology();
  const CpuTopology second = ReadCpuTopology();
  EXPECT_EQ(first.name, second.name);
  EXPECT_EQ(first.processors.size(), second.processors.size());
}

TEST(InstructionSetsTest, NamesThoseThatTheCompilerTookForGranted) {
  const std::string sets = " " + InstructionSets() + " ";
#if defined(__aarch64__)
  EXPECT_NE(sets.find(" neon "), std::string::npos) << sets;
#endif
#if defined(__AVX2__)
  EXPECT_NE(sets.find(" avx2 "), std::string::npos) << sets;
#endif
  EXPECT_EQ(sets.find("  ", 1), std::string::npos) << sets;
}

}  // namespace
}  // namespace cria::platform
