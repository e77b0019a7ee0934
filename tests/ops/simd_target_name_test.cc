#include "ops/simd_target_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cria::ops {
namespace {

// Those that ops/simd_targets.h leaves.
TEST(SimdTargetName, IsOneThatTheOperatorsAreCompiledFor) {
#if defined(__x86_64__)
  EXPECT_THAT(SimdTargetName(), testing::AnyOf("SSE2", "AVX2", "AVX3_DL"));
#elif defined(__aarch64__)
  EXPECT_THAT(SimdTargetName(), testing::StartsWith("NEON"));
#else
  EXPECT_THAT(SimdTargetName(), testing::Not(testing::IsEmpty()));
#endif
}

}  // namespace
}  // namespace cria::ops
