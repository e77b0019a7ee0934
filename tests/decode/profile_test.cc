#include "decode/profile.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <thread>

namespace cria {
namespace {

TEST(ProfileTest, TimeBelongsToTheKindThatIsCountedNext) {
  using std::chrono::milliseconds;
  Profile profile;
  profile.Resume();
  std::this_thread::sleep_for(milliseconds(2));
  profile.Count(OperatorKind::kNorm);
  std::this_thread::sleep_for(milliseconds(4));
  profile.Resume();
  std::this_thread::sleep_for(milliseconds(1));
  profile.Count(OperatorKind::kAttention);
  profile.Count(OperatorKind::kNorm);
  EXPECT_GE(profile.time(OperatorKind::kNorm), milliseconds(2));
  EXPECT_GE(profile.time(OperatorKind::kAttention), milliseconds(1));
  EXPECT_EQ(profile.time(OperatorKind::kRope).count(), 0);
  EXPECT_EQ(profile.total(),
            profile.time(OperatorKind::kNorm) + profile.time(OperatorKind::kAttention));
}

TEST(ProfileTest, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kNumOperatorKinds; ++i) {
    names.insert(OperatorKindName(static_cast<OperatorKind>(i)));
  }
  EXPECT_EQ(names.size(), kNumOperatorKinds);
  EXPECT_EQ(OperatorKindName(OperatorKind::kSampling), "sampling");
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace cria
