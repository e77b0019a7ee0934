#include "xnn/tile_probe.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/numeric.h"
#include "core/platform.h"
#include "xnn/linear.h"
#include "xnn/packing.h"

namespace cria::xnn {
namespace {

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

bool IsOutputInTiles(const ops::PackedTiles& tiles, const std::byte* packed, size_t output) {
  const size_t column = output % tiles.outputs;
  const std::byte* tile = packed + output / tiles.outputs * tiles.tile_bytes();
  const size_t k = tiles.group_inputs;
  float sum = 0.0f;
  for (size_t input = 0; input < tiles.input_channels; ++input) {
    const size_t block = input / tiles.block_size;
    const size_t pair = input % tiles.block_size / (2 * k);
    const std::byte* weights = tile + tiles.blocks_offset() + block * tiles.block_bytes();
    const auto byte = Read<uint8_t>(weights + (pair * tiles.outputs + column) * k + input % k);
    const uint32_t weight = (input % (2 * k) < k ? byte : byte >> 4) & 15;
    // In two's complement, the upper bit of a negative number is set.
    if (weight != (Nibble(output, input) ^ kQb4wZeroPoint)) return false;
    const std::byte* scales = weights + tiles.scales_offset();
    const float scale = Scale(output, block);
    if (Bf16ToFloat(Read<uint16_t>(scales + column * sizeof(uint16_t))) != scale / 16) return false;
    sum += scale * (static_cast<float>(Nibble(output, input)) - kQb4wZeroPoint);
  }
  const std::byte* bias = tile + tiles.tile_bytes() - tiles.outputs * sizeof(float);
  return Read<float>(tile + column * sizeof(float)) == -sum &&
         Read<float>(bias + column * sizeof(float)) == 0.0f;
}

}  // namespace

Result<bool> PacksAs(const ops::PackedTiles& tiles_of_any_inputs) {
  ops::PackedTiles tiles = tiles_of_any_inputs;
  tiles.input_channels = 2 * tiles.block_size;
  const size_t inputs = tiles.input_channels;
  // So many that the last tile is padded.
  const size_t outputs = tiles.outputs + tiles.outputs / 2;
  const TensorLayout layout = {.scheme = Scheme::kQb4w,
                               .output_channels = outputs,
                               .input_channels = inputs,
                               .padded_input_channels = inputs,
                               .block_size = tiles.block_size};
  std::vector<std::byte> data(layout.data_bytes() + kReadableSlackBytes);
  std::vector<uint16_t> scales;
  for (size_t output = 0; output < outputs; ++output) {
    for (size_t input = 0; input < inputs; ++input) {
      data[(output * inputs + input) / 2] |=
          static_cast<std::byte>(Nibble(output, input) << (input % 2 * 4));
    }
    for (const size_t block : {0, 1}) scales.push_back(FloatToBf16(Scale(output, block)));
  }

  CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, PackedBytes(layout));
  if (bytes != 2 * tiles.tile_bytes()) return false;
  CRIA_ASSIGN_OR_RETURN(const platform::PageBlock packed, platform::PageBlock::Allocate(bytes));
  const LinearWeights weights = {.layout = layout,
                                 .data = std::span(data).first(layout.data_bytes()),
                                 .scales = std::as_bytes(std::span(scales))};
  CRIA_RETURN_IF_ERROR(Pack(weights, packed.bytes()));
  for (size_t output = 0; output < outputs; ++output) {
    if (!IsOutputInTiles(tiles, packed.bytes().data(), output)) return false;
  }
  return true;
}

}  // namespace cria::xnn
