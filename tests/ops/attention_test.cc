#include "ops/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/attention_fixture.h"
#include "ops/simd_target_name.h"
#include "support/emulation.h"

namespace cria::ops {
namespace {

// The exponential of the last one, less any score, is more than a float can be.
constexpr std::array<float, 4> kSinks = {-3.0f, 0.5f, 6.0f, 1e4f};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const std::vector<std::pair<size_t, size_t>> head_counts = {{4, 4}, {8, 2},  {6, 2},
                                                              {5, 1}, {14, 2}, {1, 1}};
  for (const KvType type : kKvTypes) {
    for (const size_t num_rows : {1, 40}) {
      cases.push_back({.shape = {.num_attention_heads = 4,
                                 .num_key_value_heads = 2,
                                 .head_dim = 16,
                                 .score_factor = 1.5f},
                       .type = type,
                       .first_position = 30,
                       .num_rows = num_rows});
    }
    // Caps that change scores much, with windows that end within blocks, in spans and in tiles.
    for (const size_t num_rows : {1, 3, 40}) {
      for (const size_t window_tokens : {0, 37}) {
        cases.push_back({.shape = {.num_attention_heads = 4,
                                   .num_key_value_heads = 2,
                                   .head_dim = 20,
                                   .window_tokens = window_tokens,
                                   .score_factor = 1.5f,
                                   .score_cap = 0.75f},
                         .type = type,
                         .first_position = 290,
                         .num_rows = num_rows});
      }
    }
    // Sinks that take more or less than all positions, in spans and in tiles, with windows.
    for (const size_t num_rows : {1, 3, 40}) {
      for (const size_t window_tokens : {0, 37}) {
        cases.push_back({.shape = {.num_attention_heads = 4,
                                   .num_key_value_heads = 2,
                                   .head_dim = 20,
                                   .window_tokens = window_tokens,
                                   .sinks = kSinks.data()},
                         .type = type,
                         .first_position = 290,
                         .num_rows = num_rows});
      }
    }
    // Every grouping, with few and many rows.
    for (const auto& [heads, kv_heads] : head_counts) {
      for (const size_t num_rows : {1, 2, 3, 17, 40}) {
        cases.push_back({{heads, kv_heads, 16}, type, 70, num_rows});
      }
    }
    // Groups for which queries are divided into tiles of every size.
    for (const size_t group : {2, 3, 6, 8, 9, 12, 13, 16}) {
      cases.push_back({{group, 1, 36}, type, 65, 1});
    }
    // Every head dimension.
    for (const size_t head_dim : {2, 6, 8, 10, 48, 64, 72, 80, 96, 128, 130, 256}) {
      for (const size_t num_rows : {1, 2, 20}) {
        cases.push_back({{8, 2, head_dim}, type, 61, num_rows});
      }
    }
    // Around the ends of blocks (64) and spans (256), and with many spans.
    for (const size_t first : {0, 1, 3, 62, 63, 64, 127, 254, 255, 256, 511, 1000}) {
      for (const size_t num_rows : {1, 2, 9, 70})
        cases.push_back({{4, 2, 8}, type, first, num_rows});
    }
    cases.push_back({{2, 1, 4}, type, 8500, 1});
    cases.push_back({{2, 1, 4}, type, 8500, 3});
    cases.push_back({{2, 1, 4}, type, 8500, 16});
    // More heads on one key than a tile has lanes.
    cases.push_back({{71, 1, 8}, type, 33, 1});
    cases.push_back({{71, 1, 8}, type, 33, 3});
    // Windows that the context fills within a chunk, with its first row, and long before.
    for (const size_t window : {1, 3, 64, 100}) {
      for (const size_t first : {63, 700}) {
        for (const size_t num_rows : {1, 7, 130})
          cases.push_back({{4, 2, 8, window}, type, first, num_rows});
      }
    }
    // Windows that begin at every kind of place on a page, and a page of a single position.
    for (const size_t first : {64, 65, 127, 128, 190}) {
      for (const size_t num_rows : {1, 15, 64}) {
        cases.push_back({{4, 2, 8, 64}, type, first, num_rows});
        cases.push_back({{1, 1, 8, 20}, type, first, num_rows});
      }
    }
    // Windows that the context never fills.
    cases.push_back({{4, 2, 8, 201}, type, 70, 130});
    cases.push_back({{4, 2, 8, SIZE_MAX}, type, 70, 1});
    cases.push_back({{4, 2, 8, SIZE_MAX}, type, 70, 130});
    // Windows of several spans, with the most rows of spans, the most rows of a tile, and the
    // least.
    cases.push_back({{2, 2, 6, 300}, type, 1000, 15});
    cases.push_back({{2, 2, 6, 300}, type, 1000, 64});
    cases.push_back({{71, 1, 8, 5}, type, 33, 3});
    cases.push_back({{2, 1, 4, 8300}, type, 8500, 3});
  }
  return cases;
}

// On x86-64, and on Arm with dot products, the weights of int8 values are integers
// (ops/value_digits-inl.h). The largest errors of these cases are below 4e-4 on Arm, 3e-4 with
// pairs of 16 bits and 1.2e-4 with AVX-512 VNNI, where values deviate by 1; without the lower
// digits, they would be above 1e-2.
double Tolerance(KvType type) {
#if defined(__x86_64__)
  const bool has_integer_weights = true;
#else
  const bool has_integer_weights = SimdTargetName() == "NEON_DOTPROD";
#endif
  return type == KvType::kInt8 && has_integer_weights ? 4e-4 : 1e-5;
}

class AttentionTest : public testing::TestWithParam<Case> {};

TEST_P(AttentionTest, MatchesReference) {
  const Case& c = GetParam();
  const TestKvCache cache = FilledCache(c, c.num_tokens() + 3);
  const std::vector<double> expected = Expected(c, cache, c.type == KvType::kInt8);
  EXPECT_LT(MaxDifference(RunAll(c, cache), expected), Tolerance(c.type));
}

TEST_P(AttentionTest, MatchesReferenceWhereTheCacheEnds) {
  const Case& c = GetParam();
  const TestKvCache cache = FilledCache(c, c.num_tokens());
  const std::vector<double> expected = Expected(c, cache, c.type == KvType::kInt8);
  EXPECT_LT(MaxDifference(RunAll(c, cache), expected), Tolerance(c.type));
}

TEST_P(AttentionTest, IsBitwiseTheSameForEveryOrderOfPages) {
  const Case& c = GetParam();
  const TestKvCache in_order = FilledCache(c, c.num_tokens(), PageOrder::kInOrder);
  const TestKvCache shuffled = FilledCache(c, c.num_tokens(), PageOrder::kShuffled);
  const std::vector<float> expected = RunAll(c, in_order);
  const std::vector<float> actual = RunAll(c, shuffled);
  EXPECT_TRUE(AreSame(expected, actual));
}

TEST_P(AttentionTest, IsBitwiseTheSameForEveryNumberOfThreads) {
  const Case& c = GetParam();
  const TestKvCache cache = FilledCache(c, c.num_tokens() + 1);
  const std::vector<float> one = RunAll(c, cache, 1);
  for (const size_t num_threads : {2, 3, 4}) {
    // Emulated, threads that wait take the others' time.
    if (support::IsEmulated() && num_threads > 2) continue;
    EXPECT_TRUE(AreSame(one, RunAll(c, cache, num_threads))) << num_threads << " threads";
  }
}

// Rows are computed by tiles or by spans of positions, which depends on how many there are.
TEST_P(AttentionTest, IsBitwiseTheSameForEveryDivisionOfRows) {
  const Case& c = GetParam();
  const TestKvCache cache = FilledCache(c, c.num_tokens() + 1);
  const std::vector<float> together = RunAll(c, cache);
  for (const size_t part_rows : {1, 2, 5, 19}) {
    if (support::IsEmulated() && (part_rows == 2 || part_rows == 5)) continue;
    EXPECT_TRUE(AreSame(together, RunParts(c, cache, part_rows))) << part_rows << " rows at once";
    if (part_rows >= c.num_rows) break;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTest, testing::ValuesIn(Cases()));

}  // namespace
}  // namespace cria::ops
