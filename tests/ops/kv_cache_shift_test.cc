#include "ops/kv_cache_shift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <numbers>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "ops/kv_cache.h"
#include "ops/random_floats.h"
#include "ops/rope_rows.h"

namespace cria::ops {
namespace {

struct Shift {
  KvType type = KvType::kF32;
  size_t head_dim = 64;
  size_t num_heads = 2;
  size_t first = 3;
  size_t count = 5;
  size_t end = 20;
  size_t capacity_tokens = 23;
  size_t rotary_dim = 0;  // 0: all of a head.

  size_t rotated() const { return rotary_dim == 0 ? head_dim : rotary_dim; }
};

std::ostream& operator<<(std::ostream& out, const Shift& c) {
  return out << c.num_heads << " heads of " << c.head_dim << ", " << KvTypeName(c.type) << ", ["
             << c.first << ", " << c.first + c.count << ") of " << c.end << ", " << c.rotated()
             << " channels turn";
}

// Keys before rope: the same for the same `token`, wherever it is stored.
std::vector<float> RawKeys(const Shift& c, size_t token) {
  return RandomRow(c.num_heads * c.head_dim, 2 * token + 1);
}

std::vector<float> Values(const Shift& c, size_t token) {
  return RandomRow(c.num_heads * c.head_dim, 2 * token + 2);
}

// Stores `token` as if it had been computed at `position`, in double precision.
void Store(const Shift& c, const TestKvCache& cache, size_t token, size_t position) {
  std::vector<float> keys = RawKeys(c, token);
  for (size_t head = 0; head < c.num_heads; ++head) {
    float* const key = keys.data() + head * c.head_dim;
    const std::vector<double> rotated = Rotated({key, key + c.head_dim}, position, c.rotated());
    for (size_t j = 0; j < c.head_dim; ++j) key[j] = static_cast<float>(rotated[j]);
  }
  cache.Store(position, keys.data(), Values(c, token).data());
}

TestKvCache NewCache(const Shift& c) {
  return TestKvCache(c.type, c.num_heads, c.head_dim, c.capacity_tokens);
}

// Drops positions [first, first + count) of `end`: one move for as many rows as are adjacent.
void Drop(const Shift& c, const TestKvCache& cache, size_t first, size_t count, size_t end) {
  if (count == 0) return;
  const KvPageTable& table = cache.table();
  const RopeRows row(count, count + 1, c.rotated());
  KvCacheView view = cache.view();
  view.rotary_dim = c.rotary_dim;
  for (size_t t = first; t < end - count;) {
    size_t num_rows = 1;
    while (t + num_rows < end - count && table.Row(t + num_rows) == table.Row(t) + num_rows &&
           table.Row(t + count + num_rows) == table.Row(t + count) + num_rows) {
      ++num_rows;
    }
    MoveRows(view,
             {.source_row = table.Row(t + count),
              .target_row = table.Row(t),
              .num_rows = num_rows,
              .position = t,
              .distance = count},
             row.cosines.data(), row.sines.data());
    t += num_rows;
  }
}

// The length of a head's longest pair, which rope does not change, or of its largest channel that
// is not turned: a bound of every element.
double LongestPair(const Shift& c, size_t token, size_t head) {
  const std::vector<float> keys = RawKeys(c, token);
  const float* key = keys.data() + head * c.head_dim;
  double longest = 0;
  const size_t half = c.rotated() / 2;
  for (size_t i = 0; i < half; ++i) {
    longest = std::max(longest, std::hypot(double{key[i]}, double{key[half + i]}));
  }
  for (size_t i = 2 * half; i < c.head_dim; ++i)
    longest = std::max(longest, std::abs(double{key[i]}));
  return longest;
}

double Length(const Shift& c, size_t token, size_t head) {
  const std::vector<float> keys = RawKeys(c, token);
  const float* key = keys.data() + head * c.head_dim;
  return std::sqrt(std::inner_product(key, key + c.head_dim, key, 0.0));
}

// How far the keys of `token` at `position` in two caches differ. In int8, this is the length of a
// head's difference, divided by the root of head_dim and by length_of(head), which is 127 steps. In
// other types, it is the largest difference of a channel, divided by the longest pair.
template <typename LengthOf>
double KeyDifference(const Shift& c, const TestKvCache& a, const TestKvCache& b, size_t token,
                     size_t position, const LengthOf& length_of) {
  double result = 0;
  const auto enlarge = [&result](double difference) {
    if (!(difference <= result)) result = difference;  // NaN stays.
  };
  for (size_t head = 0; head < c.num_heads; ++head) {
    const std::vector<double> first = a.KeyRow(head, position), second = b.KeyRow(head, position);
    double squares = 0;
    double largest = 0;
    for (size_t j = 0; j < c.head_dim; ++j) {
      const double difference = std::abs(first[j] - second[j]);
      squares += difference * difference;
      if (!(difference <= largest)) largest = difference;  // NaN stays.
    }
    enlarge(c.type == KvType::kInt8
                ? std::sqrt(squares / static_cast<double>(c.head_dim)) / length_of(head)
                : largest / LongestPair(c, token, head));
  }
  return result;
}

// Half a step of the type for an element as large as the longest pair.
double HalfStep(KvType type) {
  switch (type) {
    case KvType::kF32:
      return 0x1p-24;
    case KvType::kF16:
      return 0x1p-11;
    case KvType::kInt8:
      return 0.5 / 127;
  }
  return 0;
}

// What a drop and storing anew may differ by: both are rounded once, and the key before the drop
// was rounded too, whose pairs of errors turn with it. In int8, no length changes by turning or by
// Hadamard's matrix, and the errors are at most half a step of each of the three.
double OneDropTolerance(KvType type) {
  if (type == KvType::kF32) return 1e-5;
  if (type == KvType::kInt8) return 3 * HalfStep(type) * (1 + 1e-4);
  return (2 + std::numbers::sqrt2) * HalfStep(type);
}

struct StoredKey {
  const TestKvCache& cache;
  size_t position;
};
// The mean of what is 127 steps of these keys of a head.
double MeanAbsmax(size_t head, std::initializer_list<StoredKey> keys) {
  double sum = 0;
  for (const StoredKey& key : keys) {
    sum += 127.0 * key.cache.view().key_scales[key.cache.Row(head, key.position)];
  }
  return sum / static_cast<double>(keys.size());
}

struct Row {
  std::vector<std::byte> elements;
  float scale = 0;
  bool operator==(const Row& other) const {
    return elements == other.elements && std::memcmp(&scale, &other.scale, sizeof(scale)) == 0;
  }
};

Row RowOf(const TestKvCache& cache, const void* data, const float* scales, size_t head,
          size_t position) {
  const KvCacheView& view = cache.view();
  const size_t row = cache.Row(head, position);
  const size_t bytes = view.head_dim * KvElementBytes(view.type);
  const auto* begin = static_cast<const std::byte*>(data) + row * bytes;
  return {{begin, begin + bytes}, scales == nullptr ? 0.0f : scales[row]};
}
Row KeyRow(const TestKvCache& cache, size_t head, size_t position) {
  return RowOf(cache, cache.view().keys, cache.view().key_scales, head, position);
}
Row ValueRow(const TestKvCache& cache, size_t head, size_t position) {
  return RowOf(cache, cache.view().values, cache.view().value_scales, head, position);
}

std::vector<Shift> Shifts() {
  std::vector<Shift> cases;
  for (const KvType type : kKvTypes) {
    for (const size_t head_dim : {2, 4, 6, 8, 10, 30, 34, 48, 64, 72, 80, 128, 130, 256, 1024}) {
      for (const size_t num_heads : {1, 3}) {
        cases.push_back({.type = type, .head_dim = head_dim, .num_heads = num_heads});
      }
    }
    // No positions, one, less behind than dropped and more; to the end; from the start; all.
    for (const auto& [first, count, end] : std::vector<std::array<size_t, 3>>{{3, 0, 20},
                                                                              {3, 1, 20},
                                                                              {3, 15, 20},
                                                                              {3, 16, 20},
                                                                              {3, 17, 20},
                                                                              {0, 7, 20},
                                                                              {0, 20, 20},
                                                                              {20, 0, 20},
                                                                              {0, 0, 0},
                                                                              {0, 22, 23},
                                                                              {1, 4, 23}}) {
      cases.push_back({.type = type, .first = first, .count = count, .end = end});
    }
    // Only the first channels of a head are turned.
    for (const size_t rotary_dim : {2, 6, 40, 72}) {
      cases.push_back({.type = type, .head_dim = 80, .rotary_dim = rotary_dim});
    }
    // Over several pages: whole pages, parts of them, and less than one.
    for (const auto& [first, count] : std::vector<std::array<size_t, 2>>{
             {4, 64}, {64, 128}, {70, 100}, {0, 1}, {100, 63}, {63, 65}, {4, 210}}) {
      cases.push_back({.type = type,
                       .head_dim = 10,
                       .first = first,
                       .count = count,
                       .end = 250,
                       .capacity_tokens = 260});
    }
  }
  return cases;
}

std::vector<Shift> ShiftsOverPages() {
  std::vector<Shift> cases = Shifts();
  std::erase_if(cases, [](const Shift& c) { return c.end <= kKvPageTokens || c.count == 0; });
  return cases;
}

class KvCacheShiftTest : public testing::TestWithParam<Shift> {};
class KvCacheShiftOverPagesTest : public KvCacheShiftTest {};

TEST_P(KvCacheShiftTest, MovesWhatLiesBehindAndTouchesNothingElse) {
  const Shift& c = GetParam();
  const TestKvCache before = NewCache(c), after = NewCache(c), fresh = NewCache(c);
  for (size_t t = 0; t < c.capacity_tokens; ++t) {
    Store(c, before, t, t);
    Store(c, after, t, t);
  }
  Drop(c, after, c.first, c.count, c.end);
  for (size_t t = c.first; t < c.end - c.count; ++t) {
    const size_t token = t + c.count;
    Store(c, fresh, token, t);
    const auto absmax = [&](size_t head) {
      return MeanAbsmax(head, {{before, token}, {after, t}, {fresh, t}});
    };
    EXPECT_LE(KeyDifference(c, after, fresh, token, t, absmax), OneDropTolerance(c.type)) << t;
  }
  for (size_t head = 0; head < c.num_heads; ++head) {
    for (size_t t = 0; t < c.capacity_tokens; ++t) {
      if (t >= c.first && t < c.end - c.count) {
        EXPECT_EQ(ValueRow(after, head, t), ValueRow(before, head, t + c.count)) << t;
      } else if (t < c.first || t >= c.end) {
        EXPECT_EQ(ValueRow(after, head, t), ValueRow(before, head, t)) << t;
        EXPECT_EQ(KeyRow(after, head, t), KeyRow(before, head, t)) << t;
      }
    }
  }
}

// What is subtracted from a key is, after a move, the offset of its new page.
TEST(KvCacheShiftTest, MovedKeysHaveTheOffsetsOfTheirNewPages) {
  for (const size_t head_dim : {2, 10, 64, 130}) {
    for (const bool has_rope : {true, false}) {
      const Shift c = {.type = KvType::kInt8,
                       .head_dim = head_dim,
                       .first = 3,
                       .count = 70,
                       .end = 200,
                       .capacity_tokens = 210};
      const std::vector<float> middles = RandomFloats(c.num_heads * head_dim, 9);
      const std::vector<float> slopes = RandomFloats(c.num_heads * head_dim, 10, 0.03f);
      const std::vector<float> zeros(c.num_heads * head_dim);
      const RopeRows rope(0, c.capacity_tokens, c.rotated());
      const TurnedPairs turned(c.num_heads, c.rotated());
      TestKvCache before = NewCache(c), after = NewCache(c), fresh = NewCache(c);
      for (TestKvCache* cache : {&before, &after, &fresh}) {
        cache->set_key_offsets({.middles = middles.data(),
                                .slopes = has_rope ? slopes.data() : zeros.data(),
                                .cosines = has_rope ? rope.cosines.data() : nullptr,
                                .sines = has_rope ? rope.sines.data() : nullptr,
                                .turned_pairs = has_rope ? turned.pairs.data() : nullptr,
                                .row_turns = has_rope ? turned.row_turns.data() : nullptr});
      }
      for (size_t t = 0; t < c.end; ++t) {
        Store(c, before, t, t);
        Store(c, after, t, t);
      }
      Drop(c, after, c.first, c.count, c.end);
      for (size_t t = c.first; t < c.end - c.count; ++t) {
        Store(c, fresh, t + c.count, t);
        const auto absmax = [&](size_t head) {
          return MeanAbsmax(head, {{before, t + c.count}, {after, t}, {fresh, t}});
        };
        EXPECT_LE(KeyDifference(c, after, fresh, t + c.count, t, absmax), OneDropTolerance(c.type))
            << c << ": " << t;
      }
    }
  }
}

// Rows that are copied keep every bit; rows that are turned where they are have the keys, and every
// bit of the values, that they would have elsewhere.
TEST_P(KvCacheShiftOverPagesTest, RowsAreCopiedOrTurnedInPlace) {
  const Shift& c = GetParam();
  const TestKvCache before = NewCache(c), copied = NewCache(c), turned = NewCache(c),
                    moved = NewCache(c);
  for (size_t t = 0; t < c.capacity_tokens; ++t) {
    for (const TestKvCache* cache : {&before, &copied, &turned, &moved}) Store(c, *cache, t, t);
  }
  const KvPageTable& table = before.table();
  // Rows 3 to 62 of the second page become rows 1 to 60 of the first.
  const KvRowMove move = {
      .source_row = table.Row(kKvPageTokens + 3), .target_row = table.Row(1), .num_rows = 60};
  const KvRowMove in_place = {
      .source_row = move.source_row, .target_row = move.source_row, .num_rows = move.num_rows};
  const RopeRows row(c.count, c.count + 1, c.head_dim);
  MoveRows(copied.view(), move, nullptr, nullptr);
  MoveRows(moved.view(), move, row.cosines.data(), row.sines.data());
  MoveRows(turned.view(), in_place, row.cosines.data(), row.sines.data());
  for (size_t head = 0; head < c.num_heads; ++head) {
    for (size_t t = 0; t < c.capacity_tokens; ++t) {
      const bool is_target = t >= 1 && t < 61;
      const bool is_source = t >= kKvPageTokens + 3 && t < kKvPageTokens + 63;
      const size_t source = is_target ? t + kKvPageTokens + 2 : t;
      EXPECT_EQ(KeyRow(copied, head, t), KeyRow(before, head, source)) << t;
      EXPECT_EQ(ValueRow(copied, head, t), ValueRow(before, head, source)) << t;
      EXPECT_EQ(ValueRow(moved, head, t), ValueRow(before, head, source)) << t;
      EXPECT_EQ(ValueRow(turned, head, t), ValueRow(before, head, t)) << t;
      if (is_target) {
        EXPECT_EQ(KeyRow(moved, head, t), KeyRow(turned, head, source)) << t;
      }
      if (!is_source) {
        EXPECT_EQ(KeyRow(turned, head, t), KeyRow(before, head, t)) << t;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KvCacheShiftTest, testing::ValuesIn(Shifts()));
INSTANTIATE_TEST_SUITE_P(All, KvCacheShiftOverPagesTest, testing::ValuesIn(ShiftsOverPages()));

class KvCacheShiftOfTypeTest : public testing::TestWithParam<KvType> {};

TEST_P(KvCacheShiftOfTypeTest, DroppingNothingKeepsEveryBit) {
  const Shift c = {.type = GetParam()};
  const TestKvCache before = NewCache(c), after = NewCache(c);
  for (size_t t = 0; t < c.end; ++t) {
    Store(c, before, t, t);
    Store(c, after, t, t);
  }
  Drop(c, after, 3, 0, c.end);
  for (size_t head = 0; head < c.num_heads; ++head) {
    for (size_t t = 0; t < c.end; ++t) {
      EXPECT_EQ(KeyRow(after, head, t), KeyRow(before, head, t));
      EXPECT_EQ(ValueRow(after, head, t), ValueRow(before, head, t));
    }
  }
}

TEST_P(KvCacheShiftOfTypeTest, ZeroKeysStayZero) {
  const Shift c = {.type = GetParam(), .num_heads = 1};
  const TestKvCache cache = NewCache(c);
  const std::vector<float> zeros(c.head_dim, 0.0f);
  for (size_t t = 0; t < 4; ++t) cache.Store(t, zeros.data(), zeros.data());
  Drop(c, cache, 0, 1, 4);
  for (size_t t = 0; t < 3; ++t) {
    for (size_t j = 0; j < c.head_dim; ++j) EXPECT_EQ(cache.Key(0, t, j), 0.0f);
  }
}

// Every drop rounds a key once more. Where a drop turns a pair by less than half a step, rounding
// may undo it each time, so the errors can add up in one direction: 50 drops of half a step, times
// sqrt(2) for a pair, are the bound that holds for all keys. In int8, no channel times Hadamard's
// matrix is larger than the key is long.
TEST_P(KvCacheShiftOfTypeTest, ErrorsOfManyDropsStayBounded) {
  constexpr size_t kDrops = 50, kFirst = 4;
  double largest = 0;
  for (const size_t count : {1, 7, 100}) {
    const size_t num_tokens = kFirst + kDrops * count + 30;
    const Shift c = {.type = GetParam(), .num_heads = 1, .capacity_tokens = num_tokens};
    const TestKvCache cache = NewCache(c), fresh = NewCache(c);
    for (size_t t = 0; t < num_tokens; ++t) Store(c, cache, t, t);
    for (size_t drop = 0; drop < kDrops; ++drop) {
      Drop(c, cache, kFirst, count, num_tokens - drop * count);
    }
    double error = 0;
    for (size_t t = kFirst; t < num_tokens - kDrops * count; ++t) {
      const size_t token = t + kDrops * count;
      Store(c, fresh, token, t);
      const auto length = [&](size_t head) { return Length(c, token, head); };
      error = std::max(error, KeyDifference(c, cache, fresh, token, t, length));
    }
    RecordProperty("error_of_drops_of_" + std::to_string(count), std::to_string(error));
    largest = std::max(largest, error);
  }
  const double worst = (2 + std::numbers::sqrt2 * kDrops) * HalfStep(GetParam());
  EXPECT_LT(largest, GetParam() == KvType::kF32 ? 1e-5 : worst);
}

INSTANTIATE_TEST_SUITE_P(All, KvCacheShiftOfTypeTest, testing::ValuesIn(kKvTypes),
                         [](const auto& tested) { return std::string(KvTypeName(tested.param)); });

}  // namespace
}  // namespace cria::ops
