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

// The byte or nibble of a weight as it is stored; neighbours differ.
uint32_t Code(size_t output, size_t input, int bits) {
  return static_cast<uint32_t>(output * 4099 + input) * 2654435761u >> (32 - bits);
}

// A power of two, so that sums are exact.
float Scale(size_t output, size_t block) { return (output + block) % 2 == 0 ? 0.5f : 2.0f; }

bool IsInt4OutputInTile(const ops::PackedTiles& tiles, const std::byte* tile, size_t output) {
  const size_t column = output % tiles.outputs;
  const size_t k = tiles.group_inputs;
  float sum = 0.0f;
  for (size_t input = 0; input < tiles.input_channels; ++input) {
    const size_t block = input / tiles.block_size;
    const size_t pair = input % tiles.block_size / (2 * k);
    const std::byte* weights = tile + tiles.blocks_offset() + block * tiles.block_bytes();
    const auto byte = Read<uint8_t>(weights + (pair * tiles.outputs + column) * k + input % k);
    const uint32_t weight = (input % (2 * k) < k ? byte : byte >> 4) & 15;
    // In two's complement, the upper bit of a negative number is set.
    if (weight != (Code(output, input, 4) ^ kQb4wZeroPoint)) return false;
    const std::byte* scales = weights + tiles.scales_offset();
    const float scale = Scale(output, block);
    if (Bf16ToFloat(Read<uint16_t>(scales + column * sizeof(uint16_t))) != scale / 16) return false;
    sum += scale * (static_cast<float>(Code(output, input, 4)) - kQb4wZeroPoint);
  }
  return Read<float>(tile + column * sizeof(float)) == -sum;
}

bool IsInt8OutputInTile(const ops::PackedTiles& tiles, const std::byte* tile, size_t output) {
  const size_t column = output % tiles.outputs;
  const size_t k = tiles.group_inputs;
  const std::byte* weights = tile + tiles.blocks_offset();
  int32_t sum = 0;
  for (size_t input = 0; input < tiles.int8_bytes() / tiles.outputs; ++input) {
    const size_t place = (input / k * tiles.outputs + column) * k + input % k;
    const auto weight = Read<int8_t>(weights + place);
    const auto expected = static_cast<int8_t>(Code(output, input, 8));
    if (weight != (input < tiles.input_channels ? expected : 0)) return false;
    sum += weight;
  }
  const std::byte* scales = weights + tiles.int8_bytes();
  return Read<int32_t>(tile + column * sizeof(int32_t)) == -sum &&
         Read<float>(scales + column * sizeof(float)) == Scale(output, 0);
}

bool IsOutputInTiles(const ops::PackedTiles& tiles, const std::byte* packed, size_t output) {
  const std::byte* tile = packed + output / tiles.outputs * tiles.tile_bytes();
  const std::byte* biases = tile + tiles.tile_bytes() - tiles.outputs * sizeof(float);
  const bool is_in_tile = tiles.is_int8() ? IsInt8OutputInTile(tiles, tile, output)
                                          : IsInt4OutputInTile(tiles, tile, output);
  return is_in_tile && Read<float>(biases + output % tiles.outputs * sizeof(float)) == 0.0f;
}

// A matrix as a model file stores it.
struct Matrix {
  TensorLayout layout;
  std::vector<std::byte> data;
  std::vector<std::byte> scales;
};

template <typename T>
void Append(std::vector<std::byte>& bytes, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

Matrix MakeMatrix(const ops::PackedTiles& tiles, size_t outputs) {
  const size_t inputs = tiles.input_channels;
  Matrix matrix = {.layout = {.scheme = tiles.is_int8() ? Scheme::kQc8w : Scheme::kQb4w,
                              .output_channels = outputs,
                              .input_channels = inputs,
                              .padded_input_channels = inputs,
                              .block_size = tiles.block_size}};
  for (size_t output = 0; output < outputs; ++output) {
    for (size_t input = 0; input < inputs; ++input) {
      if (tiles.is_int8()) {
        Append(matrix.data, static_cast<uint8_t>(Code(output, input, 8)));
      } else if (input % 2 == 0) {
        const uint32_t pair = Code(output, input, 4) | Code(output, input + 1, 4) << 4;
        Append(matrix.data, static_cast<uint8_t>(pair));
      }
    }
    if (tiles.is_int8()) Append(matrix.scales, Scale(output, 0));
    if (tiles.is_int8()) continue;
    for (const size_t block : {0, 1}) Append(matrix.scales, FloatToBf16(Scale(output, block)));
  }
  matrix.data.resize(matrix.data.size() + kReadableSlackBytes);
  return matrix;
}

}  // namespace

Result<bool> PacksAs(const ops::PackedTiles& tiles_of_any_inputs) {
  ops::PackedTiles tiles = tiles_of_any_inputs;
  // int8 weights end within a group.
  tiles.input_channels = tiles.is_int8() ? 4 * tiles.group_inputs + 1 : 2 * tiles.block_size;
  // So many that the last tile is padded.
  const size_t outputs = tiles.outputs + tiles.outputs / 2;
  const Matrix matrix = MakeMatrix(tiles, outputs);
  CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, PackedBytes(matrix.layout));
  if (bytes != 2 * tiles.tile_bytes()) return false;
  CRIA_ASSIGN_OR_RETURN(const platform::PageBlock packed, platform::PageBlock::Allocate(bytes));
  const LinearWeights weights = {.layout = matrix.layout,
                                 .data = std::span(matrix.data).first(matrix.layout.data_bytes()),
                                 .scales = matrix.scales};
  CRIA_RETURN_IF_ERROR(Pack(weights, packed.bytes()));
  for (size_t output = 0; output < outputs; ++output) {
    if (!IsOutputInTiles(tiles, packed.bytes().data(), output)) return false;
  }
  return true;
}

}  // namespace cria::xnn
