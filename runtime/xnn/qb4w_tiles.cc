#include "xnn/qb4w_tiles.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/numeric.h"
#include "core/platform.h"
#include "ops/qb4w_product.h"
#include "xnn/linear.h"
#include "xnn/packing.h"

namespace cria::xnn {
namespace {

// Not a multiple of the tile's 8 outputs.
constexpr size_t kOutputs = 12;

template <typename T>
T Read(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

// 0 to 15; neighbours differ.
uint32_t Nibble(size_t output, size_t input) {
  return static_cast<uint32_t>(output * 4099 + input) * 2654435761u >> 28;
}

// A power of two, so that sums are exact.
float Scale(size_t output, size_t block) { return (output + block) % 2 == 0 ? 0.5f : 2.0f; }

bool IsOutputInTiles(const ops::Qb4wTiles8c8& tiles, const std::byte* packed, size_t output) {
  const size_t column = output % tiles.kOutputs;
  const std::byte* tile = packed + output / tiles.kOutputs * tiles.tile_bytes();
  const std::byte* blocks = tile + tiles.kOutputs * sizeof(float);
  float sum = 0.0f;
  for (size_t input = 0; input < tiles.input_channels; ++input) {
    const size_t block = input / tiles.block_size;
    const size_t group = input % tiles.block_size / 16;
    const std::byte* weights = blocks + block * tiles.block_bytes();
    const auto pair = Read<uint8_t>(weights + (group * tiles.kOutputs + column) * 8 + input % 8);
    const uint32_t weight = (input % 16 < 8 ? pair : pair >> 4) & 15;
    // In two's complement, the upper bit of a negative number is set.
    if (weight != (Nibble(output, input) ^ kQb4wZeroPoint)) return false;
    const std::byte* scales = weights + tiles.block_size / 2 * tiles.kOutputs;
    const float scale = Scale(output, block);
    if (Bf16ToFloat(Read<uint16_t>(scales + column * sizeof(uint16_t))) != scale / 16) return false;
    sum += scale * (static_cast<float>(Nibble(output, input)) - kQb4wZeroPoint);
  }
  const std::byte* bias = tile + tiles.tile_bytes() - tiles.kOutputs * sizeof(float);
  return Read<float>(tile + column * sizeof(float)) == -sum &&
         Read<float>(bias + column * sizeof(float)) == 0.0f;
}

}  // namespace

Result<bool> PacksQb4wAsTiles8c8(size_t block_size) {
  const size_t inputs = 2 * block_size;
  const TensorLayout layout = {.scheme = Scheme::kQb4w,
                               .output_channels = kOutputs,
                               .input_channels = inputs,
                               .padded_input_channels = inputs,
                               .block_size = block_size};
  std::vector<std::byte> data(layout.data_bytes() + kReadableSlackBytes);
  std::vector<uint16_t> scales;
  for (size_t output = 0; output < kOutputs; ++output) {
    for (size_t input = 0; input < inputs; ++input) {
      data[(output * inputs + input) / 2] |=
          static_cast<std::byte>(Nibble(output, input) << (input % 2 * 4));
    }
    for (const size_t block : {0, 1}) scales.push_back(FloatToBf16(Scale(output, block)));
  }

  const ops::Qb4wTiles8c8 tiles = {.input_channels = inputs, .block_size = block_size};
  CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, PackedBytes(layout));
  if (bytes != 2 * tiles.tile_bytes()) return false;
  CRIA_ASSIGN_OR_RETURN(const platform::PageBlock packed, platform::PageBlock::Allocate(bytes));
  const LinearWeights weights = {.layout = layout,
                                 .data = std::span(data).first(layout.data_bytes()),
                                 .scales = std::as_bytes(std::span(scales))};
  CRIA_RETURN_IF_ERROR(Pack(weights, packed.bytes()));
  for (size_t output = 0; output < kOutputs; ++output) {
    if (!IsOutputInTiles(tiles, packed.bytes().data(), output)) return false;
  }
  return true;
}

}  // namespace cria::xnn
