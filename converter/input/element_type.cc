#include "converter/input/element_type.h"

#include <array>
#include <bit>
#include <cstring>

#include "core/numeric.h"
#include "weights/block_numbers.h"

namespace cria {
namespace {

// Threads of a pool flush denormals to zero, so no computation here may have any. A half is never
// denormal as a float.

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

float Half(const uint8_t* bytes) { return F16ToFloat(Load<uint16_t>(bytes)); }
float F32(const uint8_t* bytes) { return std::bit_cast<float>(Load<uint32_t>(bytes)); }
float Byte(const uint8_t* bytes) { return *bytes; }
float Bf16(const uint8_t* bytes) { return Bf16ToFloat(Load<uint16_t>(bytes)); }

// Instantiated for each type, so that compilers vectorize it.
template <size_t kBytes, float (*kConvert)(const uint8_t*)>
void Convert(const uint8_t* raw, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = kConvert(raw + i * kBytes);
}

// A type of blocks has only its scheme. One of single numbers has the other fields.
struct TypeRow {
  std::string_view name = {};
  Scheme scheme = Scheme::kF32;
  size_t bytes = 0;
  void (*convert)(const uint8_t* raw, std::span<float> values) = nullptr;
};

constexpr std::array kTypes = {
    TypeRow{.name = "F32", .bytes = 4, .convert = Convert<4, F32>},
    TypeRow{.name = "F16", .bytes = 2, .convert = Convert<2, Half>},
    TypeRow{.name = "BF16", .bytes = 2, .convert = Convert<2, Bf16>},
    TypeRow{.name = "U8", .bytes = 1, .convert = Convert<1, Byte>},
    TypeRow{.scheme = Scheme::kQ4_0},
    TypeRow{.scheme = Scheme::kQ4_1},
    TypeRow{.scheme = Scheme::kQ5_0},
    TypeRow{.scheme = Scheme::kQ5_1},
    TypeRow{.scheme = Scheme::kQ8_0},
    TypeRow{.scheme = Scheme::kQ2K},
    TypeRow{.scheme = Scheme::kQ3K},
    TypeRow{.scheme = Scheme::kQ4K},
    TypeRow{.scheme = Scheme::kQ5K},
    TypeRow{.scheme = Scheme::kQ6K},
    TypeRow{.scheme = Scheme::kIq4Nl},
    TypeRow{.scheme = Scheme::kIq4Xs},
    TypeRow{.scheme = Scheme::kMxfp4},
};
static_assert(kTypes.size() == kNumElementTypes);

const TypeRow& RowOf(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

const BlockFormat* BlockFormatOf(ElementType type) { return FindBlockFormat(RowOf(type).scheme); }

StoredBlock BlockOf(ElementType type) {
  const BlockFormat* const format = BlockFormatOf(type);
  if (format == nullptr) return {1, RowOf(type).bytes};
  return {format->inputs, format->bytes};
}

std::string_view ElementTypeName(ElementType type) {
  const BlockFormat* const format = BlockFormatOf(type);
  return format == nullptr ? RowOf(type).name : format->name;
}

void Dequantize(ElementType type, const std::byte* raw, std::span<float> destination) {
  if (const BlockFormat* const format = BlockFormatOf(type); format != nullptr) {
    return DequantizeBlocks(*format, raw, destination);
  }
  RowOf(type).convert(reinterpret_cast<const uint8_t*>(raw), destination);
}

}  // namespace cria
