#include "support/tiny_checkpoint.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "support/random_values.h"

namespace cria::support {
namespace {

using reference::ReferenceConfig;
using reference::ReferenceModel;
using reference::ReferenceRopeScaling;

void FillTensor(const CheckpointSpec& spec, const TensorShape& tensor, size_t first,
                std::span<float> values) {
  FillNormal(SeedFor(spec.seed, tensor.name), first, values);
  float center = 0.0f;
  float deviation = 1.0f;
  if (tensor.shape.size() == 1) {
    center = 1.0f;
    deviation = 0.1f;
  } else if (tensor.name != "model.embed_tokens.weight" || spec.config.tie_word_embeddings) {
    deviation = 1.0f / std::sqrt(static_cast<float>(tensor.shape[1]));
  }
  for (float& value : values) value = center + deviation * value;
}

CheckpointSpec MakeSpec(const ReferenceConfig& config, const CheckpointFormat& format = {}) {
  CheckpointSpec spec{.config = config, .format = format};
  SetTokenIds(spec);
  return spec;
}

ReferenceConfig TinyConfig() {
  ReferenceConfig config;
  config.hidden_size = 64;
  config.intermediate_size = 160;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  config.vocab_size = 300;
  config.max_position_embeddings = 128;
  return config;
}

ReferenceConfig Llama32Config() {
  ReferenceConfig config;
  config.hidden_size = 2048;
  config.intermediate_size = 8192;
  config.num_hidden_layers = 16;
  config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.head_dim = 64;
  config.vocab_size = 128256;
  config.max_position_embeddings = 131072;
  config.rope_theta = 500000.0;
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kLlama3,
                         .factor = 32.0,
                         .low_freq_factor = 1.0,
                         .high_freq_factor = 4.0,
                         .original_max_position_embeddings = 8192};
  config.tie_word_embeddings = true;
  return config;
}

ReferenceConfig Stories15MConfig() {
  ReferenceConfig config;
  config.hidden_size = 288;
  config.intermediate_size = 768;
  config.num_hidden_layers = 6;
  config.num_attention_heads = 6;
  config.num_key_value_heads = 6;
  config.head_dim = 48;
  config.vocab_size = 32000;
  config.max_position_embeddings = 256;
  config.tie_word_embeddings = true;
  return config;
}

ReferenceConfig Stories1MConfig() {
  ReferenceConfig config;
  config.hidden_size = 128;
  config.intermediate_size = 352;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.head_dim = 16;
  config.vocab_size = 2048;
  config.max_position_embeddings = 512;
  config.tie_word_embeddings = true;
  return config;
}

}  // namespace

ReferenceModel MakeModel(const CheckpointSpec& spec) {
  ReferenceModel model;
  model.config = spec.config;
  for (const TensorShape& tensor : CheckpointTensors(spec.config)) {
    std::vector<float> values(tensor.elements());
    FillTensor(spec, tensor, 0, values);
    RoundTo(spec.format.storage, values);
    model.tensors[tensor.name] = {tensor.shape, std::move(values)};
  }
  return model;
}

void WriteRandomCheckpoint(const CheckpointSpec& spec, const std::filesystem::path& directory) {
  const auto source = [&spec](const TensorShape& tensor, size_t first, std::span<float> values) {
    FillTensor(spec, tensor, first, values);
  };
  WriteCheckpoint(spec.config, CheckpointTensors(spec.config), source, directory, spec.format);
}

void SetTokenIds(CheckpointSpec& spec) {
  const ByteLevelTokenizer tokenizer =
      MakeByteLevelTokenizer(spec.config.vocab_size, spec.format.num_special_tokens);
  spec.config.bos_token_id = tokenizer.SpecialTokenId("<|begin_of_text|>");
  spec.config.eos_token_ids = {tokenizer.SpecialTokenId("<|end_of_text|>"),
                               tokenizer.SpecialTokenId("<|eot_id|>"),
                               tokenizer.SpecialTokenId("<|im_end|>")};
}

CheckpointSpec SpecMha() {
  ReferenceConfig config = TinyConfig();
  config.num_key_value_heads = 4;
  return MakeSpec(config);
}

CheckpointSpec SpecGqa() { return MakeSpec(TinyConfig()); }

CheckpointSpec SpecMqa() {
  ReferenceConfig config = TinyConfig();
  config.num_key_value_heads = 1;
  return MakeSpec(config);
}

CheckpointSpec SpecTied() {
  ReferenceConfig config = TinyConfig();
  config.tie_word_embeddings = true;
  return MakeSpec(config);
}

CheckpointSpec SpecOddHeadDim() {
  ReferenceConfig config = TinyConfig();
  config.head_dim = 10;
  return MakeSpec(config);
}

CheckpointSpec SpecLinearRope() {
  ReferenceConfig config = TinyConfig();
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kLinear, .factor = 4.0};
  return MakeSpec(config);
}

CheckpointSpec SpecLlama3Rope() {
  ReferenceConfig config = TinyConfig();
  // Eight frequencies, whose wavelengths begin 6.3, 19.9 and 62.8: 5.1, 1.6 and 0.5 turns in 32.
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kLlama3,
                         .factor = 4.0,
                         .low_freq_factor = 1.0,
                         .high_freq_factor = 4.0,
                         .original_max_position_embeddings = 32};
  return MakeSpec(config);
}

CheckpointSpec SpecSlidingWindow() {
  ReferenceConfig config = TinyConfig();
  config.sliding_window = 12;
  return MakeSpec(config);
}

CheckpointSpec SpecPadded() {
  ReferenceConfig config = TinyConfig();
  config.hidden_size = 80;
  config.intermediate_size = 172;
  return MakeSpec(config);
}

CheckpointSpec SpecNamed(std::string_view name) {
  CheckpointFormat format{.storage = StorageType::kBf16};
  if (name == "stories1m") return MakeSpec(Stories1MConfig(), format);
  if (name == "stories15m") return MakeSpec(Stories15MConfig(), format);
  if (name == "llama-3.2-1b") {
    format.num_special_tokens = 256;
    format.chat_template = ChatTemplateText::kLlama3;
    return MakeSpec(Llama32Config(), format);
  }
  throw std::runtime_error("no shape is named " + std::string(name));
}

}  // namespace cria::support
