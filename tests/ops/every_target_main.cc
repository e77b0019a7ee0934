// The main function of the operators' tests. It repeats all tests, once for each instruction set
// that the operators are compiled for and that this processor has, so that no test needs to know
// of instruction sets.

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "ops/simd_targets.h"
// After the list of targets that it reads.
#include "hwy/targets.h"

namespace cria::ops {
namespace {

// Each repetition sets up its environments anew: the operators use one target from SetUp to
// TearDown.
class EachTarget : public testing::Environment {
 public:
  explicit EachTarget(std::vector<int64_t> targets) : targets_(std::move(targets)) {}

  void SetUp() override {
    const int64_t target = targets_[next_++ % targets_.size()];
    hwy::SetSupportedTargetsForTest(target);
    std::printf("The operators run on %s.\n", hwy::TargetName(target));
    trace_.emplace(__FILE__, __LINE__, hwy::TargetName(target));
  }

  void TearDown() override {
    trace_.reset();
    hwy::SetSupportedTargetsForTest(0);
  }

 private:
  std::vector<int64_t> targets_;
  size_t next_ = 0;
  std::optional<testing::ScopedTrace> trace_;  // Names the target in every failure.
};

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  GTEST_FLAG_SET(repeat, GTEST_FLAG_GET(repeat) * static_cast<int>(targets.size()));
  GTEST_FLAG_SET(recreate_environments_when_repeating, true);
  testing::AddGlobalTestEnvironment(new EachTarget(targets));  // GoogleTest deletes it.
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cria::ops

int main(int argc, char** argv) { return cria::ops::Main(argc, argv); }
