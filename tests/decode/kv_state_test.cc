// What needs no decoder; tests/llm/session_file_test.cc has the rest.

#include "decode/kv_state.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <vector>

#include "core/format.h"

namespace cria {
namespace {

// Whether numbers are finite that are 1, except for one of them.
template <typename T>
bool AreFiniteWith(T one, T other, size_t count, size_t at, KvType type, bool in_second) {
  std::vector<T> numbers[2] = {std::vector<T>(count, one), std::vector<T>(count, one)};
  numbers[in_second ? 1 : 0][at] = other;
  const std::span<std::byte> rows[2] = {std::as_writable_bytes(std::span(numbers[0])),
                                        std::as_writable_bytes(std::span(numbers[1]))};
  std::vector<std::byte> codes(count, std::byte{0xFF});
  if (type == KvType::kInt8) return AreFinite({codes, codes, rows[0], rows[1]}, type);
  return AreFinite({rows[0], rows[1]}, type);
}

template <typename T>
void ExpectFoundAnywhere(T one, const std::vector<T>& finite, const std::vector<T>& not_finite,
                         KvType type) {
  for (const size_t count : {1, 2, 3, 15, 16, 17, 31, 32, 33, 100}) {
    for (size_t at = 0; at < count; ++at) {
      SCOPED_TRACE(Format("{} of {}", at, count));
      for (const T number : finite) {
        ASSERT_TRUE(AreFiniteWith(one, number, count, at, type, false));
        ASSERT_TRUE(AreFiniteWith(one, number, count, at, type, true));
      }
      for (const T number : not_finite) {
        ASSERT_FALSE(AreFiniteWith(one, number, count, at, type, false));
        ASSERT_FALSE(AreFiniteWith(one, number, count, at, type, true));
      }
    }
  }
}

TEST(KvStateTest, NumbersThatAreNotFiniteAreFoundAnywhere) {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> finite = {
      0.0f, -0.0f, Limits::max(), Limits::lowest(), Limits::denorm_min(), -1.0f};
  const std::vector<float> not_finite = {Limits::infinity(), -Limits::infinity(),
                                         Limits::quiet_NaN(), -Limits::quiet_NaN(),
                                         std::bit_cast<float>(0x7F800001)};
  ExpectFoundAnywhere(1.0f, finite, not_finite, KvType::kF32);
  ExpectFoundAnywhere(1.0f, finite, not_finite, KvType::kInt8);
  ExpectFoundAnywhere<uint16_t>(0x3C00, {0x0000, 0x8000, 0x7BFF, 0xFBFF, 0x0001, 0x83FF},
                                {0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF}, KvType::kF16);
  EXPECT_TRUE(AreFinite({}, KvType::kF32));
}

TEST(KvStateTest, TheFingerprintHasWhatChangesAttention) {
  ModelConfig config = {.head_dim = 16, .max_position_embeddings = 100};
  config.layer_kinds = {{.rope_theta = 10000.0f}};
  const uint64_t plain = AttentionFingerprint(config, 200);
  EXPECT_EQ(AttentionFingerprint(config, 50), plain);
  ModelConfig window = config;
  window.layer_kinds[0].sliding_window = 12;
  EXPECT_NE(AttentionFingerprint(window, 200), plain);
  ModelConfig theta = config;
  theta.layer_kinds[0].rope_theta = 500000.0f;
  EXPECT_NE(AttentionFingerprint(theta, 200), plain);
  ModelConfig dynamic = config;
  dynamic.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kDynamic, .factor = 4.0f};
  EXPECT_EQ(AttentionFingerprint(dynamic, 100), plain);
  EXPECT_NE(AttentionFingerprint(dynamic, 200), plain);
  EXPECT_NE(AttentionFingerprint(dynamic, 200), AttentionFingerprint(dynamic, 201));
}

}  // namespace
}  // namespace cria
