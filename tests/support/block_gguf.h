#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
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

// Writes a GGUF file of `model` whose matrices are random blocks of the types that `type_of`
// returns for their names, with scales whose upper byte is this (by default, they are around 0.01);
// everything else is f32. Sets the matrices of `model` to what the blocks stand for, with
// interleaved rows where the file has them.
inline void WriteBlockGguf(const std::filesystem::path& path,
                           const std::function<std::string_view(const std::string& name)>& type_of,
                           reference::ReferenceModel& model, char scale_byte = '\x21') {
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
    const auto half = [scale_byte](std::mt19937& numbers) {
      return static_cast<uint16_t>(scale_byte << 8 | numbers() % 256);
    };
    const size_t elements = tensor.shape[0] * tensor.shape[1];
    const std::vector<std::byte> blocks =
        RandomBlocks(format, elements / format.inputs, random, half);
    const std::string data(reinterpret_cast<const char*>(blocks.data()), blocks.size());
    tensor.values.clear();
    for (size_t at = 0; at < data.size(); at += format.bytes) {
      std::ranges::copy(NaiveGgml(data.substr(at, format.bytes)).Values(type),
                        std::back_inserter(tensor.values));
    }
    writer.AddTensor(GgmlName(name), tensor.shape, block.number, data);
  }
  WriteFile(path, writer.File());
}

}  // namespace cria::support
