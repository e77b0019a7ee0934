#pragma once

#include <filesystem>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "reference/reference_model.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "weights/ggml_reference.h"

namespace cria::support {

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
    std::string data;
    tensor.values.clear();
    for (size_t i = 0; i < tensor.shape[0] * tensor.shape[1] / block.elements; ++i) {
      std::string bytes(block.bytes, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      for (const size_t scale : block.scales) bytes[scale + 1] = scale_byte;
      data += bytes;
      std::ranges::copy(NaiveGgml(bytes).Values(type), std::back_inserter(tensor.values));
    }
    writer.AddTensor(GgmlName(name), tensor.shape, block.number, data);
  }
  WriteFile(path, writer.File());
}

}  // namespace cria::support
