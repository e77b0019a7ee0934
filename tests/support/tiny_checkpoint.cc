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
  if (tensor.name.ends_with(".bias")) {
    deviation = 0.3f;
  } else if (tensor.shape.size() == 1) {
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

// A tenth of the 1B model, with its vocabulary: the size of a model that makes drafts for it.
ReferenceConfig LlamaDraftConfig() {
  ReferenceConfig config = Llama32Config();
  config.hidden_size = 512;
  config.intermediate_size = 2048;
  config.num_hidden_layers = 8;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 2;
  config.head_dim = 64;
  return config;
}

ReferenceConfig Qwen25Config() {
  ReferenceConfig config;
  config.architecture = "Qwen2ForCausalLM";
  config.hidden_size = 896;
  config.intermediate_size = 4864;
  config.num_hidden_layers = 24;
  config.num_attention_heads = 14;
  config.num_key_value_heads = 2;
  config.head_dim = 64;
  config.vocab_size = 151936;
  config.max_position_embeddings = 32768;
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 1000000.0;
  config.tie_word_embeddings = true;
  config.qkv_bias = true;
  return config;
}

ReferenceConfig Qwen3Config() {
  ReferenceConfig config;
  config.architecture = "Qwen3ForCausalLM";
  config.hidden_size = 1024;
  config.intermediate_size = 3072;
  config.num_hidden_layers = 28;
  config.num_attention_heads = 16;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.vocab_size = 151936;
  config.max_position_embeddings = 40960;
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 1000000.0;
  config.tie_word_embeddings = true;
  config.qk_norm = true;
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

struct MeasuredShape {
  const char* name;
  ReferenceConfig (*make)();
};
constexpr MeasuredShape kMeasuredShapes[] = {
    {"llama-3.2-1b", Llama32Config},  {"llama-draft", LlamaDraftConfig},
    {"qwen2.5-0.5b", Qwen25Config},   {"qwen3-0.6b", Qwen3Config},
    {"stories15m", Stories15MConfig}, {"stories1m", Stories1MConfig}};

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

CheckpointSpec SpecDynamicRope() {
  ReferenceConfig config = TinyConfig();
  config.max_position_embeddings = 32;
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kDynamic, .factor = 4.0};
  return MakeSpec(config);
}

CheckpointSpec SpecYarnRope() {
  ReferenceConfig config = TinyConfig();
  // The first of eight pairs turns 5.1 times in 32 tokens, and the third half a time.
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kYarn,
                         .factor = 4.0,
                         .original_max_position_embeddings = 32,
                         .attention_factor = 1.25,
                         .beta_fast = 4.0,
                         .beta_slow = 0.25};
  return MakeSpec(config);
}

CheckpointSpec SpecBiases() {
  ReferenceConfig config = TinyConfig();
  config.qkv_bias = config.o_bias = config.mlp_bias = true;
  return MakeSpec(config);
}

CheckpointSpec SpecMistral() {
  ReferenceConfig config = TinyConfig();
  config.architecture = "MistralForCausalLM";
  config.head_dim = 24;
  config.sliding_window = 12;
  return MakeSpec(config);
}

CheckpointSpec SpecMinistral() {
  ReferenceConfig config = TinyConfig();
  config.architecture = "MinistralForCausalLM";
  config.num_hidden_layers = 4;
  config.layers.resize(4);
  config.layers[0].sliding_window = config.layers[2].sliding_window = 12;
  return MakeSpec(config);
}

CheckpointSpec SpecTwoRopes() {
  ReferenceConfig config = TinyConfig();
  config.architecture = "MinistralForCausalLM";
  config.num_hidden_layers = 3;
  config.layers.resize(3);
  config.layers[0].sliding_window = config.layers[1].sliding_window = 12;
  config.layers[2].rope_theta = 1000000.0;
  config.layers[2].rope_scaling = {.type = ReferenceRopeScaling::Type::kYarn,
                                   .factor = 4.0,
                                   .original_max_position_embeddings = 32,
                                   .attention_factor = 1.25,
                                   .beta_fast = 4.0,
                                   .beta_slow = 0.25};
  return MakeSpec(config);
}

CheckpointSpec SpecQwen2() {
  ReferenceConfig config = TinyConfig();
  config.architecture = "Qwen2ForCausalLM";
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 1000000.0;
  config.qkv_bias = true;
  config.tie_word_embeddings = true;
  return MakeSpec(config);
}

CheckpointSpec SpecQwen2Window() {
  CheckpointSpec spec = SpecQwen2();
  spec.config.sliding_window = 12;
  return spec;
}

CheckpointSpec SpecQwen3() {
  ReferenceConfig config = TinyConfig();
  config.architecture = "Qwen3ForCausalLM";
  config.head_dim = 32;
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 1000000.0;
  config.qk_norm = true;
  config.tie_word_embeddings = true;
  return MakeSpec(config);
}

CheckpointSpec SpecQwen3Biases() {
  CheckpointSpec spec = SpecQwen3();
  spec.config.qkv_bias = spec.config.o_bias = true;
  spec.config.tie_word_embeddings = false;
  return spec;
}

CheckpointSpec SpecQwen3Window() {
  CheckpointSpec spec = SpecQwen3();
  spec.config.layers.assign(2, spec.config.AttentionOf(0));
  spec.config.layers[1].sliding_window = 12;
  return spec;
}

CheckpointSpec SpecPadded() {
  ReferenceConfig config = TinyConfig();
  config.hidden_size = 80;
  config.intermediate_size = 172;
  return MakeSpec(config);
}

std::span<const NamedSpec> TinySpecs() {
  static constexpr NamedSpec kSpecs[] = {{"Mha", SpecMha},
                                         {"Gqa", SpecGqa},
                                         {"Mqa", SpecMqa},
                                         {"Tied", SpecTied},
                                         {"OddHeadDim", SpecOddHeadDim},
                                         {"LinearRope", SpecLinearRope},
                                         {"Llama3Rope", SpecLlama3Rope},
                                         {"DynamicRope", SpecDynamicRope},
                                         {"YarnRope", SpecYarnRope},
                                         {"Biases", SpecBiases},
                                         {"Mistral", SpecMistral},
                                         {"Ministral", SpecMinistral},
                                         {"TwoRopes", SpecTwoRopes},
                                         {"Qwen2", SpecQwen2},
                                         {"Qwen2Window", SpecQwen2Window},
                                         {"Qwen3", SpecQwen3},
                                         {"Qwen3Biases", SpecQwen3Biases},
                                         {"Qwen3Window", SpecQwen3Window},
                                         {"Padded", SpecPadded}};
  return kSpecs;
}

CheckpointSpec SpecNamed(std::string_view name) {
  CheckpointFormat format{.storage = StorageType::kBf16};
  if (name == "llama-3.2-1b" || name == "llama-draft") {
    format.num_special_tokens = 256;
    format.chat_template = ChatTemplateText::kLlama3;
  }
  for (const MeasuredShape& shape : kMeasuredShapes) {
    if (name == shape.name) return MakeSpec(shape.make(), format);
  }
  for (const NamedSpec& spec : TinySpecs()) {
    if (name == spec.name) return spec.make();
  }
  throw std::runtime_error("no shape is named " + std::string(name));
}

std::vector<std::string> SpecNames() {
  std::vector<std::string> names;
  for (const MeasuredShape& shape : kMeasuredShapes) names.emplace_back(shape.name);
  for (const NamedSpec& spec : TinySpecs()) names.emplace_back(spec.name);
  return names;
}

}  // namespace cria::support
