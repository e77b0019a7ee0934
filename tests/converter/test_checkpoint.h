#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cria::support {

// Writes a safetensors file with any header and data, valid or broken.
void WriteSafetensors(const std::filesystem::path& path, std::string_view header,
                      std::string_view data);

struct TestTensor {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};
using TestTensors = std::map<std::string, TestTensor>;

// Writes a valid file in f32.
void WriteSafetensors(const std::filesystem::path& path, const TestTensors& tensors);

// config.json of a model with 2 layers, hidden size 8, 2 heads over 1 of keys and values, 20 inner
// channels and 16 pieces.
nlohmann::json TinyConfig();
// The tensors of this model, whose values all differ; a head is among them unless it is tied.
TestTensors TinyTensors(bool is_tied);
// Writes a folder with both, without a tokenizer.
void WriteTinyCheckpoint(const std::filesystem::path& folder, const nlohmann::json& config,
                         const TestTensors& tensors);

}  // namespace cria::support
