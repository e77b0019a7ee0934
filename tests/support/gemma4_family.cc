#include "support/gemma4_family.h"

#include <format>
#include <nlohmann/json.hpp>

#include "support/family_sizes.h"

namespace cria::support {
namespace {

using nlohmann::json;

json Gemma4() {
  return Merged(Sizes("Gemma4ForCausalLM", "gemma4_text", 6),
                {{"head_dim", 16},
                 {"global_head_dim", 32},
                 {"sliding_window", 12},
                 {"layer_types",
                  {"sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
                   "full_attention", "full_attention"}},
                 {"final_logit_softcapping", 30.0},
                 {"hidden_size_per_layer_input", 32},
                 {"vocab_size_per_layer_input", 300},
                 {"num_kv_shared_layers", 3},
                 {"use_double_wide_mlp", true}});
}

json WithoutInputs() {
  return Merged(Gemma4(), {{"hidden_size_per_layer_input", 0},
                           {"num_kv_shared_layers", 0},
                           {"attention_k_eq_v", true},
                           {"num_global_key_value_heads", 1}});
}

json TextOf(const std::string& config_json) {
  const json config = json::parse(config_json);
  return config.contains("text_config") ? config.at("text_config") : config;
}

class Gemma4Lister {
 public:
  explicit Gemma4Lister(const std::string& config_json) : config_(TextOf(config_json)) {
    const bool is_nested = json::parse(config_json).contains("text_config");
    prefix_ = is_nested ? "model.language_model." : "model.";
    const size_t hidden = Size("hidden_size");
    const size_t inputs = Size("hidden_size_per_layer_input");
    const size_t layers = Size("num_hidden_layers");
    Add(prefix_ + "embed_tokens.weight", {Size("vocab_size"), hidden});
    Add(prefix_ + "norm.weight", {hidden});
    if (!config_.value("tie_word_embeddings", true)) {
      Add("lm_head.weight", {Size("vocab_size"), hidden});
    }
    if (inputs != 0) {
      Add(prefix_ + "embed_tokens_per_layer.weight",
          {Size("vocab_size_per_layer_input"), layers * inputs});
      Add(prefix_ + "per_layer_model_projection.weight", {layers * inputs, hidden});
      Add(prefix_ + "per_layer_projection_norm.weight", {inputs});
    }
    for (size_t i = 0; i < layers; ++i) AddLayer(i);
    if (!is_nested) return;
    Add("model.vision_tower.std_bias", {32});
    Add("model.embed_vision.embedding_projection.weight", {hidden, 32});
    Add("model.audio_tower.output_proj.bias", {32});
  }
  std::vector<TensorShape> Take() { return std::move(tensors_); }

 private:
  size_t Size(const char* field) const { return config_.at(field).get<size_t>(); }
  void Add(const std::string& name, const std::vector<size_t>& shape) {
    tensors_.push_back({name, shape});
  }
  void AddLinear(const std::string& module, size_t outputs, size_t inputs, bool has_bias = false) {
    Add(module + ".weight", {outputs, inputs});
    if (has_bias) Add(module + ".bias", {outputs});
  }

