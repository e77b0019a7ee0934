#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/platform.h"

namespace cria::platform {
namespace {

TEST(MemoryLimitsTest, AddressSpaceIsWhatTheProcessMayMap) {
  rlimit original = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &original), 0);
  // Far above what the process has, also under AddressSanitizer.
  constexpr uint64_t kBytes = uint64_t{1} << 50;
  rlimit lowered = original;
  lowered.rlim_cur = static_cast<rlim_t>(kBytes);
  if (setrlimit(RLIMIT_AS, &lowered) != 0) GTEST_SKIP() << "a lower limit is set already";
  const MemoryLimits limits = ReadMemoryLimits();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &original), 0);
  EXPECT_EQ(limits.address_space_bytes, kBytes);
}

TEST(MemoryLimitsTest, UnlimitedAddressSpaceIsAbsent) {
  rlimit original = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &original), 0);
  if (original.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "the tests run with RLIMIT_AS";
  EXPECT_EQ(ReadMemoryLimits().address_space_bytes, std::nullopt);
}

TEST(MemoryLimitsTest, TheProcessFitsItsGroup) {
  const auto limit = ReadMemoryLimits().cgroup_bytes;
  if (!limit) GTEST_SKIP() << "the tests run in no control group with a limit";
  // Resident pages of files may be charged to others, private ones may not.
  EXPECT_GE(*limit, ReadMemoryUsage().private_bytes);
}

}  // namespace
}  // namespace cria::platform
