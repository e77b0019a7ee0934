#include "ops/simd_target_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/platform.h"
#include "ops/simd_targets.h"
// After the list of targets that it reads.
#include "hwy/targets.h"

namespace cria::ops {
namespace {

// The targets are those that ops/simd_targets.h leaves.
TEST(SimdTargetName, IsOneThatTheOperatorsAreCompiledFor) {
#if defined(__x86_64__)
  EXPECT_THAT(SimdTargetName(), testing::AnyOf("SSE2", "AVX2", "AVX3_DL"));
#elif defined(__aarch64__)
  EXPECT_THAT(SimdTargetName(), testing::StartsWith("NEON"));
#else
  EXPECT_THAT(SimdTargetName(), testing::Not(testing::IsEmpty()));
#endif
}

// So that no operator is tested on another target than every_target_main.cc says.
TEST(SimdTargetName, IsTheOneThatTheTestsHaveChosen) {
  const auto targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(SimdTargetName(),
            UsesArmDotProducts() ? "NEON_DOTPROD" : hwy::TargetName(targets.front()));
}

TEST(SimdTargetName, NamesDotProductsOnlyWhereTheyAreAllowed) {
  const bool was_allowed = UsesArmDotProducts();
  AllowArmDotProducts(false);
  EXPECT_FALSE(UsesArmDotProducts());
  EXPECT_NE(SimdTargetName(), "NEON_DOTPROD");
  AllowArmDotProducts(true);
  EXPECT_EQ(UsesArmDotProducts(), platform::HasArmDotProducts());
  AllowArmDotProducts(was_allowed);
}

}  // namespace
}  // namespace cria::ops
