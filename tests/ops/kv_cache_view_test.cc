#include "ops/kv_cache_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/numeric.h"
#include "ops/kv_cache.h"
#include "ops/random_floats.h"
#include "ops/reference_ops.h"
#include "ops/rope_rows.h"

namespace cria::ops {
namespace {

TEST(KvCacheViewTest, TypesHaveNamesAndSizes) {
  EXPECT_EQ(KvTypeName(KvType::kF32), "f32");
  EXPECT_EQ(KvTypeName(KvType::kF16), "f16");
  EXPECT_EQ(KvTypeName(KvType::kInt8), "int8");
  EXPECT_EQ(KvElementBytes(KvType::kF32), 4u);
  EXPECT_EQ(KvElementBytes(KvType::kF16), 2u);
  EXPECT_EQ(KvElementBytes(KvType::kInt8), 1u);
}

TEST(KvCacheViewTest, F32IsKeptExactlyWhereItBelongs) {
  TestKvCache cache(KvType::kF32, 3, 10, 5);
  const std::vector<float> keys = RandomFloats(30, 1);
  const std::vector<float> values = RandomFloats(30, 2);
  cache.Store(3, keys.data(), values.data());
  for (size_t head = 0; head < 3; ++head) {
    for (size_t token = 0; token < 5; ++token) {
      for (size_t j = 0; j < 10; ++j) {
        if (token == 3) {
          EXPECT_EQ(cache.Key(head, token, j), keys[head * 10 + j]);
          EXPECT_EQ(cache.Value(head, token, j), values[head * 10 + j]);
        } else {
          EXPECT_TRUE(std::isnan(cache.Key(head, token, j)));
          EXPECT_TRUE(std::isnan(cache.Value(head, token, j)));
        }
      }
    }
  }
}

TEST(KvCacheViewTest, F16IsKeptWhereItBelongs) {
  for (const size_t head_dim : {2, 6, 8, 10, 20, 48, 64, 80, 130}) {
    TestKvCache cache(KvType::kF16, 3, head_dim, 5);
    const std::vector<float> keys = RandomFloats(3 * head_dim, 1);
    const std::vector<float> values = RandomFloats(3 * head_dim, 2, 100);
    cache.Store(3, keys.data(), values.data());
    for (size_t head = 0; head < 3; ++head) {
      for (size_t token = 0; token < 5; ++token) {
        for (size_t j = 0; j < head_dim; ++j) {
          const size_t at = head * head_dim + j;
          if (token == 3) {
            EXPECT_EQ(cache.Key(head, token, j), reference::RoundToF16(keys[at]));
            EXPECT_EQ(cache.Value(head, token, j), reference::RoundToF16(values[at]));
          } else {
            EXPECT_TRUE(std::isnan(cache.Key(head, token, j)));
            EXPECT_TRUE(std::isnan(cache.Value(head, token, j)));
          }
        }
      }
    }
  }
}

TEST(KvCacheViewTest, EveryPositionHasARowOnItsPage) {
  constexpr uint32_t kPages[] = {7, 0, 3};
  const KvPageTable table = {kPages};
  for (size_t position = 0; position < 3 * kKvPageTokens; ++position) {
    EXPECT_EQ(table.Row(position),
              kPages[position / kKvPageTokens] * kKvPageTokens + position % kKvPageTokens);
  }
}

// Positions of several pages, stored in any order, lie where the table says, and nowhere else.
TEST(KvCacheViewTest, PositionsAreStoredOnTheirPages) {
  constexpr size_t kTokens = 300, kHeads = 2, kHeadDim = 10;
  for (const KvType type : kKvTypes) {
    TestKvCache cache(type, kHeads, kHeadDim, kTokens);
    for (size_t i = 0; i < kTokens; ++i) {
      const size_t token = i * 7 % kTokens;
      std::vector<float> keys(kHeads * kHeadDim, static_cast<float>(token + 1));
      std::vector<float> values(kHeads * kHeadDim, -static_cast<float>(token + 1));
      cache.Store(token, keys.data(), values.data());
    }
    for (size_t token = 0; token < kTokens; ++token) {
      for (size_t i = 0; i < kHeads * kHeadDim; ++i) {
        const auto stored = static_cast<float>(token + 1);
        ASSERT_NEAR(cache.KeyRow(i / kHeadDim, token)[i % kHeadDim], stored, 1e-6 * stored)
            << token;
        ASSERT_FLOAT_EQ(cache.Value(i / kHeadDim, token, i % kHeadDim), -stored) << token;
      }
    }
  }
}

// Every half, the middle between each half and the next, and the floats next to the middle.
TEST(KvCacheViewTest, F16RoundsToNearestEven) {
  constexpr uint16_t kLargest = 0x7bff;
  std::vector<float> inputs;
  for (uint16_t i = 0; i < kLargest; ++i) {
    const float value = F16ToFloat(i);
    const float middle = (value + F16ToFloat(i + 1)) / 2;
    for (const float input :
         {value, std::nextafter(middle, 0.0f), middle, std::nextafter(middle, INFINITY)}) {
      inputs.push_back(input);
      inputs.push_back(-input);
    }
  }
  constexpr size_t kHeadDim = 72;
  ASSERT_EQ(inputs.size() % kHeadDim, 0u);
  TestKvCache cache(KvType::kF16, 1, kHeadDim, inputs.size() / kHeadDim);
  for (size_t token = 0; token < inputs.size() / kHeadDim; ++token) {
    const float* row = inputs.data() + token * kHeadDim;
    cache.Store(token, row, row);
    for (size_t j = 0; j < kHeadDim; ++j) {
      ASSERT_EQ(cache.Key(0, token, j), reference::RoundToF16(row[j])) << row[j];
      ASSERT_EQ(std::signbit(cache.Key(0, token, j)), std::signbit(row[j])) << row[j];
    }
  }
}

TEST(KvCacheViewTest, F16BecomesTheLargestHalfInsteadOfInfinity) {
  const std::vector<float> inputs = {65504.0f, 65519.0f, 65520.0f, 1e6f, 3e38f, INFINITY, 1e-30f};
  std::vector<float> negative = inputs;
  for (float& input : negative) input = -input;
  TestKvCache cache(KvType::kF16, 1, inputs.size(), 1);
  cache.Store(0, inputs.data(), negative.data());
  for (size_t j = 0; j < inputs.size(); ++j) {
    const float expected = inputs[j] > 1 ? 65504.0f : 0.0f;
    EXPECT_EQ(cache.Key(0, 0, j), expected) << inputs[j];
    EXPECT_EQ(cache.Value(0, 0, j), -expected) << inputs[j];
  }
}

TEST(KvCacheViewTest, Int8IsWithinHalfAStepOfEveryHeadsOwnScale) {
  for (const size_t head_dim : {2, 8, 20, 64, 80, 130}) {
    TestKvCache cache(KvType::kInt8, 2, head_dim, 4);
    for (size_t token = 0; token < 4; ++token) {
      const float size = std::pow(10.0f, static_cast<float>(token) - 2.0f);
      const std::vector<float> keys = RandomFloats(2 * head_dim, 3, size);
      const std::vector<float> values = RandomFloats(2 * head_dim, 4, 7 * size);
      cache.Store(token, keys.data(), values.data());
      for (size_t head = 0; head < 2; ++head) {
        const float* const key = keys.data() + head * head_dim;
        const std::vector<double> spread = reference::HadamardTransform({key, key + head_dim});
        double key_absmax = 0;
        float value_absmax = 0;
        for (size_t j = 0; j < head_dim; ++j) {
          key_absmax = std::max(key_absmax, std::abs(spread[j]));
          value_absmax = std::max(value_absmax, std::abs(values[head * head_dim + j]));
        }
        EXPECT_NEAR(cache.view().key_scales[cache.Row(head, token)], key_absmax / 127,
                    1e-6 * key_absmax / 127);
        EXPECT_FLOAT_EQ(cache.view().value_scales[cache.Row(head, token)], value_absmax / 127);
        for (size_t j = 0; j < head_dim; ++j) {
          const size_t at = head * head_dim + j;
          ASSERT_NEAR(cache.Key(head, token, j), spread[j], key_absmax / 253) << head_dim;
          ASSERT_NEAR(cache.Value(head, token, j), values[at], value_absmax / 253) << head_dim;
        }
      }
    }
  }
}

TEST(KvCacheViewTest, OffsetsAreSubtractedFromKeysBeforeTheyAreRounded) {
  constexpr size_t kTokens = 200;
  for (const size_t head_dim : {2, 20, 64, 130}) {
    for (const size_t rotary_dim : {size_t{0}, head_dim / 4 * 2}) {
      TestKvCache cache(KvType::kInt8, 2, head_dim, kTokens);
      const std::vector<float> middles = RandomFloats(2 * head_dim, 5, 100.0f);
      const std::vector<float> slopes = RandomFloats(2 * head_dim, 8, 3.0f);
      const RopeRows rope(0, kTokens, rotary_dim == 0 ? head_dim : rotary_dim);
      const TurnedPairs turned(2, rotary_dim == 0 ? head_dim : rotary_dim);
      cache.set_key_offsets({.middles = middles.data(),
                             .slopes = slopes.data(),
                             .cosines = rope.cosines.data(),
                             .sines = rope.sines.data(),
                             .turned_pairs = turned.pairs.data(),
                             .row_turns = turned.row_turns.data()},
                            rotary_dim);
      const std::vector<float> values = RandomFloats(2 * head_dim, 6);
      const std::vector<float> differences = RandomFloats(2 * head_dim, 7);
      // On three pages, the last one of which is the fourth.
      for (const size_t token : {0, 100, 199}) {
        std::vector<float> keys = differences;
        for (size_t at = 0; at < keys.size(); ++at) {
          const std::vector<double> offset = OffsetOf(cache.view(), at / head_dim, token);
          keys[at] += static_cast<float>(offset[at % head_dim]);
        }
        cache.Store(token, keys.data(), values.data());
        for (size_t head = 0; head < 2; ++head) {
          const float* const difference = differences.data() + head * head_dim;
          const std::vector<double> spread =
              reference::HadamardTransform({difference, difference + head_dim});
          for (size_t j = 0; j < head_dim; ++j) {
            // Half a step of int8 if the largest is 5.
            ASSERT_NEAR(cache.Key(head, token, j), spread[j], 0.02f);
            ASSERT_NEAR(cache.Value(head, token, j), values[head * head_dim + j], 0.02f);
          }
        }
      }
    }
  }
}

// A few channels that are much larger than the others cost the others few steps.
TEST(KvCacheViewTest, LargeChannelsLeaveStepsForTheOthers) {
  constexpr size_t kHeadDim = 64;
  TestKvCache cache(KvType::kInt8, 1, kHeadDim, 1);
  std::vector<float> row = RandomFloats(kHeadDim, 9);
  row[7] = 50.0f;
  row[39] = -60.0f;
  cache.Store(0, row.data(), row.data());
  const std::vector<double> key = cache.KeyRow(0, 0);
  double key_error = 0, value_error = 0;
  for (size_t j = 0; j < kHeadDim; ++j) {
    key_error += std::pow(key[j] - row[j], 2);
    value_error += std::pow(cache.Value(0, 0, j) - row[j], 2);
  }
  EXPECT_LT(key_error, value_error / 4);
}

TEST(KvCacheViewTest, Int8ExtremesAndZerosAreExact) {
  TestKvCache cache(KvType::kInt8, 1, 4, 3);
  const std::vector<float> extremes = {-12.7f, 12.7f, 0.1f, 0.0f};
  const std::vector<float> zeros(4, 0.0f);
  cache.Store(0, zeros.data(), extremes.data());
  const auto* bytes = static_cast<const int8_t*>(cache.view().values) + cache.Row(0, 0) * 4;
  EXPECT_EQ(bytes[0], -127);
  EXPECT_EQ(bytes[1], 127);
  EXPECT_EQ(bytes[2], 1);
  EXPECT_EQ(bytes[3], 0);
  // Too small for a scale: zeros, and no infinity from dividing by it.
  const std::vector<float> tiny(4, 1e-40f);
  cache.Store(1, tiny.data(), tiny.data());
  for (size_t j = 0; j < 4; ++j) {
    EXPECT_EQ(cache.Key(0, 0, j), 0.0f);
    EXPECT_EQ(cache.Key(0, 1, j), 0.0f);
    EXPECT_EQ(cache.Value(0, 1, j), 0.0f);
  }
}

}  // namespace
}  // namespace cria::ops
