#include "converter/tensor_source.h"

#include <bit>
#include <cstring>
#include <format>

#include "core/numeric.h"

namespace cria {
namespace {

float FromF32(uint32_t bits) { return std::bit_cast<float>(bits); }

// Converts every element and returns whether all are finite. `kExponentMask` covers the exponent's
// bits, which are all ones in infinities and NaN. Raw elements may lie unaligned. Threads of a pool
// flush denormals to zero: `kConvert` must not compute with any.
template <typename Bits, Bits kExponentMask, float (*kConvert)(Bits)>
bool ConvertAll(const std::byte* raw, std::span<float> destination) {
  uint32_t not_finite = 0;
  for (size_t i = 0; i < destination.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, raw + i * sizeof bits, sizeof bits);
    not_finite |= static_cast<uint32_t>((bits & kExponentMask) == kExponentMask);
    destination[i] = kConvert(bits);
  }
  return not_finite == 0;
}

bool Convert(ElementType type, const std::byte* raw, std::span<float> destination) {
  switch (type) {
    case ElementType::kF32:
      return ConvertAll<uint32_t, 0x7f800000u, FromF32>(raw, destination);
    case ElementType::kF16:
      return ConvertAll<uint16_t, 0x7c00u, F16ToFloat>(raw, destination);
    case ElementType::kBf16:
      return ConvertAll<uint16_t, 0x7f80u, Bf16ToFloat>(raw, destination);
  }
  return false;
}

bool IsFinite(ElementType type, const std::byte* raw) {
  float value = 0.0f;
  return Convert(type, raw, {&value, 1});
}

std::string IndexText(const TensorSource& source, uint64_t element) {
  std::string text;
  for (size_t i = source.shape.size(); i-- > 0;) {
    text = std::format("{}{}{}", element % source.shape[i], text.empty() ? "" : ", ", text);
    element /= source.shape[i];
  }
  return text;
}

}  // namespace

size_t ElementBytes(ElementType type) { return type == ElementType::kF32 ? 4 : 2; }

uint64_t TensorSource::num_elements() const {
  uint64_t elements = 1;
  for (const uint64_t extent : shape) elements *= extent;
  return elements;
}

std::string TensorSource::ShapeText() const {
  std::string text;
  for (const uint64_t extent : shape) {
    text += std::format("{}{}", text.empty() ? "" : ", ", extent);
  }
  return "[" + text + "]";
}

Status TensorReader::Read(const TensorSource& source, uint64_t first,
                          std::span<float> destination) {
  const size_t element_bytes = ElementBytes(source.type);
  raw_.resize(destination.size() * element_bytes);
  CRIA_RETURN_IF_ERROR(source.file->ReadAt(source.offset + first * element_bytes, raw_));
  if (Convert(source.type, raw_.data(), destination)) return {};
  size_t i = 0;
  while (IsFinite(source.type, raw_.data() + i * element_bytes)) ++i;
  return Fail(
      ErrorCode::kInvalidFile,
      std::format("{}: tensor \"{}\" holds infinity or NaN at [{}]; the checkpoint is broken "
                  "or was trained to divergence",
                  source.file->path(), source.name, IndexText(source, first + i)));
}

}  // namespace cria
