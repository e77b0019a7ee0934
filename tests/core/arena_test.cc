#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

namespace cria {
namespace {

bool LivesOverlap(const ArenaLayout& layout, size_t a, size_t b) {
  const Lifetime first = layout.lifetime(a);
  const Lifetime second = layout.lifetime(b);
  return std::max(first.first_step, second.first_step) <=
         std::min(first.last_step, second.last_step);
}

bool BytesOverlap(const ArenaLayout& layout, size_t a, size_t b) {
  return std::max(layout.offset(a), layout.offset(b)) <
         std::min(layout.offset(a) + layout.bytes(a), layout.offset(b) + layout.bytes(b));
}

// The maximum number of bytes that are in use at one step: no layout can take less.
size_t MaxAliveBytes(const ArenaLayout& layout) {
  size_t max = 0;
  for (size_t at = 0; at < layout.num_regions(); ++at) {
    // The sum only grows where a lifetime begins.
    const int step = layout.lifetime(at).first_step;
    size_t alive = 0;
    for (size_t i = 0; i < layout.num_regions(); ++i) {
      const Lifetime life = layout.lifetime(i);
      if (life.first_step <= step && step <= life.last_step) alive += layout.bytes(i);
    }
    max = std::max(max, alive);
  }
  return max;
}

void ExpectSound(const ArenaLayout& layout) {
  size_t sum = 0;
  for (size_t i = 0; i < layout.num_regions(); ++i) {
    sum += layout.bytes(i);
    EXPECT_EQ(layout.offset(i) % kArenaAlignment, 0u) << i;
    EXPECT_LE(layout.offset(i) + layout.bytes(i), layout.total_bytes()) << i;
    for (size_t j = 0; j < i; ++j) {
      if (LivesOverlap(layout, i, j)) {
        EXPECT_FALSE(BytesOverlap(layout, i, j)) << j << " and " << i;
      }
    }
  }
  EXPECT_LE(layout.total_bytes(), sum);
  EXPECT_GE(layout.total_bytes(), MaxAliveBytes(layout));
}

TEST(ArenaLayoutTest, RegionsThatNeverMeetShareBytes) {
  ArenaLayout layout;
  const auto kept = layout.Add("kept", 256, kWholeLife);
  const auto first = layout.Add("first", 1024, {0, 1});
  const auto second = layout.Add("second", 512, {2, 3});
  layout.Solve();
  ExpectSound(layout);
  EXPECT_EQ(layout.total_bytes(), 256u + 1024u);
  EXPECT_TRUE(BytesOverlap(layout, first, second));
  EXPECT_EQ(layout.name(kept), "kept");
  EXPECT_EQ(layout.num_regions(), 3u);
}

TEST(ArenaLayoutTest, TheLastStepIsPartOfALife) {
  ArenaLayout layout;
  layout.Add("written at 2", 64, {0, 2});
  layout.Add("read at 2", 64, {2, 4});
  layout.Solve();
  ExpectSound(layout);
  EXPECT_EQ(layout.total_bytes(), 128u);
}

TEST(ArenaLayoutTest, AGapBetweenRegionsIsFilled) {
  ArenaLayout layout;
  // The third largest fits below the second, which lies on top of the first only at step 0.
  layout.Add("low until 0", 640, {0, 0});
  layout.Add("over it, all steps", 320, {0, 9});
  const auto late = layout.Add("in the gap", 256, {1, 9});
  layout.Solve();
  ExpectSound(layout);
  EXPECT_EQ(layout.offset(late), 0u);
  EXPECT_EQ(layout.total_bytes(), 960u);
}

TEST(ArenaLayoutTest, SizesAreRoundedUpAndNothingTakesNothing) {
  ArenaLayout layout;
  const auto empty = layout.Add("empty", 0, kWholeLife);
  const auto one = layout.Add("one byte", 1, kWholeLife);
  const auto full = layout.Add("one line", kArenaAlignment, kWholeLife);
  const auto more = layout.Add("one line and a byte", kArenaAlignment + 1, kWholeLife);
  layout.Solve();
  ExpectSound(layout);
  EXPECT_EQ(layout.bytes(empty), 0u);
  EXPECT_EQ(layout.bytes(one), kArenaAlignment);
  EXPECT_EQ(layout.bytes(full), kArenaAlignment);
  EXPECT_EQ(layout.bytes(more), 2 * kArenaAlignment);
  EXPECT_EQ(layout.total_bytes(), 4 * kArenaAlignment);
}

TEST(ArenaLayoutTest, RandomLayoutsAreSound) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ArenaLayout layout;
    const size_t num_regions = random() % 24;
    for (size_t i = 0; i < num_regions; ++i) {
      const int first = static_cast<int>(random() % 8);
      const int last = first + static_cast<int>(random() % 5);
      const bool whole = random() % 6 == 0;
      layout.Add(std::to_string(i), random() % 3000, whole ? kWholeLife : Lifetime{first, last});
    }
    layout.Solve();
    ExpectSound(layout);
    if (HasFailure()) return;
  }
}

