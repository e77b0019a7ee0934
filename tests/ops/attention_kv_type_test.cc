// What attention gives for keys and values that are chosen, for each type of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "ops/attention.h"
#include "ops/attention_fixture.h"

namespace cria::ops {
namespace {

class AttentionOfTypeTest : public testing::TestWithParam<KvType> {
 protected:
  static constexpr AttentionShape kShape = {
      .num_attention_heads = 4, .num_key_value_heads = 2, .head_dim = 20};

  // A cache of `num_tokens` whose rows the callbacks fill: (token, head, dimension) -> float.
  template <typename Key, typename Value>
  static TestKvCache Cache(size_t num_tokens, const Key& key, const Value& value) {
    TestKvCache cache(GetParam(), 2, 20, num_tokens + 1);
    for (size_t t = 0; t < num_tokens; ++t) {
      std::vector<float> keys, values;
      for (size_t i = 0; i < 40; ++i) {
        keys.push_back(key(t, i / 20, i % 20));
        values.push_back(value(t, i / 20, i % 20));
      }
      cache.Store(t, keys.data(), values.data());
    }
    return cache;
  }
};

// One decode step, a few rows, and a chunk of many.
constexpr size_t kRowCounts[] = {1, 2, 30};

TEST_P(AttentionOfTypeTest, AQueryThatMatchesOneKeyGetsItsValue) {
  // Token 5 of 320 has the only key that is not zero, and the queries point where it does.
  const TestKvCache cache = Cache(
      320, [](size_t t, size_t, size_t) { return t == 5 ? 1.0f : 0.0f; },
      [](size_t t, size_t head, size_t j) {
        return static_cast<float>(t) + 100.0f * static_cast<float>(head) + static_cast<float>(j);
      });
  for (const size_t num_rows : kRowCounts) {
    const Case c = {kShape, GetParam(), 320 - num_rows, num_rows};
    const std::vector<float> queries(num_rows * 80, 30.0f);
    const std::vector<float> output = RunRows(c, cache, queries, 0, num_rows, 2);
    for (size_t i = 0; i < output.size(); ++i) {
      EXPECT_FLOAT_EQ(output[i], cache.Value(i % 80 / 40, 5, i % 20)) << num_rows << ' ' << i;
    }
  }
}

TEST_P(AttentionOfTypeTest, EqualKeysGiveTheMeanOfTheValues) {
  const TestKvCache cache = Cache(
      300, [](size_t, size_t, size_t j) { return static_cast<float>(j); },
      [](size_t t, size_t, size_t) { return static_cast<float>(t); });
  // The weights of int8 values may be integers: see ops/value_digits-inl.h.
  const double tolerance = GetParam() == KvType::kInt8 ? 1e-3 : 1e-4;
  for (const size_t num_rows : kRowCounts) {
    const Case c = {kShape, GetParam(), 300 - num_rows, num_rows};
    const std::vector<float> output = RunAll(c, cache);
    for (size_t i = 0; i < output.size(); ++i) {
      // The mean of 0, 1, ..., position.
      const size_t position = c.first_position + i / 80;
      const float expected = static_cast<float>(position) / 2;
      EXPECT_NEAR(output[i], expected, tolerance) << num_rows << ' ' << i;
    }
  }
}

TEST_P(AttentionOfTypeTest, TheFirstRowGetsItsOwnValue) {
  for (const size_t num_rows : kRowCounts) {
    const Case c = {kShape, GetParam(), 0, num_rows};
    const TestKvCache cache = FilledCache(c, num_rows);
    const std::vector<float> output = RunAll(c, cache);
    for (size_t i = 0; i < 80; ++i) EXPECT_FLOAT_EQ(output[i], cache.Value(i / 40, 0, i % 20));
  }
}

TEST_P(AttentionOfTypeTest, HugeScoresDoNotOverflow) {
  for (const float deviation : {1e4f, 1e15f, 1e30f}) {
    for (const size_t num_rows : kRowCounts) {
      const Case c = {kShape, GetParam(), 290, num_rows, deviation};
      const TestKvCache cache = FilledCache(c, c.num_tokens());
      const std::vector<double> expected = Expected(c, cache, GetParam() == KvType::kInt8);
      EXPECT_LT(MaxDifference(RunAll(c, cache), expected), 1e-2) << deviation;
    }
  }
}

// Memory of three parts, each of whole pages, of which only the middle one can be touched.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t part_bytes)
      : bytes_(3 * part_bytes),
        data_(static_cast<std::byte*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_EQ(mprotect(data_, part_bytes, PROT_NONE), 0);
    EXPECT_EQ(mprotect(data_ + 2 * part_bytes, part_bytes, PROT_NONE), 0);
  }
  ~GuardedMemory() { munmap(data_, bytes_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  void* data() const { return data_; }

 private:
  size_t bytes_;
  std::byte* data_;
};

// A score that is masked would hide what was read for it; a page that cannot be read does not.
TEST_P(AttentionOfTypeTest, NothingOutsideTheWindowsIsRead) {
  const auto part_tokens = static_cast<size_t>(sysconf(_SC_PAGESIZE)) / sizeof(float);
  constexpr size_t kHeadDim = 16;
  const size_t part_bytes = part_tokens * kHeadDim * KvElementBytes(GetParam());
  const GuardedMemory keys(part_bytes), values(part_bytes);
  const GuardedMemory key_scales(part_tokens * sizeof(float));
  const GuardedMemory value_scales(part_tokens * sizeof(float));
  std::vector<uint32_t> pages(3 * part_tokens / kKvPageTokens);
  std::ranges::iota(pages, uint32_t{0});
  const KvCacheView cache = {.type = GetParam(),
                             .num_key_value_heads = 1,
                             .head_dim = kHeadDim,
                             .num_pages = pages.size(),
                             .keys = keys.data(),
                             .values = values.data(),
                             .key_scales = static_cast<float*>(key_scales.data()),
                             .value_scales = static_cast<float*>(value_scales.data())};
  const KvPageTable table = {pages};
  for (size_t t = part_tokens; t < 2 * part_tokens; ++t) {
    const auto seed = static_cast<unsigned>(t);
    const std::vector<float> row = RandomFloats(kHeadDim, seed);
    StoreKeyValue(cache, table.Row(t), t, row.data(), row.data());
  }
  for (const size_t num_rows : {1, 3, 30, 100}) {
    // The first row's window begins where the middle part begins, and the last row is its last
    // position.
    const size_t window = part_tokens - num_rows + 1;
    const Case c = {{4, 1, kHeadDim, window}, GetParam(), 2 * part_tokens - num_rows, num_rows};
    for (const float output : RunRows(c, cache, table, Queries(c), 0, num_rows, 2)) {
      ASSERT_TRUE(std::isfinite(output)) << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionOfTypeTest, testing::ValuesIn(kKvTypes),
                         [](const auto& tested) { return std::string(KvTypeName(tested.param)); });

// The first position gets its own value, so the result shows every half as a float.
TEST(AttentionF16Test, EveryFiniteHalfIsExact) {
  constexpr size_t kHalves = 2 * 0x7c00;
  constexpr size_t kHeads = kHalves / kMaxHeadDim;
  static_assert(kHeads * kMaxHeadDim == kHalves);
  std::vector<float> halves;
  for (uint16_t i = 0; i < 0x7c00; ++i) {
    halves.push_back(F16ToFloat(i));
    halves.push_back(-halves.back());
  }
  const std::vector<float> zeros(kHalves, 0.0f);
  for (const size_t num_rows : kRowCounts) {
    const Case c = {{kHeads, kHeads, kMaxHeadDim}, KvType::kF16, 0, num_rows};
    TestKvCache cache(c.type, kHeads, kMaxHeadDim, num_rows);
    for (size_t t = 0; t < num_rows; ++t) {
      cache.Store(t, halves.data(), t == 0 ? halves.data() : zeros.data());
    }
    const std::vector<float> queries(num_rows * kHalves, 0.0f);
    const std::vector<float> output = RunRows(c, cache, queries, 0, num_rows, 1);
    for (size_t i = 0; i < kHalves; ++i) ASSERT_EQ(output[i], halves[i]) << num_rows << ' ' << i;
  }
}

TEST(AttentionF16Test, InfiniteKeysAndValuesGiveFiniteResults) {
  for (const size_t num_rows : kRowCounts) {
    const Case c = {{4, 2, 20}, KvType::kF16, 70, num_rows};
    const TestKvCache cache = FilledCache(c, c.num_tokens());
    const std::vector<float> infinite(40, INFINITY);
    cache.Store(3, infinite.data(), infinite.data());
    for (const float output : RunAll(c, cache)) EXPECT_LE(std::abs(output), 65504.0f);
  }
}

// What rounding the queries to int8 costs, beside the cost of the int8 cache itself.
TEST(AttentionInt8Test, RoundedQueriesStayCloseToTheDequantizedCache) {
  for (const size_t num_rows : kRowCounts) {
    const Case c = {{8, 2, 64}, KvType::kInt8, 1000, num_rows, 2.0f};
    const TestKvCache cache = FilledCache(c, c.num_tokens());
    const std::vector<double> exact = Expected(c, cache, false);
    const double largest = std::abs(*std::max_element(
        exact.begin(), exact.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
    EXPECT_LT(MaxDifference(RunAll(c, cache), exact), 1.2e-2 * largest);
  }
}

TEST(AttentionScratchTest, GrowsWithNothingButItsArguments) {
  const AttentionShape shape = {
      .num_attention_heads = 32, .num_key_value_heads = 8, .head_dim = 64};
  const size_t decode = AttentionScratchBytes(shape, {1, 1, 4096}, 1);
  EXPECT_LE(decode, AttentionScratchBytes(shape, {128, 1, 4096}, 1));
  EXPECT_LE(decode, AttentionScratchBytes(shape, {1, 1, 8192}, 1));
  EXPECT_LT(decode, AttentionScratchBytes(shape, {1, 1, 4096}, 4));
  // A span of 256 positions takes one partial result for each head.
  EXPECT_EQ(AttentionScratchBytes(shape, {1, 1, 131072}, 2) -
                AttentionScratchBytes(shape, {1, 1, 131072 - 256}, 2),
            32 * (64 + 16) * sizeof(float));
}

TEST(AttentionScratchTest, NoRowsDoNothing) {
  const Case c = {{2, 1, 8}, KvType::kF32, 3, 1};
  const TestKvCache cache = FilledCache(c, 4);
  const Result<ThreadPool> pool = ThreadPool::Create(1);
  std::vector<float> output(c.row_floats(), kUntouched);
  const std::vector<float> queries = Queries(c);
  const AttentionRows none = {.table = cache.table(),
                              .first_position = 3,
                              .queries = queries.data(),
                              .query_stride = c.row_floats(),
                              .output = output.data(),
                              .output_stride = c.row_floats()};
  const Scratch scratch(AttentionScratchBytes(c.shape, {1, 2, 4}, 1));
  Attention(c.shape, cache.view(), std::span(&none, 1), {}, *pool);
  Attention(c.shape, cache.view(), {}, {}, *pool);
  EXPECT_THAT(output, testing::Each(kUntouched));
  // Beside a run that has a row, they change nothing of it.
  AttentionRows one = none;
  one.num_rows = 1;
  const AttentionRows runs[] = {none, one};
  Attention(c.shape, cache.view(), runs, scratch.bytes(), *pool);
  EXPECT_EQ(output, RunAll(c, cache));
}

}  // namespace
}  // namespace cria::ops