  void AddLayer(size_t index) {
    const std::string layer = std::format("{}layers.{}.", prefix_, index);
    const size_t hidden = Size("hidden_size");
    const bool is_shared = index + Size("num_kv_shared_layers") >= Size("num_hidden_layers");
    AddAttention(index, is_shared, layer + "self_attn.");
    const bool is_wide = is_shared && config_.value("use_double_wide_mlp", false);
    const size_t width = (is_wide ? 2 : 1) * Size("intermediate_size");
    AddLinear(layer + "mlp.gate_proj", width, hidden);
    AddLinear(layer + "mlp.up_proj", width, hidden);
    AddLinear(layer + "mlp.down_proj", hidden, width);
    for (const char* const norm : {"input_layernorm", "post_attention_layernorm",
                                   "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      Add(layer + norm + ".weight", {hidden});
    }
    Add(layer + "layer_scalar", {1});
    if (const size_t inputs = Size("hidden_size_per_layer_input"); inputs != 0) {
      AddLinear(layer + "per_layer_input_gate", inputs, hidden);
      AddLinear(layer + "per_layer_projection", hidden, inputs);
      Add(layer + "post_per_layer_input_norm.weight", {hidden});
    }
    if (config_.value("enable_moe_block", false)) AddExperts(layer);
  }

  void AddAttention(size_t index, bool is_shared, const std::string& module) {
    const size_t hidden = Size("hidden_size");
    const size_t heads = Size("num_attention_heads");
    const bool is_full = config_.at("layer_types").at(index) == "full_attention";
    const bool keys_are_values = is_full && config_.value("attention_k_eq_v", false);
    const size_t head_dim = Size(is_full ? "global_head_dim" : "head_dim");
    const size_t keys =
        head_dim * Size(keys_are_values ? "num_global_key_value_heads" : "num_key_value_heads");
    const bool has_bias = config_.value("attention_bias", false);
    AddLinear(module + "q_proj", heads * head_dim, hidden, has_bias);
    AddLinear(module + "o_proj", hidden, heads * head_dim, has_bias);
    Add(module + "q_norm.weight", {head_dim});
    if (is_shared) return;
    AddLinear(module + "k_proj", keys, hidden, has_bias);
    if (!keys_are_values) AddLinear(module + "v_proj", keys, hidden, has_bias);
    Add(module + "k_norm.weight", {head_dim});
  }

  void AddExperts(const std::string& layer) {
    const size_t hidden = Size("hidden_size");
    const size_t experts = Size("num_experts");
    const size_t width = Size("moe_intermediate_size");
    AddLinear(layer + "router.proj", experts, hidden);
    Add(layer + "router.scale", {hidden});
    Add(layer + "router.per_expert_scale", {experts});
    Add(layer + "experts.gate_up_proj", {experts, 2 * width, hidden});
    Add(layer + "experts.down_proj", {experts, hidden, width});
    for (const char* const norm : {"post_feedforward_layernorm_1", "pre_feedforward_layernorm_2",
                                   "post_feedforward_layernorm_2"}) {
      Add(layer + norm + ".weight", {hidden});
    }
  }

  const json config_;
  std::string prefix_;
  std::vector<TensorShape> tensors_;
};

}  // namespace

std::vector<FamilyCheckpoint> Gemma4Checkpoints() {
  const json biases = {{"attention_bias", true}, {"tie_word_embeddings", false}};
  const json experts = {{"num_hidden_layers", 3},
                        {"layer_types", {"sliding_attention", "full_attention", "full_attention"}},
                        {"enable_moe_block", true},
                        {"num_experts", 8},
                        {"top_k_experts", 2},
                        {"moe_intermediate_size", 48}};
  const json vision = {{"architectures", {"Gemma4ForConditionalGeneration"}},
                       {"model_type", "gemma4"},
                       {"text_config", Gemma4()},
                       {"vision_config", {{"model_type", "gemma4_vision"}}}};
  return {{"Gemma4", Gemma4().dump(), "gemma4"},
          {"Gemma4Biases", Merged(Gemma4(), biases).dump(), ""},
          {"Gemma4KeysAreValues", WithoutInputs().dump(), "gemma4"},
          {"Gemma4Experts", Merged(WithoutInputs(), experts).dump(), "gemma4"},
          {"Gemma4Vision", vision.dump(), ""}};
}

bool IsGemma4(const std::string& config_json) {
  return json::parse(config_json).at("model_type").get<std::string>().starts_with("gemma4");
}

std::vector<TensorShape> Gemma4Tensors(const std::string& config_json) {
  return Gemma4Lister(config_json).Take();
}

}  // namespace cria::support
