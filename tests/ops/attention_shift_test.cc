// Attention over a sequence from which tokens were dropped, and whose later keys stayed as they
// were (KeyShift).

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <vector>

#include "ops/attention.h"
#include "ops/attention_fixture.h"
#include "ops/rope_rows.h"
#include "support/emulation.h"

namespace cria::ops {
namespace {

struct ShiftCase {
  Case attention;
  size_t first = 0;
  size_t distance = 0;
  size_t rotary_dim = 0;  // 0: all of a head.
  bool has_offsets = false;

  size_t rotary_channels() const { return rotary_dim == 0 ? attention.shape.head_dim : rotary_dim; }
};

std::ostream& operator<<(std::ostream& out, const ShiftCase& c) {
  return out << c.attention << ", keys from " << c.first << " on are turned by " << c.distance
             << " more, " << c.rotary_dim << " channels turn" << (c.has_offsets ? ", offsets" : "");
}

std::vector<ShiftCase> ShiftCases() {
  std::vector<ShiftCase> cases;
  const auto add = [&](const AttentionShape& shape, size_t position, size_t rows, size_t first,
                       size_t distance, size_t rotary_dim) {
    for (const KvType type : kKvTypes) {
      const ShiftCase c = {{shape, type, position, rows}, first, distance, rotary_dim};
      cases.push_back(c);
      if (type != KvType::kInt8) continue;
      cases.push_back(c);
      cases.back().has_offsets = true;
    }
  };
  // 16 rows are a tile for every shape.
  const std::vector<size_t> row_counts =
      support::IsEmulated() ? std::vector<size_t>{1, 2, 17} : std::vector<size_t>{1, 2, 9, 40};
  for (const size_t rows : row_counts) {
    add({4, 2, 20}, 70, rows, 5, 16, 0);
    add({6, 1, 64}, 300, rows, 64, 64, 0);
    add({3, 3, 10}, 300, rows, 69, 1000, 0);
    add({7, 1, 32}, 270, rows, 1, 100003, 12);
    add({4, 2, 130, 100}, 300, rows, 250, 70, 0);
    add({4, 2, 20}, 64, rows, 64, 5, 0);
    // All keys are shifted, and a page of offsets begins before the first.
    add({4, 2, 20}, 20, rows, 0, 1, 0);
    // The window has only shifted keys.
    add({4, 2, 20, 30}, 300, rows, 3, 17, 0);
  }
  return cases;
}

class AttentionShiftTest : public testing::TestWithParam<ShiftCase> {
 protected:
  AttentionShiftTest()
      : rope_(0, std::max(GetParam().attention.num_tokens(), kKvPageTokens), rotary_channels()),
        turn_(GetParam().distance, GetParam().distance + 1, rotary_channels()),
        turned_(shape().num_key_value_heads, rotary_channels()),
        middles_(RandomFloats(shape().num_key_value_heads * shape().head_dim, 5, 3.0f)),
        slopes_(RandomFloats(middles_.size(), 8, 0.1f)),
        c_(WithShift()) {}

  const AttentionShape& shape() const { return GetParam().attention.shape; }
  size_t rotary_channels() const { return GetParam().rotary_channels(); }
  bool IsShifted(size_t position) const { return position >= GetParam().first; }
  // The position as of which a key is turned.
  size_t TurnedAs(size_t position) const {
    return position + (IsShifted(position) ? GetParam().distance : 0);
  }

  Case WithShift() const {
    Case c = GetParam().attention;
    c.shift = {.first = GetParam().first,
               .distance = GetParam().distance,
               .cosines = turn_.cosines.data(),
               .sines = turn_.sines.data()};
    return c;
  }

  TestKvCache Cache() const {
    TestKvCache cache(c_.type, shape().num_key_value_heads, shape().head_dim, c_.num_tokens());
    KeyOffsets offsets;
    if (GetParam().has_offsets) {
      offsets = {.middles = middles_.data(),
                 .slopes = slopes_.data(),
                 .cosines = rope_.cosines.data(),
                 .sines = rope_.sines.data(),
                 .turned_pairs = turned_.pairs.data(),
                 .row_turns = turned_.row_turns.data()};
    }
    cache.set_key_offsets(offsets, GetParam().rotary_dim);
    for (size_t t = c_.BeginOf(0); t < c_.num_tokens(); ++t) {
      std::vector<float> keys = RandomRow(middles_.size(), 2 * t + 1);
      for (size_t i = 0; i < keys.size() && GetParam().has_offsets; ++i) {
        const size_t head = i / shape().head_dim;
        keys[i] +=
            static_cast<float>(OffsetOf(cache.view(), head, TurnedAs(t))[i % shape().head_dim]);
      }
      const KeyShift shift = IsShifted(t) ? c_.shift : KeyShift();
      cache.Store(t, keys.data(), RandomRow(middles_.size(), 2 * t + 2).data(), shift);
    }
    return cache;
  }

