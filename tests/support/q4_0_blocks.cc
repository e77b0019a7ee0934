#include "support/q4_0_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace cria::support {
namespace {

constexpr size_t kScaleBytes = 2;
constexpr size_t kBlockBytes = kScaleBytes + kQ4_0Weights / 2;

void EncodeBlock(std::span<const float> values, char* block) {
  const float largest = *std::ranges::max_element(
      values, [](float one, float other) { return std::abs(one) < std::abs(other); });
  const auto scale = static_cast<_Float16>(largest / -8.0f);
  std::memcpy(block, &scale, kScaleBytes);
  const float inverse = scale == 0 ? 0.0f : 1.0f / static_cast<float>(scale);
  const auto code = [&](size_t i) {
    return static_cast<unsigned>(std::clamp(values[i] * inverse + 8.5f, 0.0f, 15.0f));
  };
  // The first half of the weights is in the lower four bits.
  for (size_t i = 0; i < kQ4_0Weights / 2; ++i) {
    block[kScaleBytes + i] = static_cast<char>(code(i) | code(i + kQ4_0Weights / 2) << 4);
  }
}

}  // namespace

std::string EncodeQ4_0(std::span<const float> values) {
  if (values.size() % kQ4_0Weights != 0) {
    throw std::runtime_error("Q4_0 needs whole blocks of 32 weights");
  }
  std::string bytes(values.size() / kQ4_0Weights * kBlockBytes, '\0');
  char* block = bytes.data();
  for (size_t i = 0; i < values.size(); i += kQ4_0Weights, block += kBlockBytes) {
    EncodeBlock(values.subspan(i, kQ4_0Weights), block);
  }
  return bytes;
}

}  // namespace cria::support
