#include "converter/test_checkpoint.h"

#include <cmath>

#include "support/files.h"

namespace cria::support {
namespace {

uint64_t Count(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  return count;
}

}  // namespace

void WriteSafetensors(const std::filesystem::path& path, std::string_view header,
                      std::string_view data) {
  const uint64_t length = header.size();
  std::string content(reinterpret_cast<const char*>(&length), sizeof length);
  content += header;
  content += data;
  WriteFile(path, content);
}

void WriteSafetensors(const std::filesystem::path& path, const TestTensors& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.values.data()),
                tensor.values.size() * sizeof(float));
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  WriteSafetensors(path, header.dump(), data);
}

nlohmann::json TinyConfig() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 8},
          {"intermediate_size", 20},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"vocab_size", 16},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", true}};
}

TestTensors TinyTensors(bool is_tied) {
  std::map<std::string, std::vector<uint64_t>> shapes = {{"model.embed_tokens.weight", {16, 8}},
                                                         {"model.norm.weight", {8}}};
  if (!is_tied) shapes["lm_head.weight"] = {16, 8};
  for (const std::string prefix : {"model.layers.0.", "model.layers.1."}) {
    shapes[prefix + "input_layernorm.weight"] = {8};
    shapes[prefix + "post_attention_layernorm.weight"] = {8};
    shapes[prefix + "self_attn.q_proj.weight"] = {8, 8};
    shapes[prefix + "self_attn.k_proj.weight"] = {4, 8};
    shapes[prefix + "self_attn.v_proj.weight"] = {4, 8};
    shapes[prefix + "self_attn.o_proj.weight"] = {8, 8};
    shapes[prefix + "mlp.gate_proj.weight"] = {20, 8};
    shapes[prefix + "mlp.up_proj.weight"] = {20, 8};
    shapes[prefix + "mlp.down_proj.weight"] = {8, 20};
  }
  TestTensors tensors;
  float phase = 0.0f;
  for (const auto& [name, shape] : shapes) {
    std::vector<float> values(Count(shape));
    for (float& value : values) value = std::sin(phase += 1.3f);
    tensors[name] = {shape, std::move(values)};
  }
  return tensors;
}

void WriteTinyCheckpoint(const std::filesystem::path& folder, const nlohmann::json& config,
                         const TestTensors& tensors) {
  WriteFile(folder / "config.json", config.dump());
  WriteSafetensors(folder / "model.safetensors", tensors);
}

}  // namespace cria::support
