#include "support/family_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "support/byte_level_tokenizer.h"
#include "support/family_gguf.h"
#include "support/files.h"
#include "support/random_values.h"

namespace cria::support {
namespace {

using nlohmann::json;

constexpr uint64_t kSeed = 7;

json Merged(json fields, const json& more) {
  fields.update(more);
  return fields;
}

json Sizes(const char* architecture, const char* model_type, int layers) {
  return {{"architectures", {architecture}},
          {"model_type", model_type},
          {"hidden_size", 64},
          {"intermediate_size", 160},
          {"num_hidden_layers", layers},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"vocab_size", 300},
          {"max_position_embeddings", 128}};
}

json Gemma() {
  return Merged(Sizes("GemmaForCausalLM", "gemma", 2),
                {{"head_dim", 16}, {"hidden_act", "gelu_pytorch_tanh"}, {"rms_norm_eps", 1e-6}});
}

// Scores and logits are of order 1 and 8, so that these caps change them.
json Gemma2() {
  return Merged(Sizes("Gemma2ForCausalLM", "gemma2", 3),
                {{"head_dim", 16},
                 {"hidden_act", "gelu_pytorch_tanh"},
                 {"hidden_activation", "gelu_pytorch_tanh"},
                 {"query_pre_attn_scalar", 16},
                 {"sliding_window", 12},
                 {"attn_logit_softcapping", 1.5},
                 {"final_logit_softcapping", 3.0}});
}

json Gemma3() {
  return Merged(Sizes("Gemma3ForCausalLM", "gemma3_text", 4),
                {{"head_dim", 16},
                 {"hidden_activation", "gelu_pytorch_tanh"},
                 {"query_pre_attn_scalar", 16},
                 {"sliding_window", 12},
                 {"sliding_window_pattern", 3},
                 {"rope_theta", 1000000.0},
                 {"rope_local_base_freq", 10000.0},
                 {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}});
}

json Gemma3NewForm() {
  json fields = Gemma3();
  for (const char* name :
       {"sliding_window_pattern", "rope_theta", "rope_local_base_freq", "rope_scaling"}) {
    fields.erase(name);
  }
  return Merged(
      fields,
      {{"layer_types",
        {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}},
       {"rope_parameters",
        {{"full_attention", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500000.0}}},
         {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 5000.0}}}}},
       {"query_pre_attn_scalar", 24},
       {"final_logit_softcapping", 3.0},
       {"attention_bias", true}});
}

json Gemma3Vision() {
  json text = Gemma3();
  text.erase("architectures");
  return {{"architectures", {"Gemma3ForConditionalGeneration"}},
          {"model_type", "gemma3"},
          {"text_config", text},
          {"vision_config",
           {{"model_type", "siglip_vision_model"},
            {"hidden_size", 32},
            {"num_attention_heads", 4},
            {"num_hidden_layers", 1},
            {"intermediate_size", 32},
            {"image_size", 28},
            {"patch_size", 14}}},
          {"mm_tokens_per_image", 4}};
}

json Phi3() {
  return Merged(Sizes("Phi3ForCausalLM", "phi3", 2), {{"hidden_act", "silu"},
                                                      {"sliding_window", 12},
                                                      {"original_max_position_embeddings", 128},
                                                      {"rms_norm_eps", 1e-5},
                                                      {"rope_scaling", nullptr}});
}

json Longrope(size_t num_frequencies) {
  json short_factor = json::array();
  json long_factor = json::array();
  for (size_t i = 0; i < num_frequencies; ++i) {
    short_factor.push_back(1.0 + 0.05 * static_cast<double>(i));
    long_factor.push_back(1.0 + 0.75 * static_cast<double>(i));
  }
  return {{"type", "longrope"}, {"short_factor", short_factor}, {"long_factor", long_factor}};
}

json Phi3Longrope() {
  return Merged(Phi3(), {{"sliding_window", nullptr},
                         {"original_max_position_embeddings", 32},
                         {"rope_scaling", Longrope(8)}});
}

json Phi4Mini() {
  return Merged(Phi3Longrope(), {{"partial_rotary_factor", 0.75},
                                 {"tie_word_embeddings", true},
                                 {"rope_scaling", Longrope(6)}});
}

json SmolLm3() {
  return Merged(Sizes("SmolLM3ForCausalLM", "smollm3", 5), {{"rope_theta", 5000000.0},
                                                            {"rms_norm_eps", 1e-6},
                                                            {"no_rope_layer_interval", 4},
                                                            {"use_sliding_window", false}});
}

json SmolLm3Window() {
  return Merged(Sizes("SmolLM3ForCausalLM", "smollm3", 3), {{"no_rope_layers", {0, 1, 0}},
                                                            {"use_sliding_window", true},
                                                            {"sliding_window", 12},
                                                            {"attention_bias", true},
                                                            {"mlp_bias", true},
                                                            {"tie_word_embeddings", false}});
}

