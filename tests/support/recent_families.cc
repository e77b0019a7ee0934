#include "support/recent_families.h"

#include <algorithm>
#include <array>
#include <format>
#include <nlohmann/json.hpp>
#include <string_view>

#include "support/family_sizes.h"

namespace cria::support {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 14> kArchitectures = {"Ministral3ForCausalLM",
                                                             "Mistral3ForConditionalGeneration",
                                                             "SmolVLMForConditionalGeneration",
                                                             "GraniteMoeHybridForCausalLM",
                                                             "GptOssForCausalLM",
                                                             "Olmo3ForCausalLM",
                                                             "Exaone4ForCausalLM",
                                                             "Ernie4_5ForCausalLM",
                                                             "SeedOssForCausalLM",
                                                             "HunYuanDenseV1ForCausalLM",
                                                             "ArceeForCausalLM",
                                                             "ApertusForCausalLM",
                                                             "GlmForCausalLM",
                                                             "Glm4ForCausalLM"};

std::string ArchitectureOf(const json& config) { return config.at("architectures").at(0); }

json SizesOf(const char* architecture, const char* model_type, int layers) {
  return Merged(Sizes(architecture, model_type, layers),
                {{"head_dim", 16}, {"rms_norm_eps", 1e-5}});
}

// Its texts go past the positions from which queries are multiplied.
json Ministral3() {
  return Merged(SizesOf("Ministral3ForCausalLM", "ministral3", 2),
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
  json fields = Merged(SizesOf("GraniteMoeHybridForCausalLM", "granitemoehybrid", 3),
                       {{"layer_types", {"attention", "attention", "attention"}},
                        {"shared_intermediate_size", 96},
                        {"num_local_experts", 0},
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

// Two groups of heads of Mamba, which are not as wide as those of attention.
json GraniteMamba() {
  return Merged(GraniteHybrid(), {{"layer_types", {"mamba", "attention", "mamba"}},
                                  {"position_embedding_type", nullptr},
                                  {"mamba_n_heads", 8},
                                  {"mamba_d_head", 16},
                                  {"mamba_n_groups", 2},
                                  {"mamba_d_state", 32},
                                  {"mamba_d_conv", 4},
                                  {"mamba_conv_bias", true}});
}

// State sizes that no vector fills, rope, and all biases but that of the convolution.
json GraniteMambaOther() {
  json fields = GraniteMamba();
  fields.erase("layer_types");
  return Merged(fields, {{"layers_block_type", {"attention", "mamba", "linear_attention"}},
                         {"position_embedding_type", "rope"},
                         {"attention_bias", true},
                         {"tie_word_embeddings", false},
                         {"mamba_expand", 3},
                         {"mamba_n_heads", 8},
                         {"mamba_d_head", "auto"},
                         {"mamba_n_groups", 1},
                         {"mamba_d_state", 20},
                         {"mamba_d_conv", 2},
                         {"mamba_conv_bias", false},
                         {"mamba_proj_bias", true}});
}

json GraniteMambaMoe() {
  return Merged(GraniteMamba(), {{"num_local_experts", 8},
                                 {"num_experts_per_tok", 3},
                                 {"intermediate_size", 48},
                                 {"mamba_n_groups", 1}});
}

json Olmo3() {
  return Merged(SizesOf("Olmo3ForCausalLM", "olmo3", 4),
                {{"sliding_window", 12}, {"rope_theta", 500000.0}});
}

json Exaone4() {
  return Merged(SizesOf("Exaone4ForCausalLM", "exaone4", 4),
                {{"sliding_window", 12}, {"sliding_window_pattern", 4}, {"rope_theta", 1e6}});
}

json Ernie() {
  return Merged(SizesOf("Ernie4_5ForCausalLM", "ernie4_5", 2),
                {{"rope_theta", 500000.0}, {"tie_word_embeddings", true}});
}

json SeedOss() {
  return Merged(SizesOf("SeedOssForCausalLM", "seed_oss", 2),
                {{"rope_theta", 1e7}, {"attention_bias", true}});
}

json Hunyuan() {
  return Merged(SizesOf("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", 2),
                {{"use_qk_norm", true},
                 {"tie_word_embeddings", true},
                 {"rope_scaling",
                  {{"type", "dynamic"},
                   {"rope_theta", 10000.0},
                   {"alpha", 50.0},
                   {"factor", 1.0},
                   {"beta_fast", 32},
                   {"beta_slow", 1},
                   {"mscale", 1.0},
                   {"mscale_all_dim", 0.0}}}});
}

json Arcee() {
  return Merged(SizesOf("ArceeForCausalLM", "arcee", 2),
                {{"hidden_act", "relu2"},
                 {"rope_parameters",
                  {{"rope_type", "yarn"},
                   {"rope_theta", 10000.0},
                   {"factor", 4.0},
                   {"original_max_position_embeddings", 32}}}});
}

json Apertus() {
  return Merged(SizesOf("ApertusForCausalLM", "apertus", 2),
                {{"hidden_act", "xielu"},
                 {"rope_parameters",
                  {{"rope_type", "llama3"},
                   {"rope_theta", 12000000.0},
                   {"factor", 8.0},
                   {"low_freq_factor", 1.0},
                   {"high_freq_factor", 4.0},
                   {"original_max_position_embeddings", 32}}}});
}

json Glm4() {
  return Merged(SizesOf("Glm4ForCausalLM", "glm4", 2), {{"rope_theta", 10000.0},
                                                        {"partial_rotary_factor", 0.5},
                                                        {"attention_bias", true},
                                                        {"rms_norm_eps", 1.5625e-7}});
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
    prefix_ = !is_within ? "model." : is_smol_vlm ? "model.text_model." : "model.language_model.";
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
    if (IsMamba(index)) {
      AddMamba(layer + "mamba.");
    } else {
      AddAttention(layer + "self_attn.");
    }
    if (Is("gpt_oss")) {
      Add(layer + "self_attn.sinks", {Size("num_attention_heads")});
      AddGptOssExperts(layer + "mlp.");
    } else if (Is("granitemoehybrid")) {
      AddExperts(layer + "block_sparse_moe.");
      AddFused(layer + "shared_mlp.input_linear", layer + "shared_mlp.output_linear",
               Size("shared_intermediate_size"));
    } else if (IsGlm()) {
      AddFused(layer + "mlp.gate_up_proj", layer + "mlp.down_proj", Size("intermediate_size"));
    } else if (Is("arcee") || Is("apertus")) {
      AddUngated(layer + "mlp.");
    } else {
      AddFeedForward(layer + "mlp.");
    }
    for (const char* norm : Norms()) Add(layer + norm + ".weight", {Size("hidden_size")});
  }

  bool IsMamba(size_t index) const {
    if (!Is("granitemoehybrid")) return false;
    const bool has_types = config_.contains("layer_types");
    const json& type = config_.at(has_types ? "layer_types" : "layers_block_type").at(index);
    return type == "mamba" || type == "linear_attention";
  }

  void AddMamba(const std::string& module) {
    const size_t heads = Size("mamba_n_heads");
    const size_t channels = config_.value("mamba_expand", size_t{2}) * Size("hidden_size");
    const size_t convolved = channels + 2 * Size("mamba_n_groups") * Size("mamba_d_state");
    const bool has_bias = Flag("mamba_proj_bias", false);
    AddLinear(module + "in_proj", channels + convolved + heads, Size("hidden_size"), has_bias);
    Add(module + "conv1d.weight", {convolved, 1, Size("mamba_d_conv")});
    if (Flag("mamba_conv_bias", true)) Add(module + "conv1d.bias", {convolved});
    Add(module + "dt_bias", {heads});
    Add(module + "A_log", {heads});
    Add(module + "D", {heads});
    Add(module + "norm.weight", {channels});
    AddLinear(module + "out_proj", Size("hidden_size"), channels, has_bias);
  }

  void AddGptOssExperts(const std::string& module) {
    const size_t experts = Size("num_local_experts");
    const size_t hidden = Size("hidden_size");
    const size_t width = Size("intermediate_size");
    AddLinear(module + "router", experts, hidden, true);
    AddGptOssMatrices(module + "experts.gate_up_proj", hidden, 2 * width);
    AddGptOssMatrices(module + "experts.down_proj", width, hidden);
  }

  // The matrices of all experts and their biases.
  void AddGptOssMatrices(const std::string& name, size_t inputs, size_t outputs) {
    const size_t experts = Size("num_local_experts");
    Add(name + "_bias", {experts, outputs});
    if (!config_.contains("quantization_config")) return Add(name, {experts, inputs, outputs});
    tensors_.push_back({name + "_blocks", {experts, outputs, inputs / 32, 16}, true});
    tensors_.push_back({name + "_scales", {experts, outputs, inputs / 32}, true});
  }

  // All experts in one tensor each.
  void AddExperts(const std::string& module) {
    const size_t experts = Size("num_local_experts");
    const size_t width = Size("intermediate_size");
    if (experts == 0) return;
    AddLinear(module + "router.layer", experts, Size("hidden_size"));
    Add(module + "input_linear.weight", {experts, 2 * width, Size("hidden_size")});
    Add(module + "output_linear.weight", {experts, Size("hidden_size"), width});
  }

  bool IsGlm() const { return Is("glm") || Is("glm4"); }

  std::vector<const char*> Norms() const {
    if (Is("olmo3") || Is("exaone4")) {
      return {"post_attention_layernorm", "post_feedforward_layernorm"};
    }
    if (Is("apertus")) return {"attention_layernorm", "feedforward_layernorm"};
    std::vector<const char*> norms = {"input_layernorm", "post_attention_layernorm"};
    if (Is("glm4")) norms.insert(norms.end(), {"post_self_attn_layernorm", "post_mlp_layernorm"});
    return norms;
  }

  void AddAttention(const std::string& module) {
    const size_t hidden = Size("hidden_size");
    const size_t head_dim = config_.value("head_dim", hidden / Size("num_attention_heads"));
    const size_t queries = Size("num_attention_heads") * head_dim;
    const size_t keys = Size("num_key_value_heads") * head_dim;
    const bool has_bias = Flag("attention_bias", false) || Flag("use_bias", false);
    const bool has_output_bias =
        has_bias && !IsGlm() && (!Is("seed_oss") || Flag("attention_out_bias", false));
    AddLinear(module + "q_proj", queries, hidden, has_bias);
    AddLinear(module + "k_proj", keys, hidden, has_bias);
    AddLinear(module + "v_proj", keys, hidden, has_bias);
    AddLinear(module + "o_proj", hidden, queries, has_output_bias);
    if (Is("hunyuan_v1_dense")) {
      Add(module + "query_layernorm.weight", {head_dim});
      Add(module + "key_layernorm.weight", {head_dim});
    }
    if (!Is("olmo3") && !Is("exaone4") && !Is("apertus")) return;
    Add(module + "q_norm.weight", {Is("olmo3") ? queries : head_dim});
    Add(module + "k_norm.weight", {Is("olmo3") ? keys : head_dim});
  }

  void AddFused(const std::string& first, const std::string& second, size_t width) {
    AddLinear(first, 2 * width, Size("hidden_size"));
    AddLinear(second, Size("hidden_size"), width);
  }

  void AddUngated(const std::string& module) {
    const bool has_bias = Flag("mlp_bias", false);
    AddLinear(module + "up_proj", Size("intermediate_size"), Size("hidden_size"), has_bias);
    AddLinear(module + "down_proj", Size("hidden_size"), Size("intermediate_size"), has_bias);
    if (!Is("apertus")) return;
    Add(module + "act_fn.alpha_p", {1});
    Add(module + "act_fn.alpha_n", {1});
    Add(module + "act_fn.beta", {});
    Add(module + "act_fn.eps", {});
  }

  void AddFeedForward(const std::string& module) {
    const size_t hidden = Size("hidden_size");
    const size_t width = Size("intermediate_size");
    const bool has_bias = Flag("mlp_bias", false) || Flag("use_bias", false);
    AddLinear(module + "gate_proj", width, hidden, has_bias);
    AddLinear(module + "up_proj", width, hidden, has_bias);
    AddLinear(module + "down_proj", hidden, width, has_bias);
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
  const json two_ropes = {
      {"layer_types",
       {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}},
      {"attention_bias", true},
      {"rope_parameters",
       {{"full_attention",
         {{"rope_type", "yarn"},
          {"rope_theta", 500000.0},
          {"factor", 4.0},
          {"attention_factor", 1.2},
          {"original_max_position_embeddings", 32}}},
        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}}}};
  const json full = {{"sliding_window", nullptr},
                     {"sliding_window_pattern", nullptr},
                     {"tie_word_embeddings", true},
                     {"layer_types", std::vector<std::string>(4, "full_attention")}};
  const json biases = {{"use_bias", true}, {"tie_word_embeddings", false}};
  const json hunyuan = {{"attention_bias", true},
                        {"tie_word_embeddings", false},
                        {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}};
  const json unscaled = {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 500000.0}}}};
  const json tied_biases = {{"attention_bias", true}, {"tie_word_embeddings", true}};
  const json all_biases = Merged(tied_biases, {{"mlp_bias", true}});
  const json glm = {{"architectures", {"GlmForCausalLM"}},
                    {"model_type", "glm"},
                    {"partial_rotary_factor", 0.25},
                    {"tie_word_embeddings", true}};
  const json llama = Merged(SizesOf("LlamaForCausalLM", "llama", 2), {{"rope_theta", 10000.0}});
  return {{"Ministral3", Ministral3().dump(), "mistral3"},
          {"Ministral3Window", Merged(Ministral3(), window).dump(), ""},
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
          {"GraniteHybridNope", Merged(GraniteHybrid(), nope).dump(), "granitehybrid"},
          {"GraniteMamba", GraniteMamba().dump(), "granitehybrid"},
          {"GraniteMambaOther", GraniteMambaOther().dump(), ""},
          {"GraniteMambaMoe", GraniteMambaMoe().dump(), "granitehybrid"},
          {"Olmo3", Olmo3().dump(), "olmo2"},
          {"Olmo3TwoRopes", Merged(Olmo3(), two_ropes).dump(), ""},
          {"Exaone4", Exaone4().dump(), "exaone4"},
          {"Exaone4Full", Merged(Exaone4(), full).dump(), "exaone4"},
          {"Ernie", Ernie().dump(), "ernie4_5"},
          {"ErnieBiases", Merged(Ernie(), biases).dump(), ""},
          {"SeedOss", SeedOss().dump(), "seed_oss"},
          {"SeedOssBiases",
           Merged(SeedOss(), {{"attention_out_bias", true}, {"mlp_bias", true}}).dump(), ""},
          {"Hunyuan", Hunyuan().dump(), "hunyuan-dense"},
          {"HunyuanBiases", Merged(Hunyuan(), hunyuan).dump(), ""},
          {"Arcee", Arcee().dump(), "arcee"},
          {"ArceeBiases", Merged(Arcee(), all_biases).dump(), ""},
          {"Apertus", Apertus().dump(), ""},
          {"ApertusUnscaled", Merged(Apertus(), unscaled).dump(), "apertus"},
          {"ApertusBiases", Merged(Apertus(), tied_biases).dump(), ""},
          {"Glm", Merged(Glm4(), glm).dump(), ""},
          {"Glm4", Glm4().dump(), "glm4"}};
}

bool IsRecentFamily(const std::string& config_json) {
  return std::ranges::contains(kArchitectures, ArchitectureOf(json::parse(config_json)));
}

std::vector<TensorShape> RecentFamilyTensors(const std::string& config_json) {
  return Lister(config_json).Take();
}

}  // namespace cria::support
