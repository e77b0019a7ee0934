#include "support/llama2c_writer.h"

#include <cstdint>
#include <format>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/interleaved_rows.h"

namespace cria::support {
namespace {

using reference::ReferenceModel;
using reference::ReferenceTensor;

template <typename T>
void Append(T value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void AppendFloats(const std::vector<float>& values, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

class Writer {
 public:
  explicit Writer(const ReferenceModel& model) : model_(model) {}

  std::string bytes;

  void Add(const std::string& name) {
    const ReferenceTensor& tensor = model_.tensors.at(name);
    const bool is_rotary = name.contains("q_proj") || name.contains("k_proj");
    AppendFloats(is_rotary ? InterleaveRows(tensor, model_.config.head_dim) : tensor.values, bytes);
  }
  void AddLayers(const char* module) {
    for (size_t layer = 0; layer < model_.config.num_hidden_layers; ++layer) {
      Add(std::format("model.layers.{}.{}.weight", layer, module));
    }
  }

 private:
  const ReferenceModel& model_;
};

}  // namespace

void WriteLlama2c(const ReferenceModel& model, int version, const std::filesystem::path& path) {
  const reference::ReferenceConfig& c = model.config;
  Writer writer(model);
  const auto vocab_size = static_cast<int32_t>(c.vocab_size);
  if (version != 0) {
    Append(uint32_t{0x616b3432}, writer.bytes);
    Append(int32_t{version}, writer.bytes);
  }
  for (const size_t size : {c.hidden_size, c.intermediate_size, c.num_hidden_layers,
                            c.num_attention_heads, c.num_key_value_heads}) {
    Append(static_cast<int32_t>(size), writer.bytes);
  }
  Append(version == 0 && !c.tie_word_embeddings ? -vocab_size : vocab_size, writer.bytes);
  Append(static_cast<int32_t>(c.max_position_embeddings), writer.bytes);
  if (version == 0) {
    writer.Add("model.embed_tokens.weight");
    writer.AddLayers("input_layernorm");
  } else {
    Append(uint8_t{c.tie_word_embeddings}, writer.bytes);
    writer.bytes.resize(256, '\0');
    writer.AddLayers("input_layernorm");
    writer.AddLayers("post_attention_layernorm");
    writer.Add("model.norm.weight");
    writer.Add("model.embed_tokens.weight");
  }
  for (const char* module : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    writer.AddLayers(("self_attn." + std::string(module)).c_str());
  }
  if (version == 0) writer.AddLayers("post_attention_layernorm");
  for (const char* module : {"gate_proj", "down_proj", "up_proj"}) {
    writer.AddLayers(("mlp." + std::string(module)).c_str());
  }
  if (version == 0) {
    writer.Add("model.norm.weight");
    // Cosines and sines of every position, which readers may ignore.
    AppendFloats(std::vector<float>(c.max_position_embeddings * c.head_dim, 0.5f), writer.bytes);
  }
  if (!c.tie_word_embeddings) writer.Add("lm_head.weight");
  WriteFile(path, writer.bytes);
}

void WriteLlama2cTokenizer(const std::filesystem::path& path) {
  std::string bytes;
  Append(uint32_t{8}, bytes);
  const auto add = [&](float score, const std::string& text) {
    Append(score, bytes);
    Append(static_cast<uint32_t>(text.size()), bytes);
    bytes += text;
  };
  add(0.0f, "<unk>");
  add(0.0f, "\n<s>\n");
  add(0.0f, "\n</s>\n");
  for (int byte = 0; byte < 256; ++byte) add(0.0f, std::format("<0x{:02X}>", byte));
  float score = 0.0f;
  for (const char* word : {" t", "he", " the", "in"}) add(score -= 1.0f, word);
  add(score -= 1.0f, " ");
  for (char letter = 'a'; letter <= 'z'; ++letter) add(score -= 1.0f, std::string(1, letter));
  for (char letter = 'A'; letter <= 'J'; ++letter) add(score -= 1.0f, std::string(1, letter));
  WriteFile(path, bytes);
}

}  // namespace cria::support
