#include "ranks/wire_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/numeric.h"
#include "ops/vector.h"

namespace cria::ranks {
namespace {

using Block = std::array<float, kWireBlockValues>;

constexpr size_t kScaleBytes = sizeof(uint16_t);
constexpr float kMaxInt8 = 127.0f;
// A block's largest number in f16 is from 2^14 up to 2^15.
constexpr int kF16Exponent = 14;
// The scales are normal numbers, and so is one divided by them.
constexpr int kMinExponent = -126;

size_t NumberBytes(WireType type) {
  switch (type) {
    case WireType::kF32:
      return sizeof(float);
    case WireType::kF16:
      return sizeof(uint16_t);
    case WireType::kInt8:
      return sizeof(int8_t);
  }
  return 0;
}

// The largest absolute value; NaN if a value is not finite.
float LargestOf(std::span<const float> values) {
  float largest = 0.0f;
  bool is_finite = true;
  for (const float value : values) {
    const float size = std::abs(value);
    is_finite = is_finite && size <= std::numeric_limits<float>::max();
    largest = std::max(largest, size);
  }
  return is_finite ? largest : std::numeric_limits<float>::quiet_NaN();
}

float ScaleOfF16(float largest) {
  if (!(largest > 0.0f)) return 1.0f;
  return std::ldexp(1.0f, std::max(std::ilogb(largest) - kF16Exponent, kMinExponent));
}

void WriteF16(std::span<const float> values, std::byte* bytes) {
  const float scale = ScaleOfF16(LargestOf(values));
  const uint16_t stored = FloatToBf16(scale);
  std::memcpy(bytes, &stored, kScaleBytes);
  Block scaled;
  for (size_t i = 0; i < values.size(); ++i) scaled[i] = values[i] / scale;
  std::array<uint16_t, kWireBlockValues> numbers;
  ops::ToF16(scaled.data(), values.size(), numbers.data());
  std::memcpy(bytes + kScaleBytes, numbers.data(), values.size() * sizeof(uint16_t));
}

void WriteInt8(std::span<const float> values, std::byte* bytes) {
  const uint16_t stored = FloatToBf16(LargestOf(values) / kMaxInt8);
  std::memcpy(bytes, &stored, kScaleBytes);
  const float scale = Bf16ToFloat(stored);
  for (size_t i = 0; i < values.size(); ++i) {
    // The scale may have been rounded down. If it is 0 or NaN, the number does not matter.
    const float number =
        scale > 0.0f ? std::clamp(std::nearbyint(values[i] / scale), -kMaxInt8, kMaxInt8) : 0.0f;
    bytes[kScaleBytes + i] = static_cast<std::byte>(static_cast<int8_t>(number));
  }
}

void ReadBlock(const std::byte* bytes, WireType type, std::span<float> values) {
  uint16_t stored;
  std::memcpy(&stored, bytes, kScaleBytes);
  const float scale = Bf16ToFloat(stored);
  bytes += kScaleBytes;
  if (type == WireType::kF16) {
    std::array<uint16_t, kWireBlockValues> numbers;
    std::memcpy(numbers.data(), bytes, values.size() * sizeof(uint16_t));
    ops::FromF16(numbers.data(), values.size(), values.data());
    for (float& value : values) value *= scale;
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<int8_t>(bytes[i])) * scale;
    }
  }
}

// Calls `task(bytes, values)` for each block.
template <typename Byte, typename Float, typename Task>
void ForEachBlock(std::span<Byte> bytes, WireType type, std::span<Float> values, const Task& task) {
  const size_t block_bytes = WireBytes(kWireBlockValues, type);
  for (size_t first = 0, offset = 0; first < values.size();
       first += kWireBlockValues, offset += block_bytes) {
    task(bytes.data() + offset,
         values.subspan(first, std::min(kWireBlockValues, values.size() - first)));
  }
}

}  // namespace

uint64_t WireBytes(size_t num_values, WireType type) {
  const uint64_t scales =
      type == WireType::kF32 ? 0 : DivideRoundingUp(num_values, kWireBlockValues);
  return num_values * NumberBytes(type) + scales * kScaleBytes;
}

void ToWire(std::span<const float> values, WireType type, std::span<std::byte> bytes) {
  if (type == WireType::kF32) {
    std::ranges::copy(std::as_bytes(values), bytes.begin());
    return;
  }
  ForEachBlock(bytes, type, values, [type](std::byte* block, std::span<const float> numbers) {
    type == WireType::kF16 ? WriteF16(numbers, block) : WriteInt8(numbers, block);
  });
}

void FromWire(std::span<const std::byte> bytes, WireType type, std::span<float> values) {
  if (type == WireType::kF32) {
    std::memcpy(values.data(), bytes.data(), values.size_bytes());
    return;
  }
  ForEachBlock(bytes, type, values, [type](const std::byte* block, std::span<float> numbers) {
    ReadBlock(block, type, numbers);
  });
}

void AddFromWire(std::span<const std::byte> bytes, WireType type, std::span<float> values) {
  ForEachBlock(bytes, type, values, [type](const std::byte* block, std::span<float> sums) {
    Block added;
    const std::span numbers = std::span(added).first(sums.size());
    if (type == WireType::kF32) {
      std::memcpy(numbers.data(), block, numbers.size_bytes());
    } else {
      ReadBlock(block, type, numbers);
    }
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += numbers[i];
  });
}

}  // namespace cria::ranks