TEST(ArenaTest, EveryRegionCanBeWrittenAndKeepsWhatItHolds) {
  std::mt19937 random(7);
  ArenaLayout layout;
  for (int i = 0; i < 12; ++i) {
    layout.Add(std::to_string(i), random() % 5000, {i / 3, i / 3 + static_cast<int>(random() % 4)});
  }
  layout.Solve();
  auto arena = Arena::Create(layout);
  ASSERT_TRUE(arena) << arena.error().message();
  // Every region is filled when its life begins and must still hold that when its life ends.
  for (int step = 0; step < 8; ++step) {
    for (size_t i = 0; i < layout.num_regions(); ++i) {
      const std::span<std::byte> region = arena->Region(layout, i);
      EXPECT_EQ(region.size(), layout.bytes(i));
      if (layout.lifetime(i).first_step == step) {
        std::ranges::fill(region, static_cast<std::byte>(i + 1));
      }
    }
    for (size_t i = 0; i < layout.num_regions(); ++i) {
      if (layout.lifetime(i).last_step != step) continue;
      for (const std::byte value : arena->Region(layout, i)) {
        ASSERT_EQ(value, static_cast<std::byte>(i + 1)) << "region " << i;
      }
    }
  }
}

TEST(ArenaTest, MemoryIsZeroedAlignedAndTyped) {
  ArenaLayout layout;
  layout.Add("before", 100, kWholeLife);
  const auto floats = layout.Add("floats", 1000 * sizeof(float), kWholeLife);
  layout.Solve();
  auto arena = Arena::Create(layout);
  ASSERT_TRUE(arena);
  float* const pointer = arena->Pointer<float>(layout, floats);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % kArenaAlignment, 0u);
  EXPECT_EQ(std::accumulate(pointer, pointer + 1000, 0.0f), 0.0f);
  EXPECT_EQ(static_cast<void*>(pointer), arena->Region(layout, floats).data());
}

TEST(ArenaTest, StaysWhereItIsWhenMoved) {
  ArenaLayout layout;
  const auto region = layout.Add("region", 64, kWholeLife);
  layout.Solve();
  auto arena = Arena::Create(layout);
  ASSERT_TRUE(arena);
  std::byte* const before = arena->Region(layout, region).data();
  const Arena moved = std::move(*arena);
  EXPECT_EQ(moved.Region(layout, region).data(), before);
}

TEST(ArenaTest, ALimitIsKeptToTheByte) {
  ArenaLayout layout;
  layout.Add("region", 4096, kWholeLife);
  layout.Solve();
  EXPECT_TRUE(Arena::Create(layout, 4096));
  const auto refused = Arena::Create(layout, 4095);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(refused.error().message().find("4096"), std::string::npos);
  EXPECT_NE(refused.error().message().find("4095"), std::string::npos);
}

TEST(ArenaTest, AnEmptyLayoutTakesNothing) {
  ArenaLayout layout;
  layout.Solve();
  EXPECT_EQ(layout.total_bytes(), 0u);
  EXPECT_TRUE(Arena::Create(layout, 0));
}

TEST(ArenaTest, MoreThanTheAddressSpaceIsAnError) {
  ArenaLayout layout;
  layout.Add("too much", SIZE_MAX / 4 * 3, kWholeLife);
  layout.Solve();
  const auto refused = Arena::Create(layout);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace cria