  // The query as that of a position that is `distance` less.
  std::vector<double> TurnedBack(std::vector<double> query) const {
    const size_t half = rotary_channels() / 2;
    for (size_t i = 0; i < half; ++i) {
      const double angle = RopeAngle(GetParam().distance, i, rotary_channels());
      const double a = query[i], b = query[half + i];
      query[i] = a * std::cos(angle) + b * std::sin(angle);
      query[half + i] = b * std::cos(angle) - a * std::sin(angle);
    }
    return query;
  }

  // Earlier keys are multiplied by the query turned back, later ones by the query as it is: so keys
  // and queries have one part for each, of which a key's other one is 0. Where there are offsets,
  // these have two parts, too: int8 rounds queries for what is stored, but not for offsets.
  std::vector<double> ExpectedWithShift(const TestKvCache& cache) const {
    const size_t head_dim = shape().head_dim;
    std::vector<reference::Head> heads(shape().num_key_value_heads);
    for (size_t h = 0; h < heads.size(); ++h) {
      for (size_t t = 0; t < c_.num_tokens(); ++t) {
        std::vector<double>& key = heads[h].keys.emplace_back(4 * head_dim, 0.0);
        std::vector<double>& value = heads[h].values.emplace_back(head_dim);
        const size_t part = IsShifted(t) ? head_dim : 0;
        const std::vector<double> offset = GetParam().has_offsets
                                               ? OffsetOf(cache.view(), h, TurnedAs(t))
                                               : std::vector<double>(head_dim);
        for (size_t j = 0; j < head_dim; ++j) {
          key[part + j] = cache.Key(h, t, j);
          key[2 * head_dim + part + j] = offset[j];
          value[j] = cache.Value(h, t, j);
        }
      }
    }
    const std::vector<float> queries = Queries(c_);
    std::vector<double> result;
    for (size_t i = 0; i < c_.num_rows * shape().num_attention_heads; ++i) {
      const auto begin = queries.begin() + static_cast<ptrdiff_t>(i * head_dim);
      const std::vector<double> later(begin, begin + static_cast<ptrdiff_t>(head_dim));
      const std::vector<double> earlier = TurnedBack(later);
      std::vector<double> query;
      for (const bool is_stored : {true, false}) {
        for (const std::vector<double>& part : {earlier, later}) {
          const bool is_rounded = is_stored && c_.type == KvType::kInt8;
          const std::vector<double> rounded = is_rounded ? Quantized(Spread(part)) : part;
          query.insert(query.end(), rounded.begin(), rounded.end());
        }
      }
      const size_t row = i / shape().num_attention_heads;
      const size_t head =
          i % shape().num_attention_heads * heads.size() / shape().num_attention_heads;
      // The reference divides by the root of four times as many channels.
      const std::vector<double> attended =
          reference::Attend(query, heads[head], c_.BeginOf(row), c_.first_position + row + 1, 2.0);
      result.insert(result.end(), attended.begin(), attended.end());
    }
    return result;
  }

  const RopeRows rope_, turn_;
  const TurnedPairs turned_;
  const std::vector<float> middles_, slopes_;
  const Case c_;
};

TEST_P(AttentionShiftTest, MatchesReference) {
  const TestKvCache cache = Cache();
  EXPECT_LT(MaxDifference(RunAll(c_, cache), ExpectedWithShift(cache)), 3e-4);
}

TEST_P(AttentionShiftTest, IsBitwiseTheSameForEveryDivisionOfRows) {
  const TestKvCache cache = Cache();
  EXPECT_TRUE(AreSame(RunAll(c_, cache), RunParts(c_, cache, 1)));
}

INSTANTIATE_TEST_SUITE_P(All, AttentionShiftTest, testing::ValuesIn(ShiftCases()));

}  // namespace
}  // namespace cria::ops