json Granite() {
  return Merged(Sizes("GraniteForCausalLM", "granite", 2), {{"embedding_multiplier", 6.0},
                                                            {"attention_multiplier", 0.125},
                                                            {"residual_multiplier", 0.22},
                                                            {"logits_scaling", 0.5},
                                                            {"rms_norm_eps", 1e-5},
                                                            {"rope_theta", 10000.0},
                                                            {"tie_word_embeddings", true}});
}

json Olmo2() {
  return Merged(Sizes("Olmo2ForCausalLM", "olmo2", 2),
                {{"rope_theta", 500000.0}, {"rms_norm_eps", 1e-6}});
}

// The object with the text model's fields.
json TextConfig(const FamilyCheckpoint& checkpoint) {
  const json config = json::parse(checkpoint.config_json);
  return config.contains("text_config") ? config["text_config"] : config;
}

bool IsTied(const FamilyCheckpoint& checkpoint) {
  const bool is_tied_by_default =
      checkpoint.name.starts_with("Gemma") || checkpoint.name.starts_with("SmolLm3");
  return TextConfig(checkpoint).value("tie_word_embeddings", is_tied_by_default);
}

class TensorLister {
 public:
  explicit TensorLister(const FamilyCheckpoint& checkpoint)
      : name_(checkpoint.name),
        config_(TextConfig(checkpoint)),
        prefix_(name_ == "Gemma3Vision" ? "model.language_model." : "model.") {
    const size_t hidden = Size("hidden_size");
    tensors_.push_back({prefix_ + "embed_tokens.weight", {Size("vocab_size"), hidden}});
    tensors_.push_back({prefix_ + "norm.weight", {hidden}});
    if (!IsTied(checkpoint)) tensors_.push_back({"lm_head.weight", {Size("vocab_size"), hidden}});
    for (size_t i = 0; i < Size("num_hidden_layers"); ++i) AddLayer(i);
    if (name_ == "Gemma3Vision") {
      tensors_.push_back({"model.vision_tower.vision_model.post_layernorm.weight", {32}});
      tensors_.push_back({"model.multi_modal_projector.mm_input_projection_weight", {32, hidden}});
    }
  }
  std::vector<TensorShape> Take() { return std::move(tensors_); }

 private:
  size_t Size(const char* field) const { return config_.at(field).get<size_t>(); }

  void AddLinear(const std::string& module, size_t outputs, size_t inputs, bool has_bias) {
    tensors_.push_back({module + ".weight", {outputs, inputs}});
    if (has_bias) tensors_.push_back({module + ".bias", {outputs}});
  }

  void AddLayer(size_t index) {
    const std::string layer = std::format("{}layers.{}.", prefix_, index);
    const size_t hidden = Size("hidden_size");
    const size_t head_dim = config_.value("head_dim", hidden / Size("num_attention_heads"));
    const size_t queries = Size("num_attention_heads") * head_dim;
    const size_t keys = Size("num_key_value_heads") * head_dim;
    const size_t intermediate = Size("intermediate_size");
    const bool attention_bias = config_.value("attention_bias", false);
    const bool mlp_bias = config_.value("mlp_bias", false);
    const bool is_olmo2 = name_.starts_with("Olmo2");
    const bool is_gemma3 = name_.starts_with("Gemma3");
    if (name_.starts_with("Phi")) {
      AddLinear(layer + "self_attn.qkv_proj", queries + 2 * keys, hidden, false);
      AddLinear(layer + "mlp.gate_up_proj", 2 * intermediate, hidden, false);
    } else {
      AddLinear(layer + "self_attn.q_proj", queries, hidden, attention_bias);
      AddLinear(layer + "self_attn.k_proj", keys, hidden, attention_bias);
      AddLinear(layer + "self_attn.v_proj", keys, hidden, attention_bias);
      AddLinear(layer + "mlp.gate_proj", intermediate, hidden, mlp_bias);
      AddLinear(layer + "mlp.up_proj", intermediate, hidden, mlp_bias);
    }
    AddLinear(layer + "self_attn.o_proj", hidden, queries, attention_bias);
    AddLinear(layer + "mlp.down_proj", hidden, intermediate, mlp_bias);
    if (is_olmo2 || is_gemma3) {
      tensors_.push_back({layer + "self_attn.q_norm.weight", {is_olmo2 ? queries : head_dim}});
      tensors_.push_back({layer + "self_attn.k_norm.weight", {is_olmo2 ? keys : head_dim}});
    }
    tensors_.push_back({layer + "post_attention_layernorm.weight", {hidden}});
    if (!is_olmo2) tensors_.push_back({layer + "input_layernorm.weight", {hidden}});
    if (is_olmo2 || is_gemma3 || name_.starts_with("Gemma2")) {
      tensors_.push_back({layer + "post_feedforward_layernorm.weight", {hidden}});
    }
    if (is_gemma3 || name_.starts_with("Gemma2")) {
      tensors_.push_back({layer + "pre_feedforward_layernorm.weight", {hidden}});
    }
  }

  std::string name_;
  json config_;
  std::string prefix_;
  std::vector<TensorShape> tensors_;
};

}  // namespace

