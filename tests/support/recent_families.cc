#include "support/recent_families.h"

#include <algorithm>
#include <array>
#include <format>
#include <nlohmann/json.hpp>
#include <string_view>

namespace cria::support {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kArchitectures = {
    "Ministral3ForCausalLM", "Mistral3ForConditionalGeneration", "SmolVLMForConditionalGeneration",
    "GraniteMoeHybridForCausalLM"};

std::string ArchitectureOf(const json& config) { return config.at("architectures").at(0); }

json WithFields(json fields, const json& more) {
  fields.update(more);
  return fields;
}

json SizesOf(const char* architecture, const char* model_type, int layers) {
  return {{"architectures", {architecture}},
          {"model_type", model_type},
          {"hidden_size", 64},
          {"intermediate_size", 160},
          {"num_hidden_layers", layers},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 16},
          {"vocab_size", 300},
          {"max_position_embeddings", 128},
          {"rms_norm_eps", 1e-5}};
}

// Its texts go past the positions from which queries are multiplied.
json Ministral3() {
  return WithFields(SizesOf("Ministral3ForCausalLM", "ministral3", 2),
                {{"sliding_window", nullptr},
                 {"tie_word_embeddings", true},
                 {"rope_parameters",
                  {{"rope_type", "yarn"},
                   {"type", "yarn"},
                   {"rope_theta", 1000000.0},
                   {"factor", 8.0},
                   {"beta_fast", 4.0},
                   {"beta_slow", 1.0},
                   {"mscale", 1.0},
                   {"mscale_all_dim", 1.0},
                   {"original_max_position_embeddings", 16},
                   {"llama_4_scaling_beta", 0.4}}}});
}

json GraniteHybrid() {
  json fields = WithFields(SizesOf("GraniteMoeHybridForCausalLM", "granitemoehybrid", 3),
                       {{"layer_types", {"attention", "attention", "attention"}},
                        {"shared_intermediate_size", 96},
                        {"num_local_experts", 0},
                        {"num_experts_per_tok", 0},
                        {"position_embedding_type", "rope"},
                        {"embedding_multiplier", 6.0},
                        {"attention_multiplier", 0.125},
                        {"residual_multiplier", 0.22},
                        {"logits_scaling", 2.0},
                        {"rope_theta", 10000.0},
                        {"tie_word_embeddings", true}});
  fields.erase("head_dim");
  return fields;
}

// A text model within one that sees pictures: `outer` has the fields around it.
json Within(json text, const json& outer) {
  text.erase("architectures");
  json config = {{"text_config", text},
                 {"vision_config",
                  {{"hidden_size", 32},
                   {"num_attention_heads", 4},
                   {"num_hidden_layers", 1},
                   {"intermediate_size", 32},
                   {"image_size", 28},
                   {"patch_size", 14}}}};
  config.update(outer);
  return config;
}

// The tensors of a model, whichever it is.
class Lister {
 public:
  explicit Lister(const std::string& config_json) {
    const json whole = json::parse(config_json);
    const std::string outer = ArchitectureOf(whole);
    const bool is_within = whole.contains("text_config");
    config_ = is_within ? whole.at("text_config") : whole;
    const bool is_smol_vlm = outer.starts_with("SmolVLM");
    prefix_ = !is_within    ? "model."
              : is_smol_vlm ? "model.text_model."
                            : "model.language_model.";
    const size_t hidden = Size("hidden_size");
    Add(prefix_ + "embed_tokens.weight", {Size("vocab_size"), hidden});
    Add(prefix_ + "norm.weight", {hidden});
    if (!whole.value("tie_word_embeddings", false)) {
      Add("lm_head.weight", {Size("vocab_size"), hidden});
    }
    for (size_t i = 0; i < Size("num_hidden_layers"); ++i) AddLayer(i);
    if (is_smol_vlm) {
      Add("model.vision_model.post_layernorm.weight", {32});
      Add("model.connector.modality_projection.proj.weight", {hidden, 32});
    } else if (is_within) {
      Add("model.vision_tower.ln_pre.weight", {32});
      Add("model.multi_modal_projector.linear_1.weight", {hidden, 32});
    }
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

  bool Is(std::string_view model_type) const { return config_.at("model_type") == model_type; }
  bool Flag(const char* field, bool otherwise) const { return config_.value(field, otherwise); }

  void AddLayer(size_t index) {
    const std::string layer = std::format("{}layers.{}.", prefix_, index);
    AddAttention(layer + "self_attn.");
    if (Is("granitemoehybrid")) {
      AddFused(layer + "shared_mlp.input_linear", layer + "shared_mlp.output_linear",
               Size("shared_intermediate_size"));
    } else {
      AddFeedForward(layer + "mlp.");
    }
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
      Add(layer + norm + ".weight", {Size("hidden_size")});
    }
  }

