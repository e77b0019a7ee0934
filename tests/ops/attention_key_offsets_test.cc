// Attention over keys from which offsets are subtracted.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attention.h"
#include "ops/attention_fixture.h"
#include "ops/rope_rows.h"

namespace cria::ops {
namespace {

struct OffsetCase {
  Case attention;
  size_t rotary_dim = 0;  // 0: all of a head.
  bool has_turned_pairs = false;

  size_t rotary_channels() const { return rotary_dim == 0 ? attention.shape.head_dim : rotary_dim; }
};

std::ostream& operator<<(std::ostream& out, const OffsetCase& c) {
  return out << c.attention << ", " << c.rotary_dim << " channels turn"
             << (c.has_turned_pairs ? ", with turned pairs" : "");
}

std::vector<OffsetCase> OffsetCases() {
  std::vector<OffsetCase> cases;
  for (const size_t num_rows : {1, 2, 9, 40}) {
    for (const size_t first : {0, 63, 300}) {
      cases.push_back({{{4, 2, 20}, KvType::kInt8, first, num_rows}});
      cases.push_back({{{6, 1, 64}, KvType::kInt8, first, num_rows}});
      cases.push_back({{{3, 3, 10}, KvType::kInt8, first, num_rows}});
      cases.push_back({{{7, 1, 32}, KvType::kInt8, first, num_rows}, 12});
      cases.push_back({{{4, 2, 130, 100}, KvType::kInt8, first, num_rows}});
    }
  }
  cases.push_back({{{71, 1, 8}, KvType::kInt8, 100, 3}});
  for (size_t i = 0, count = cases.size(); i < count; ++i) {
    cases.push_back(cases[i]);
    cases.back().has_turned_pairs = true;
  }
  return cases;
}

class AttentionKeyOffsetsTest : public testing::TestWithParam<OffsetCase> {
 protected:
  AttentionKeyOffsetsTest()
      : c_(GetParam().attention),
        rope_(0, c_.num_tokens(), GetParam().rotary_channels()),
        turned_(c_.shape.num_key_value_heads, GetParam().rotary_channels()),
        middles_(RandomFloats(c_.shape.num_key_value_heads * c_.shape.head_dim, 5, 3.0f)),
        slopes_(RandomFloats(middles_.size(), 8, 0.1f)),
        zeros_(middles_.size()) {}

  // Keys are random around their offsets. Without `has_rope`, all have the same.
  TestKvCache Cache(bool has_rope) const {
    const AttentionShape& shape = c_.shape;
    TestKvCache cache(c_.type, shape.num_key_value_heads, shape.head_dim, c_.num_tokens());
    const bool has_turned_pairs = has_rope && GetParam().has_turned_pairs;
    cache.set_key_offsets({.middles = middles_.data(),
                           .slopes = has_rope ? slopes_.data() : zeros_.data(),
                           .cosines = has_rope ? rope_.cosines.data() : nullptr,
                           .sines = has_rope ? rope_.sines.data() : nullptr,
                           .turned_pairs = has_turned_pairs ? turned_.pairs.data() : nullptr,
                           .row_turns = has_turned_pairs ? turned_.row_turns.data() : nullptr},
                          GetParam().rotary_dim);
    for (size_t t = c_.BeginOf(0); t < c_.num_tokens(); ++t) {
      std::vector<float> keys = RandomRow(middles_.size(), 2 * t + 1);
      for (size_t h = 0; h < shape.num_key_value_heads; ++h) {
        const std::vector<double> offset = OffsetOf(cache.view(), h, t);
        for (size_t j = 0; j < shape.head_dim; ++j) {
          keys[h * shape.head_dim + j] += static_cast<float>(offset[j]);
        }
      }
      cache.Store(t, keys.data(), RandomRow(middles_.size(), 2 * t + 2).data());
    }
    return cache;
  }

  // The product with what is stored is that of the rounded query, but not the one with the offset.
  std::vector<double> ExpectedWithOffsets(const TestKvCache& cache) const {
    const AttentionShape& shape = c_.shape;
    const size_t head_dim = shape.head_dim;
    std::vector<reference::Head> heads(shape.num_key_value_heads);
    for (size_t h = 0; h < heads.size(); ++h) {
      for (size_t t = 0; t < c_.num_tokens(); ++t) {
        std::vector<double>& key = heads[h].keys.emplace_back();
        std::vector<double>& value = heads[h].values.emplace_back(head_dim);
        for (size_t j = 0; j < head_dim; ++j) {
          key.push_back(cache.Key(h, t, j));
          value[j] = cache.Value(h, t, j);
        }
        const std::vector<double> offset = OffsetOf(cache.view(), h, t);
        key.insert(key.end(), offset.begin(), offset.end());
      }
    }
    const std::vector<float> queries = Queries(c_);
    std::vector<double> result;
    for (size_t i = 0; i < c_.num_rows * shape.num_attention_heads; ++i) {
      const auto begin = queries.begin() + static_cast<ptrdiff_t>(i * head_dim);
      const std::vector<double> exact(begin, begin + static_cast<ptrdiff_t>(head_dim));
      std::vector<double> query = Quantized(Spread(exact));
      query.insert(query.end(), exact.begin(), exact.end());
      const size_t row = i / shape.num_attention_heads;
      const size_t head = i % shape.num_attention_heads * heads.size() / shape.num_attention_heads;
      // The reference divides by the root of twice as many channels.
      const std::vector<double> attended =
          reference::Attend(query, heads[head], c_.BeginOf(row), c_.first_position + row + 1,
                            std::sqrt(2.0) * shape.score_factor);
      result.insert(result.end(), attended.begin(), attended.end());
    }
    return result;
  }

  const Case& c_;
  const RopeRows rope_;
  const TurnedPairs turned_;
  const std::vector<float> middles_, slopes_, zeros_;
};

TEST_P(AttentionKeyOffsetsTest, MatchesReference) {
  const TestKvCache cache = Cache(true);
  EXPECT_LT(MaxDifference(RunAll(c_, cache), ExpectedWithOffsets(cache)), 3e-4);
}

// What all keys lack changes no result.
TEST_P(AttentionKeyOffsetsTest, WithoutRopeTheyAreLeftOut) {
  const TestKvCache cache = Cache(false);
  EXPECT_LT(MaxDifference(RunAll(c_, cache), Expected(c_, cache, true)), 3e-4);
}

TEST_P(AttentionKeyOffsetsTest, IsBitwiseTheSameForEveryDivisionOfRows) {
  const TestKvCache cache = Cache(true);
  EXPECT_TRUE(AreSame(RunAll(c_, cache), RunParts(c_, cache, 1)));
}

INSTANTIATE_TEST_SUITE_P(All, AttentionKeyOffsetsTest, testing::ValuesIn(OffsetCases()));

}  // namespace
}  // namespace cria::ops
