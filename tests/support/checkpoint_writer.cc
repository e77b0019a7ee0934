#include "support/checkpoint_writer.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "support/files.h"

namespace cria::support {
namespace {

using nlohmann::json;
using reference::ReferenceAttention;
using reference::ReferenceConfig;
using reference::ReferenceRopeScaling;

constexpr size_t kChunkElements = size_t{1} << 18;

json RopeScalingFields(const ReferenceRopeScaling& scaling) {
  switch (scaling.type) {
    case ReferenceRopeScaling::Type::kNone:
      return nullptr;
    case ReferenceRopeScaling::Type::kLinear:
      return {{"rope_type", "linear"}, {"factor", scaling.factor}};
    case ReferenceRopeScaling::Type::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
    case ReferenceRopeScaling::Type::kDynamic:
      return {{"rope_type", "dynamic"}, {"factor", scaling.factor}};
    case ReferenceRopeScaling::Type::kYarn:
      return {{"rope_type", "yarn"},
              {"factor", scaling.factor},
              {"original_max_position_embeddings", scaling.original_max_position_embeddings},
              {"attention_factor", scaling.attention_factor},
              {"beta_fast", scaling.beta_fast},
              {"beta_slow", scaling.beta_slow},
              {"truncate", scaling.truncate}};
    case ReferenceRopeScaling::Type::kLongrope:
    case ReferenceRopeScaling::Type::kProportional:
      break;  // Phi 3 and LFM3 are not written from a ReferenceConfig.
  }
  throw std::runtime_error("unknown rope scaling");
}

void AddTokenIds(const ReferenceConfig& config, json& fields) {
  if (config.bos_token_id >= 0) fields["bos_token_id"] = config.bos_token_id;
  if (config.eos_token_ids.size() == 1) {
    fields["eos_token_id"] = config.eos_token_ids[0];
  } else if (!config.eos_token_ids.empty()) {
    fields["eos_token_id"] = config.eos_token_ids;
  }
}

// "llama" of "LlamaForCausalLM".
std::string ModelType(const ReferenceConfig& config) {
  std::string type = config.architecture.substr(0, config.architecture.find("ForCausalLM"));
  std::ranges::transform(type, type.begin(), [](char c) { return c | 0x20; });
  return type;
}

const char* LayerType(const ReferenceAttention& layer) {
  return layer.sliding_window == 0 ? "full_attention" : "sliding_attention";
}

json LayerTypes(const ReferenceConfig& config) {
  json types = json::array();
  for (const ReferenceAttention& layer : config.layers) types.push_back(LayerType(layer));
  return types;
}

// Adds the fields that only some configuration classes have.
void AddOwnFields(const ReferenceConfig& config, json& fields) {
  size_t window = config.sliding_window;
  // How many layers before the first with a window have none.
  size_t full_layers = 0;
  for (const ReferenceAttention& layer : config.layers) {
    window = std::max(window, layer.sliding_window);
    full_layers += window == 0 ? 1 : 0;
  }
  const json window_or_null = window == 0 ? json() : json(window);
  if (config.architecture == "LlamaForCausalLM") {
    if (window != 0) throw std::runtime_error("LlamaForCausalLM has no window");
    fields["attention_bias"] = config.o_bias;
    fields["mlp_bias"] = config.mlp_bias;
  } else if (config.architecture.starts_with("Qwen")) {
    if (config.architecture == "Qwen3ForCausalLM") fields["attention_bias"] = config.o_bias;
    fields["use_sliding_window"] = window != 0;
    fields["sliding_window"] = window_or_null;
    fields["max_window_layers"] = full_layers;
    for (size_t i = full_layers; i < config.layers.size(); ++i) {
      if (config.layers[i].sliding_window != 0) continue;
      throw std::runtime_error("windows that do not begin at a layer are not written");
    }
  } else {
    fields["sliding_window"] = window_or_null;
    if (!config.layers.empty()) fields["layer_types"] = LayerTypes(config);
  }
}

// Adds rope_theta and rope_scaling, or, if layers differ in them, rope_parameters.
void AddRope(const ReferenceConfig& config, json& fields) {
  const ReferenceAttention first = config.AttentionOf(0);
  json parameters = json::object();
  bool are_alike = true;
  for (const ReferenceAttention& layer : config.layers) {
    json rope = RopeScalingFields(layer.rope_scaling);
    if (rope.is_null()) rope = {{"rope_type", "default"}};
    rope["rope_theta"] = layer.rope_theta;
    parameters.emplace(LayerType(layer), rope);
    if (parameters.at(LayerType(layer)) != rope)
      throw std::runtime_error("layers of one type have other frequencies");
    are_alike = are_alike && rope == parameters.at(LayerType(first));
  }
  if (are_alike) {
    fields["rope_theta"] = first.rope_theta;
    fields["rope_scaling"] = RopeScalingFields(first.rope_scaling);
  } else {
    fields["rope_parameters"] = parameters;
  }
}

json ConfigFields(const ReferenceConfig& config, StorageType storage) {
  json fields = {{"architectures", json::array({config.architecture})},
                 {"model_type", ModelType(config)},
                 {"hidden_act", "silu"},
                 {"hidden_size", config.hidden_size},
                 {"intermediate_size", config.intermediate_size},
                 {"num_hidden_layers", config.num_hidden_layers},
                 {"num_attention_heads", config.num_attention_heads},
                 {"num_key_value_heads", config.num_key_value_heads},
                 {"head_dim", config.head_dim},
                 {"vocab_size", config.vocab_size},
                 {"max_position_embeddings", config.max_position_embeddings},
                 {"rms_norm_eps", config.rms_norm_eps},
                 {"tie_word_embeddings", config.tie_word_embeddings},
                 {"torch_dtype", TorchName(storage)}};
  AddRope(config, fields);
  AddOwnFields(config, fields);
  AddTokenIds(config, fields);
  return fields;
}

void WriteTensors(std::span<const TensorShape> tensors, const TensorSource& source,
                  StorageType storage, const std::filesystem::path& path) {
  SafetensorsWriter writer(path, storage, {tensors.begin(), tensors.end()});
  std::vector<float> chunk;
  for (const TensorShape& tensor : tensors) {
    const size_t elements = tensor.elements();
    for (size_t first = 0; first < elements; first += kChunkElements) {
      chunk.resize(std::min(kChunkElements, elements - first));
      source(tensor, first, chunk);
      writer.Write(chunk);
    }
  }
  writer.Finish();
}

void WriteShards(std::span<const TensorShape> tensors, const TensorSource& source,
                 const std::filesystem::path& directory, const CheckpointFormat& format) {
  if (format.shards <= 1) {
    WriteTensors(tensors, source, format.storage, directory / "model.safetensors");
    return;
  }
  json weight_map = json::object();
  size_t total_bytes = 0;
  for (size_t shard = 0; shard < format.shards; ++shard) {
    const size_t begin = tensors.size() * shard / format.shards;
    const size_t end = tensors.size() * (shard + 1) / format.shards;
    const auto part = tensors.subspan(begin, end - begin);
    const std::string name =
        std::format("model-{:05}-of-{:05}.safetensors", shard + 1, format.shards);
    WriteTensors(part, source, format.storage, directory / name);
    for (const TensorShape& tensor : part) {
      weight_map[tensor.name] = name;
      total_bytes += tensor.elements() * ElementBytes(format.storage);
    }
  }
  const json index = {{"metadata", {{"total_size", total_bytes}}},
                      {"weight_map", std::move(weight_map)}};
  WriteFile(directory / "model.safetensors.index.json", index.dump(1));
}

}  // namespace

std::vector<TensorShape> CheckpointTensors(const ReferenceConfig& c) {
  const size_t query_channels = c.num_attention_heads * c.head_dim;
  const size_t key_value_channels = c.num_key_value_heads * c.head_dim;
  std::vector<TensorShape> tensors = {{"model.embed_tokens.weight", {c.vocab_size, c.hidden_size}}};
  for (size_t l = 0; l < c.num_hidden_layers; ++l) {
    const auto add = [&tensors, l](const char* name, std::vector<size_t> shape) {
      tensors.push_back({std::format("model.layers.{}.{}", l, name), std::move(shape)});
    };
    const auto add_linear = [&](const char* module, size_t outputs, size_t inputs, bool has_bias) {
      add(std::format("{}.weight", module).c_str(), {outputs, inputs});
      if (has_bias) add(std::format("{}.bias", module).c_str(), {outputs});
    };
    add("input_layernorm.weight", {c.hidden_size});
    add_linear("self_attn.q_proj", query_channels, c.hidden_size, c.qkv_bias);
    add_linear("self_attn.k_proj", key_value_channels, c.hidden_size, c.qkv_bias);
    add_linear("self_attn.v_proj", key_value_channels, c.hidden_size, c.qkv_bias);
    if (c.qk_norm) add("self_attn.q_norm.weight", {c.head_dim});
    if (c.qk_norm) add("self_attn.k_norm.weight", {c.head_dim});
    add_linear("self_attn.o_proj", c.hidden_size, query_channels, c.o_bias);
    add("post_attention_layernorm.weight", {c.hidden_size});
    add_linear("mlp.gate_proj", c.intermediate_size, c.hidden_size, c.mlp_bias);
    add_linear("mlp.up_proj", c.intermediate_size, c.hidden_size, c.mlp_bias);
    add_linear("mlp.down_proj", c.hidden_size, c.intermediate_size, c.mlp_bias);
  }
  tensors.push_back({"model.norm.weight", {c.hidden_size}});
  if (!c.tie_word_embeddings) {
    tensors.push_back({"lm_head.weight", {c.vocab_size, c.hidden_size}});
  }
  return tensors;
}

void WriteCheckpoint(const ReferenceConfig& config, const std::vector<TensorShape>& tensors,
                     const TensorSource& source, const std::filesystem::path& directory,
                     const CheckpointFormat& format) {
  std::filesystem::create_directories(directory);
  WriteFile(directory / "config.json", ConfigFields(config, format.storage).dump(1));
  json generation = json::object();
  AddTokenIds(config, generation);
  WriteFile(directory / "generation_config.json", generation.dump(1));
  WriteShards(tensors, source, directory, format);
  if (format.tokenizer == TokenizerFiles::kByteLevelJson) {
    const ByteLevelTokenizer tokenizer =
        MakeByteLevelTokenizer(config.vocab_size, format.num_special_tokens);
    WriteFile(directory / "tokenizer.json", TokenizerJson(tokenizer, format.merges_as_pairs));
    WriteFile(directory / "tokenizer_config.json", TokenizerConfigJson(format.chat_template));
  }
}

void WriteHuggingFaceDirectory(const reference::ReferenceModel& model,
                               const std::filesystem::path& directory,
                               const CheckpointFormat& format) {
  std::vector<TensorShape> tensors;
  for (const auto& [name, tensor] : model.tensors) {
    tensors.push_back({name, tensor.shape});
    if (tensors.back().elements() != tensor.values.size()) {
      throw std::runtime_error(name + " does not fill its shape");
    }
  }
  const auto source = [&model](const TensorShape& tensor, size_t first, std::span<float> values) {
    const std::vector<float>& all = model.tensors.at(tensor.name).values;
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), values.size(), values.begin());
  };
  WriteCheckpoint(model.config, tensors, source, directory, format);
}

}  // namespace cria::support
