#include "ops/attention.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "ops/kv_cache.h"
#include "ops/random_floats.h"
#include "ops/reference_ops.h"
#include "support/emulation.h"

namespace cria::ops {
namespace {

// Floats of another tensor between the rows, as in a fused projection.
constexpr size_t kGap = 5;
constexpr float kUntouched = 12345.0f;

struct Case {
  AttentionShape shape;
  KvType type = KvType::kF32;
  size_t first_position = 0;
  size_t num_rows = 1;
  float query_deviation = 1.0f;

  size_t row_floats() const { return shape.num_attention_heads * shape.head_dim; }
  size_t num_tokens() const { return first_position + num_rows; }
  // The first position that a row sees.
  size_t BeginOf(size_t row) const {
    const size_t position = first_position + row;
    const size_t window = shape.window_tokens;
    return window != 0 && position >= window ? position - window + 1 : 0;
  }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.shape.num_attention_heads << '/' << c.shape.num_key_value_heads << " heads of "
             << c.shape.head_dim << ", " << KvTypeName(c.type) << ", " << c.num_rows
             << " rows from " << c.first_position << ", window of " << c.shape.window_tokens
             << ", factor " << c.shape.score_factor;
}

// Exactly the bytes asked for, on the boundary asked for.
class Scratch {
 public:
  explicit Scratch(size_t bytes)
      : bytes_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64})), bytes) {
    std::memset(bytes_.data(), 0xff, bytes);  // NaN.
  }
  ~Scratch() { ::operator delete(bytes_.data(), std::align_val_t{64}); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Random keys and values for every position that the case's rows may see; NaN, for int8 as scales,
// before and after them.
TestKvCache FilledCache(const Case& c, size_t capacity_tokens,
                        PageOrder order = PageOrder::kShuffled) {
  TestKvCache cache(c.type, c.shape.num_key_value_heads, c.shape.head_dim, capacity_tokens, order);
  const size_t floats = c.shape.num_key_value_heads * c.shape.head_dim;
  for (size_t token = c.BeginOf(0); token < c.num_tokens(); ++token) {
    const auto seed = static_cast<unsigned>(token);
    cache.Store(token, RandomFloats(floats, 2 * seed + 1).data(),
                RandomFloats(floats, 2 * seed + 2).data());
  }
  return cache;
}

std::vector<float> Queries(const Case& c) {
  return RandomFloats(c.num_rows * c.row_floats(), 77, c.query_deviation);
}

// Rows [begin, end) of the case's queries, in one call. Returns them densely.
std::vector<float> RunRows(const Case& c, const KvCacheView& cache, const KvPageTable& table,
                           const std::vector<float>& dense, size_t begin, size_t end,
                           size_t num_threads) {
  const size_t row_floats = c.row_floats();
  const size_t stride = row_floats + kGap;
  const size_t num_rows = end - begin;
  std::vector<float> queries(num_rows * stride - kGap, NAN);
  std::vector<float> output(num_rows * stride - kGap, kUntouched);
  for (size_t r = 0; r < num_rows; ++r) {
    std::copy_n(dense.begin() + static_cast<ptrdiff_t>((begin + r) * row_floats), row_floats,
                queries.begin() + static_cast<ptrdiff_t>(r * stride));
  }
  const AttentionRows rows = {.table = table,
                              .first_position = c.first_position + begin,
                              .num_rows = num_rows,
                              .queries = queries.data(),
                              .query_stride = stride,
                              .output = output.data(),
                              .output_stride = stride};
  const Scratch scratch(
      AttentionScratchBytes(c.shape, {num_rows, 1, c.first_position + end}, num_threads));
  Result<ThreadPool> pool = ThreadPool::Create(num_threads);
  Attention(c.shape, cache, std::span(&rows, 1), scratch.bytes(), *pool);

  std::vector<float> result;
  for (size_t i = 0; i < output.size(); ++i) {
    if (i % stride < row_floats) {
      result.push_back(output[i]);
    } else {
      EXPECT_EQ(output[i], kUntouched) << "between rows, at " << i;
    }
  }
  return result;
}

std::vector<float> RunRows(const Case& c, const TestKvCache& cache, const std::vector<float>& dense,
                           size_t begin, size_t end, size_t num_threads) {
  return RunRows(c, cache.view(), cache.table(), dense, begin, end, num_threads);
}

std::vector<float> RunAll(const Case& c, const TestKvCache& cache, size_t num_threads = 1) {
  return RunRows(c, cache, Queries(c), 0, c.num_rows, num_threads);
}

// A row of int8 with one scale, as double.
std::vector<double> Quantized(std::vector<double> row) {
  double absmax = 0;
  for (const double x : row) absmax = std::max(absmax, std::abs(x));
  const double scale = absmax / 127;
  for (double& x : row) x = scale * std::nearbyint(x / scale);
  return row;
}

std::vector<double> Expected(const Case& c, const TestKvCache& cache, bool quantize_queries) {
  const AttentionShape& shape = c.shape;
  std::vector<reference::Head> heads(shape.num_key_value_heads);
  for (size_t h = 0; h < heads.size(); ++h) {
    for (size_t t = 0; t < c.num_tokens(); ++t) {
      std::vector<double>& key = heads[h].keys.emplace_back();
      std::vector<double>& value = heads[h].values.emplace_back();
      for (size_t j = 0; j < shape.head_dim; ++j) {
        key.push_back(cache.Key(h, t, j));
        value.push_back(cache.Value(h, t, j));
      }
    }
  }
  const std::vector<float> queries = Queries(c);
  std::vector<double> result;
  for (size_t i = 0; i < c.num_rows * shape.num_attention_heads; ++i) {
    const auto begin = queries.begin() + static_cast<ptrdiff_t>(i * shape.head_dim);
    std::vector<double> query(begin, begin + static_cast<ptrdiff_t>(shape.head_dim));
    if (quantize_queries) query = Quantized(query);
    const size_t row = i / shape.num_attention_heads;
    const size_t head = i % shape.num_attention_heads * heads.size() / shape.num_attention_heads;
    const std::vector<double> attended = reference::Attend(
        query, heads[head], c.BeginOf(row), c.first_position + row + 1, shape.score_factor);
    result.insert(result.end(), attended.begin(), attended.end());
  }
  return result;
}

double MaxDifference(const std::vector<float>& actual, const std::vector<double>& expected) {
  double result = actual.size() == expected.size() ? 0.0 : INFINITY;
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const double difference = std::abs(actual[i] - expected[i]);
    if (!(difference <= result)) result = difference;  // NaN stays.
  }
  return result;
}

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
    // Every grouping, with few and many rows.
    for (const auto& [heads, kv_heads] : head_counts) {
      for (const size_t num_rows : {1, 2, 3, 17, 40}) {
        cases.push_back({{heads, kv_heads, 16}, type, 70, num_rows});
      }
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

class AttentionTest : public testing::TestWithParam<Case> {};

TEST_P(AttentionTest, MatchesReference) {
  const Case& c = GetParam();
  const TestKvCache cache = FilledCache(c, c.num_tokens() + 3);
  const std::vector<double> expected = Expected(c, cache, c.type == KvType::kInt8);
  EXPECT_LT(MaxDifference(RunAll(c, cache), expected), 1e-5);
}

TEST_P(AttentionTest, MatchesReferenceWhereTheCacheEnds) {
  const Case& c = GetParam();
  const TestKvCache cache = FilledCache(c, c.num_tokens());
  const std::vector<double> expected = Expected(c, cache, c.type == KvType::kInt8);
  EXPECT_LT(MaxDifference(RunAll(c, cache), expected), 1e-5);
}

TEST_P(AttentionTest, IsBitwiseTheSameForEveryOrderOfPages) {
  const Case& c = GetParam();
  const TestKvCache in_order = FilledCache(c, c.num_tokens(), PageOrder::kInOrder);
  const TestKvCache shuffled = FilledCache(c, c.num_tokens(), PageOrder::kShuffled);
  const std::vector<float> expected = RunAll(c, in_order);
  const std::vector<float> actual = RunAll(c, shuffled);
  EXPECT_EQ(std::memcmp(expected.data(), actual.data(), expected.size() * sizeof(float)), 0);
}

TEST_P(AttentionTest, IsBitwiseTheSameForEveryNumberOfThreads) {
  const Case& c = GetParam();
  const TestKvCache cache = FilledCache(c, c.num_tokens() + 1);
  const std::vector<float> one = RunAll(c, cache, 1);
  for (const size_t num_threads : {2, 3, 4}) {
    // Emulated, threads that wait take the others' time.
    if (support::IsEmulated() && num_threads > 2) continue;
    const std::vector<float> several = RunAll(c, cache, num_threads);
    EXPECT_EQ(std::memcmp(one.data(), several.data(), one.size() * sizeof(float)), 0)
        << num_threads << " threads";
  }
}

// Rows are computed by tiles or by spans of positions, which depends on how many there are.
TEST_P(AttentionTest, IsBitwiseTheSameForEveryDivisionOfRows) {
  const Case& c = GetParam();
  const TestKvCache cache = FilledCache(c, c.num_tokens() + 1);
  const std::vector<float> queries = Queries(c);
  const std::vector<float> together = RunAll(c, cache);
  for (const size_t part_rows : {1, 2, 5, 19}) {
    std::vector<float> parts;
    for (size_t begin = 0; begin < c.num_rows; begin += part_rows) {
      const std::vector<float> part =
          RunRows(c, cache, queries, begin, std::min(c.num_rows, begin + part_rows), 1);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(std::memcmp(together.data(), parts.data(), parts.size() * sizeof(float)), 0)
        << part_rows << " rows at once";
    if (part_rows >= c.num_rows) break;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTest, testing::ValuesIn(Cases()));

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
  for (const size_t num_rows : kRowCounts) {
    const Case c = {kShape, GetParam(), 300 - num_rows, num_rows};
    const std::vector<float> output = RunAll(c, cache);
    for (size_t i = 0; i < output.size(); ++i) {
      // The mean of 0, 1, ..., position.
      const size_t position = c.first_position + i / 80;
      const float expected = static_cast<float>(position) / 2;
      EXPECT_NEAR(output[i], expected, 1e-4) << num_rows << ' ' << i;
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
    StoreKeyValue(cache, table.Row(t), row.data(), row.data());
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
    EXPECT_LT(MaxDifference(RunAll(c, cache), exact), 1e-2 * largest);
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
  const Case c = {{2, 1, 8}, KvType::kF32, 3, 0};
  const TestKvCache cache = FilledCache(c, 4);
  Result<ThreadPool> pool = ThreadPool::Create(1);
  const AttentionRows rows = {.first_position = 3};
  Attention(c.shape, cache.view(), std::span(&rows, 1), {}, *pool);
  Attention(c.shape, cache.view(), {}, {}, *pool);
}

}  // namespace
}  // namespace cria::ops
