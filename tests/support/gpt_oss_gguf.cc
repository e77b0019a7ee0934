#include "support/gpt_oss_gguf.h"

#include <vector>

namespace cria::support {
namespace {

constexpr uint32_t kMxfp4 = 39;
constexpr size_t kBlockInputs = 32;

// The rows of all experts that are gates (0) or up (1), or all of them if there is one part.
struct Part {
  const char* ggml;
  size_t first;
  size_t num_parts;
};
std::vector<Part> PartsOf(const std::string& name) {
  if (name.starts_with("down_proj")) return {{"ffn_down_exps", 0, 1}};
  return {{"ffn_gate_exps", 0, 2}, {"ffn_up_exps", 1, 2}};
}

// [experts, outputs / num_parts, inputs] of [experts, inputs, outputs].
std::vector<float> Transposed(const reference::ReferenceTensor& tensor, const Part& part) {
  const size_t inputs = tensor.shape.at(1);
  const size_t outputs = tensor.shape.at(2);
  std::vector<float> values;
  values.reserve(tensor.values.size() / part.num_parts);
  for (size_t expert = 0; expert < tensor.shape.at(0); ++expert) {
    for (size_t row = part.first; row < outputs; row += part.num_parts) {
      for (size_t i = 0; i < inputs; ++i) {
        values.push_back(tensor.values.at((expert * inputs + i) * outputs + row));
      }
    }
  }
  return values;
}

// The blocks of such rows, with the codes of inputs i and i + 16 in byte i.
std::string GgmlBlocks(const reference::ReferenceTensor& blocks,
                       const reference::ReferenceTensor& scales, const Part& part) {
  const size_t row_blocks = blocks.shape.at(2);
  const size_t rows = blocks.shape.at(0) * blocks.shape.at(1);
  std::string data;
  for (size_t row = part.first; row < rows; row += part.num_parts) {
    for (size_t b = row * row_blocks; b < (row + 1) * row_blocks; ++b) {
      data += static_cast<char>(static_cast<uint8_t>(scales.values.at(b)));
      const auto code = [&](size_t input) {
        const auto pair = static_cast<int>(blocks.values.at(b * kBlockInputs / 2 + input / 2));
        return input % 2 == 0 ? pair % 16 : pair / 16;
      };
      for (size_t i = 0; i < kBlockInputs / 2; ++i) {
        data += static_cast<char>(code(i) + 16 * code(i + kBlockInputs / 2));
      }
    }
  }
  return data;
}

}  // namespace

void GptOssGguf::Add(const std::string& name, const std::string& block,
                     reference::ReferenceTensor tensor, GgufWriter& writer) {
  const size_t experts = tensor.shape.at(0);
  if (name.ends_with("_bias")) {
    const size_t outputs = tensor.shape.at(1);
    for (const Part& part : PartsOf(name)) {
      std::vector<float> values;
      values.reserve(tensor.values.size() / part.num_parts);
      for (size_t i = part.first; i < tensor.values.size(); i += part.num_parts) {
        values.push_back(tensor.values[i]);
      }
      writer.AddTensor(block + part.ggml + ".bias", {experts, outputs / part.num_parts},
                       StorageType::kF32, values);
    }
    return;
  }
  if (!name.ends_with("_blocks") && !name.ends_with("_scales")) {
    for (const Part& part : PartsOf(name)) {
      writer.AddTensor(block + part.ggml + ".weight",
                       {experts, tensor.shape.at(2) / part.num_parts, tensor.shape.at(1)},
                       StorageType::kF32, Transposed(tensor, part));
    }
    return;
  }
  const std::string stem = block + name.substr(0, name.rfind('_'));
  parts_.emplace(block + name, std::move(tensor));
  const auto blocks = parts_.find(stem + "_blocks");
  const auto scales = parts_.find(stem + "_scales");
  if (blocks == parts_.end() || scales == parts_.end()) return;
  const std::vector<size_t>& shape = blocks->second.shape;
  for (const Part& part : PartsOf(name)) {
    writer.AddTensor(block + part.ggml + ".weight",
                     {experts, shape.at(1) / part.num_parts, shape.at(2) * kBlockInputs}, kMxfp4,
                     GgmlBlocks(blocks->second, scales->second, part));
  }
}

}  // namespace cria::support
