// The main function of the operators' tests. It repeats all tests, once for each instruction set
// that the operators are compiled for and that this processor has, so that no test needs to know
// of instruction sets. An emulated core runs the best of its own alone, because other cores run the
// others (tests/emulation/emulation.cmake).

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/simd_target_name.h"
#include "ops/simd_targets.h"
#include "support/emulation.h"
// After the list of targets that it reads.
#include "hwy/targets.h"

namespace cria::ops {
namespace {

struct Target {
  int64_t highway = 0;
  bool has_arm_dot_products = false;
};

std::vector<Target> Targets() {
  std::vector<Target> targets;
  if (UsesArmDotProducts()) targets.push_back({hwy::SupportedTargets(), true});
  for (const int64_t highway : hwy::SupportedAndGeneratedTargets()) targets.push_back({highway});
  if (support::IsEmulated()) targets.resize(1);
  return targets;
}

// Each repetition sets up its environments anew: the operators use one target from SetUp to
// TearDown.
class EachTarget : public testing::Environment {
 public:
  explicit EachTarget(std::vector<Target> targets) : targets_(std::move(targets)) {}

  void SetUp() override {
    const Target& target = targets_[next_++ % targets_.size()];
    hwy::SetSupportedTargetsForTest(target.highway);
    AllowArmDotProducts(target.has_arm_dot_products);
    const std::string name(SimdTargetName());
    std::printf("The operators run on %s.\n", name.c_str());
    trace_.emplace(__FILE__, __LINE__, name);
  }

  void TearDown() override {
    trace_.reset();
    hwy::SetSupportedTargetsForTest(0);
    AllowArmDotProducts(true);
  }

 private:
  std::vector<Target> targets_;
  size_t next_ = 0;
  std::optional<testing::ScopedTrace> trace_;  // Names the target in every failure.
};

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::vector<Target> targets = Targets();
  GTEST_FLAG_SET(repeat, GTEST_FLAG_GET(repeat) * static_cast<int>(targets.size()));
  GTEST_FLAG_SET(recreate_environments_when_repeating, true);
  testing::AddGlobalTestEnvironment(new EachTarget(targets));  // GoogleTest deletes it.
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cria::ops

int main(int argc, char** argv) { return cria::ops::Main(argc, argv); }