  void AddAttention(const std::string& module) {
    const size_t hidden = Size("hidden_size");
    const size_t head_dim = config_.value("head_dim", hidden / Size("num_attention_heads"));
    const size_t queries = Size("num_attention_heads") * head_dim;
    const size_t keys = Size("num_key_value_heads") * head_dim;
    const bool has_bias = Flag("attention_bias", false);
    AddLinear(module + "q_proj", queries, hidden, has_bias);
    AddLinear(module + "k_proj", keys, hidden, has_bias);
    AddLinear(module + "v_proj", keys, hidden, has_bias);
    AddLinear(module + "o_proj", hidden, queries, has_bias);
  }

  void AddFused(const std::string& first, const std::string& second, size_t width) {
    AddLinear(first, 2 * width, Size("hidden_size"));
    AddLinear(second, Size("hidden_size"), width);
  }

  void AddFeedForward(const std::string& module) {
    const size_t hidden = Size("hidden_size");
    const size_t width = Size("intermediate_size");
    AddLinear(module + "gate_proj", width, hidden);
    AddLinear(module + "up_proj", width, hidden);
    AddLinear(module + "down_proj", hidden, width);
  }

  json config_;
  std::string prefix_;
  std::vector<TensorShape> tensors_;
};

}  // namespace

std::vector<FamilyCheckpoint> RecentFamilies() {
  const json window = {{"sliding_window", 12},
                       {"tie_word_embeddings", false},
                       {"rope_parameters",
                        {{"rope_type", "default"},
                         {"rope_theta", 10000.0},
                         {"original_max_position_embeddings", 10},
                         {"llama_4_scaling_beta", 0.3}}}};
  const json nope = {{"position_embedding_type", nullptr},
                     {"attention_bias", true},
                     {"tie_word_embeddings", false},
                     {"layer_types", {"full_attention", "attention", "full_attention"}}};
  const json llama = WithFields(SizesOf("LlamaForCausalLM", "llama", 2), {{"rope_theta", 10000.0}});
  return {{"Ministral3", Ministral3().dump(), "mistral3"},
          {"Ministral3Window", WithFields(Ministral3(), window).dump(), ""},
          {"Ministral3Vision",
           Within(Ministral3(), {{"architectures", {"Mistral3ForConditionalGeneration"}},
                                 {"model_type", "mistral3"},
                                 {"tie_word_embeddings", true}})
               .dump(),
           ""},
          {"SmolVlm",
           Within(llama, {{"architectures", {"SmolVLMForConditionalGeneration"}},
                          {"model_type", "smolvlm"},
                          {"tie_word_embeddings", false}})
               .dump(),
           ""},
          {"GraniteHybrid", GraniteHybrid().dump(), "granitehybrid"},
          {"GraniteHybridNope", WithFields(GraniteHybrid(), nope).dump(), "granitehybrid"}};
}

bool IsRecentFamily(const std::string& config_json) {
  return std::ranges::contains(kArchitectures, ArchitectureOf(json::parse(config_json)));
}

std::vector<TensorShape> RecentFamilyTensors(const std::string& config_json) {
  return Lister(config_json).Take();
}

}  // namespace cria::support
