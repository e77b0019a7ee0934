#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "reference/reference_model.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/tiny_checkpoint.h"
#include "weights/block_format.h"
#include "weights/ggml_reference.h"
#include "weights/random_blocks.h"

namespace cria::support {

// Like SpecGqa, in a shape that every block format fits.
inline CheckpointSpec SpecOfBlocks() {
  CheckpointSpec spec = SpecGqa();
  spec.config.hidden_size = 256;
  spec.config.intermediate_size = 512;
  spec.config.head_dim = 64;
  return spec;
}

// What the blocks stand for.
inline std::vector<float> ValuesOf(const BlockFormat& format,
                                   const std::vector<std::byte>& blocks) {
  const std::string data(reinterpret_cast<const char*>(blocks.data()), blocks.size());
  std::vector<float> values;
  for (size_t at = 0; at < data.size(); at += format.bytes) {
    std::ranges::copy(NaiveGgml(data.substr(at, format.bytes)).Values(format.name),
                      std::back_inserter(values));
  }
  return values;
}

// Random blocks that stand for weights as large as trained ones in every format: their root mean
// square is around 0.03. What a code and the scales inside a block stand for differs between
// formats by a factor of 500.
inline std::vector<std::byte> BlocksOfWeights(const BlockFormat& format, size_t num_blocks,
                                              std::mt19937& random) {
  constexpr float kSize = 0.03F;
  constexpr uint16_t kOne = 0x3c00;
  const std::vector<float> of_scale_one =
      ValuesOf(format, RandomBlocks(format, 16, random, [](std::mt19937&) { return kOne; }));
  const float squares =
      std::transform_reduce(of_scale_one.begin(), of_scale_one.end(), of_scale_one.begin(), 0.0F);
  const int exponent = std::ilogb(kSize / std::sqrt(squares / float(of_scale_one.size())));
  const int biased = std::max(exponent + 15, 0);
  return RandomBlocks(format, num_blocks, random, [biased](std::mt19937& numbers) {
    return static_cast<uint16_t>(numbers() % 2 << 15 | biased << 10 | numbers() % 1024);
  });
}

// Writes a GGUF file of `model` whose matrices are random blocks of the types that `type_of`
// returns for their names; everything else is f32. Sets the matrices of `model` to what the blocks
// stand for, with interleaved rows where the file has them.
inline void WriteBlockGguf(const std::filesystem::path& path,
                           const std::function<std::string_view(const std::string& name)>& type_of,
                           reference::ReferenceModel& model) {
  std::mt19937 random(3);
  GgufWriter writer;
  AddModelMetadata(model, ChatTemplateText::kNone, writer);
  for (auto& [name, tensor] : model.tensors) {
    const std::string_view type = tensor.shape.size() == 1 ? "" : type_of(name);
    if (type.empty()) {
      AddModelTensor(model, name, StorageType::kF32, writer);
      continue;
    }
    const GgmlBlock& block = *std::ranges::find(GgmlBlocks(), type, &GgmlBlock::name);
    const BlockFormat& format = *std::ranges::find(kBlockFormats, type, &BlockFormat::name);
    const size_t elements = tensor.shape[0] * tensor.shape[1];
    const std::vector<std::byte> blocks = BlocksOfWeights(format, elements / format.inputs, random);
    tensor.values = ValuesOf(format, blocks);
    const std::string data(reinterpret_cast<const char*>(blocks.data()), blocks.size());
    writer.AddTensor(GgmlName(name), tensor.shape, block.number, data);
  }
  WriteFile(path, writer.File());
}

}  // namespace cria::support