std::vector<FamilyCheckpoint> FamilyCheckpoints() {
  const json gemma_biases = {
      {"hidden_act", "gelu"}, {"attention_bias", true}, {"tie_word_embeddings", false}};
  const json no_caps = {{"attn_logit_softcapping", nullptr},
                        {"final_logit_softcapping", nullptr},
                        {"query_pre_attn_scalar", 24},
                        {"hidden_activation", "gelu"},
                        {"hidden_act", "gelu"},
                        {"layer_types", {"full_attention", "sliding_attention", "full_attention"}}};
  const json granite_biases = {{"attention_bias", true},
                               {"mlp_bias", true},
                               {"attention_multiplier", 0.35},
                               {"logits_scaling", 2.0},
                               {"tie_word_embeddings", false}};
  const json olmo2_biases = {{"attention_bias", true},
                             {"num_key_value_heads", 4},
                             {"tie_word_embeddings", true},
                             {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}};
  return {{"Gemma", Gemma().dump(), "gemma"},
          {"GemmaBiases", Merged(Gemma(), gemma_biases).dump(), "gemma"},
          {"Gemma2", Gemma2().dump(), "gemma2"},
          {"Gemma2NoCaps", Merged(Gemma2(), no_caps).dump(), ""},
          {"Gemma3", Gemma3().dump(), "gemma3"},
          {"Gemma3NewForm", Gemma3NewForm().dump(), ""},
          {"Gemma3Vision", Gemma3Vision().dump(), ""},
          {"Phi3", Phi3().dump(), "phi3"},
          {"Phi3Longrope", Phi3Longrope().dump(), "phi3"},
          {"Phi4Mini", Phi4Mini().dump(), "phi3"},
          {"SmolLm3", SmolLm3().dump(), "smollm3"},
          {"SmolLm3Window", SmolLm3Window().dump(), ""},
          {"Granite", Granite().dump(), "granite"},
          {"GraniteBiases", Merged(Granite(), granite_biases).dump(), "granite"},
          {"Olmo2", Olmo2().dump(), "olmo2"},
          {"Olmo2Biases", Merged(Olmo2(), olmo2_biases).dump(), "olmo2"}};
}

FamilyCheckpoint FamilyNamed(std::string_view name) {
  for (FamilyCheckpoint& checkpoint : FamilyCheckpoints()) {
    if (checkpoint.name == name) return checkpoint;
  }
  throw std::runtime_error("no family is named " + std::string(name));
}

std::vector<TensorShape> FamilyTensors(const FamilyCheckpoint& checkpoint) {
  return TensorLister(checkpoint).Take();
}

std::vector<float> FamilyValues(const FamilyCheckpoint& checkpoint, const TensorShape& tensor) {
  std::vector<float> values(tensor.elements());
  // A model within another has the same weights.
  std::string name = tensor.name;
  if (name.starts_with("model.language_model.")) name.erase(6, 15);
  FillNormal(SeedFor(kSeed, name), 0, values);
  float center = 0.0f;
  float deviation = 0.3f;
  if (tensor.shape.size() == 2) {
    deviation = 1.0f / std::sqrt(static_cast<float>(tensor.shape[1]));
  } else if (name.ends_with("norm.weight") && !checkpoint.name.starts_with("Gemma")) {
    center = 1.0f;
  }
  for (float& value : values) value = center + deviation * value;
  return values;
}

void WriteFamilyDirectory(const FamilyCheckpoint& checkpoint,
                          const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  const json text = TextConfig(checkpoint);
  const ByteLevelTokenizer tokenizer = MakeByteLevelTokenizer(text.at("vocab_size").get<size_t>());
  const json ids = {{"bos_token_id", tokenizer.SpecialTokenId("<|begin_of_text|>")},
                    {"eos_token_id", tokenizer.SpecialTokenId("<|end_of_text|>")}};
  const json config = Merged(json::parse(checkpoint.config_json), ids);
  WriteFile(directory / "config.json", config.dump(1));
  WriteFile(directory / "generation_config.json", ids.dump(1));
  const std::vector<TensorShape> tensors = FamilyTensors(checkpoint);
  SafetensorsWriter writer(directory / "model.safetensors", StorageType::kF32, tensors);
  for (const TensorShape& tensor : tensors) writer.Write(FamilyValues(checkpoint, tensor));
  writer.Finish();
  WriteFile(directory / "tokenizer.json", TokenizerJson(tokenizer, false));
  WriteFile(directory / "tokenizer_config.json", TokenizerConfigJson(ChatTemplateText::kNone));
}

void WriteFamilyGguf(const FamilyCheckpoint& checkpoint, const std::filesystem::path& path) {
  FamilyGgufWriter writer(checkpoint.gguf_architecture, checkpoint.config_json);
  for (const TensorShape& tensor : FamilyTensors(checkpoint)) {
    writer.Add({tensor.shape, FamilyValues(checkpoint, tensor)}, tensor.name);
  }
  writer.Write(path);
}

}  // namespace cria::support
