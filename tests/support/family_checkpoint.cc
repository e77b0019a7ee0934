#include "support/family_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>
#include <utility>

#include "support/gemma4_family.h"
#include "support/random_values.h"
#include "support/recent_families.h"

namespace cria::support {
namespace {

using nlohmann::json;

constexpr uint64_t kSeed = 7;

// The object with the text model's fields.
json TextConfig(const FamilyCheckpoint& checkpoint) {
  const json config = json::parse(checkpoint.config_json);
  return config.contains("text_config") ? config["text_config"] : config;
}

bool IsTied(const FamilyCheckpoint& checkpoint) {
  const bool is_tied_by_default = checkpoint.name.starts_with("Gemma") ||
                                  checkpoint.name.starts_with("SmolLm3") ||
                                  checkpoint.name.starts_with("Lfm");
  const json config = TextConfig(checkpoint);
  return config.value("tie_embedding", config.value("tie_word_embeddings", is_tied_by_default));
}

// Whether the class adds 1 to the weights of norms.
bool AddsOneToNorms(const FamilyCheckpoint& checkpoint) {
  return (checkpoint.name.starts_with("Gemma") && !checkpoint.name.starts_with("Gemma4")) ||
         checkpoint.name.starts_with("Qwen35") || checkpoint.name.starts_with("Qwen3Next");
}

bool IsRouter(std::string_view name) {
  return name.ends_with(".mlp.gate.weight") || name.ends_with(".block_sparse_moe.gate.weight") ||
         name.ends_with(".router.layer.weight") || name.ends_with(".router.proj.weight") ||
         name.ends_with(".feed_forward.gate.weight");
}

// Scales and norms of Gemma 4 whose names do not end like others'.
bool IsNearOne(std::string_view name) {
  return name.ends_with(".layer_scalar") || name.ends_with("scale") ||
         name.ends_with("_layernorm_1.weight") || name.ends_with("_layernorm_2.weight");
}

// The byte of MXFP4 that a random number stands for: two codes, or an exponent near that of
// weights.
uint8_t Mxfp4Byte(std::string_view name, float value) {
  const auto number = static_cast<unsigned>(std::abs(value) * 65536.0f);
  return static_cast<uint8_t>(name.ends_with("_scales") ? 121 + number % 4 : number % 256);
}

class TensorLister {
 public:
  explicit TensorLister(const FamilyCheckpoint& checkpoint)
      : name_(checkpoint.name),
        config_(TextConfig(checkpoint)),
        prefix_(name_.ends_with("Vision") ? "model.language_model." : "model.") {
    const size_t hidden = Size("hidden_size");
    tensors_.push_back({prefix_ + "embed_tokens.weight", {Size("vocab_size"), hidden}});
    tensors_.push_back({prefix_ + (IsLfm() ? "embedding_norm.weight" : "norm.weight"), {hidden}});
    if (!IsTied(checkpoint)) tensors_.push_back({"lm_head.weight", {Size("vocab_size"), hidden}});
    for (size_t i = 0; i < Size("num_hidden_layers"); ++i) {
      if (IsLfm()) {
        AddLfmLayer(i);
      } else {
        AddLayer(std::format("{}layers.{}.", prefix_, i), IsLinear(i), HasExperts(i));
      }
    }
    // Qwen3-Next's configuration has no such field.
    const bool has_mtp = config_.value("mtp_num_hidden_layers", 0) == 1;
    if (has_mtp || name_.ends_with("Mtp")) AddMtp();
    if (name_ == "Gemma3Vision") {
      tensors_.push_back({"model.vision_tower.vision_model.post_layernorm.weight", {32}});
      tensors_.push_back({"model.multi_modal_projector.mm_input_projection_weight", {32, hidden}});
    }
    if (name_ == "Qwen35Vision") {
      tensors_.push_back({"model.visual.merger.norm.weight", {32}});
      tensors_.push_back({"mtp.fc.weight", {hidden, 2 * hidden}});
    }
  }
  std::vector<TensorShape> Take() { return std::move(tensors_); }

 private:
  bool IsLfm() const { return name_.starts_with("Lfm"); }

  size_t Size(const char* field) const { return config_.at(field).get<size_t>(); }

  void AddLinear(const std::string& module, size_t outputs, size_t inputs, bool has_bias) {
    tensors_.push_back({module + ".weight", {outputs, inputs}});
    if (has_bias) tensors_.push_back({module + ".bias", {outputs}});
  }

  void AddNorm(const std::string& module, size_t size) {
    tensors_.push_back({module + ".weight", {size}});
  }

  // The layer that guesses tokens.
  void AddMtp() {
    const size_t hidden = Size("hidden_size");
    AddLinear("mtp.fc", hidden, 2 * hidden, false);
    AddNorm("mtp.pre_fc_norm_embedding", hidden);
    AddNorm("mtp.pre_fc_norm_hidden", hidden);
    AddNorm("mtp.norm", hidden);
    AddLayer("mtp.layers.0.", /*is_linear=*/false, config_.contains("num_experts"));
  }

  void AddLayer(const std::string& layer, bool is_linear, bool has_experts) {
    const size_t hidden = Size("hidden_size");
    const bool is_olmo2 = name_.starts_with("Olmo2");
    const bool is_gemma3 = name_.starts_with("Gemma3");
    if (is_linear) {
      AddDeltaNet(layer + "linear_attn.");
    } else {
      AddAttention(layer);
    }
    if (name_.starts_with("Mixtral") || name_.starts_with("GraniteMoe")) {
      AddExpertsOfABlock(layer + "block_sparse_moe.");
    } else if (has_experts) {
      AddExperts(layer + "mlp.");
    } else {
      AddFeedForward(layer + "mlp.", Size("intermediate_size"));
    }
    if (name_.starts_with("GraniteMoeShared")) {
      const size_t shared = Size("shared_intermediate_size");
      AddLinear(layer + "shared_mlp.input_linear", 2 * shared, hidden, false);
      AddLinear(layer + "shared_mlp.output_linear", hidden, shared, false);
    }
    AddNorm(layer + "post_attention_layernorm", hidden);
    if (!is_olmo2) AddNorm(layer + "input_layernorm", hidden);
    if (is_olmo2 || is_gemma3 || name_.starts_with("Gemma2")) {
      AddNorm(layer + "post_feedforward_layernorm", hidden);
    }
    if (is_gemma3 || name_.starts_with("Gemma2")) {
      AddNorm(layer + "pre_feedforward_layernorm", hidden);
    }
  }

  bool HasLinearAttention() const { return config_.contains("linear_num_key_heads"); }

  bool IsLinear(size_t index) const {
    if (!HasLinearAttention()) return false;
    if (config_.contains("layer_types")) {
      return config_.at("layer_types").at(index) == "linear_attention";
    }
    return (index + 1) % config_.value("full_attention_interval", size_t{4}) != 0;
  }

  // Qwen3.5 has separate matrices, Qwen3-Next joins them to two.
  void AddDeltaNet(const std::string& module) {
    const size_t hidden = Size("hidden_size");
    const size_t heads = Size("linear_num_value_heads");
    const size_t keys = Size("linear_num_key_heads") * Size("linear_key_head_dim");
    const size_t values = heads * Size("linear_value_head_dim");
    if (name_.starts_with("Qwen3Next")) {
      AddLinear(module + "in_proj_qkvz", 2 * keys + 2 * values, hidden, false);
      AddLinear(module + "in_proj_ba", 2 * heads, hidden, false);
    } else {
      AddLinear(module + "in_proj_qkv", 2 * keys + values, hidden, false);
      AddLinear(module + "in_proj_z", values, hidden, false);
      AddLinear(module + "in_proj_b", heads, hidden, false);
      AddLinear(module + "in_proj_a", heads, hidden, false);
    }
    tensors_.push_back(
        {module + "conv1d.weight", {2 * keys + values, 1, Size("linear_conv_kernel_dim")}});
    tensors_.push_back({module + "dt_bias", {heads}});
    tensors_.push_back({module + "A_log", {heads}});
    AddNorm(module + "norm", Size("linear_value_head_dim"));
    AddLinear(module + "out_proj", hidden, values, false);
  }

  // What layer_types says, or else the rules of the classes.
  std::string LfmLayerType(size_t index) const {
    if (config_.contains("layer_types")) return config_.at("layer_types").at(index);
    if (config_.contains("full_attn_idxs")) {
      const auto indices = config_.at("full_attn_idxs").get<std::vector<size_t>>();
      return std::ranges::contains(indices, index) ? "full_attention" : "conv";
    }
    if (name_.starts_with("Lfm2")) return "full_attention";
    if (index % 4 == 2) return "full_attention";
    return index % 4 == 0 && index > 0 ? "sliding_attention" : "conv";
  }

  size_t LfmWidth() const {
    auto width = config_.value("block_ff_dim", Size("intermediate_size"));
    const bool is_adjusted = name_.starts_with("Lfm2") && !name_.starts_with("Lfm2Moe") &&
                             config_.value("block_auto_adjust_ff_dim", true);
    if (!is_adjusted) return width;
    const double wanted =
        config_.value("block_ffn_dim_multiplier", 1.0) * static_cast<double>(2 * width / 3);
    const auto multiple = config_.value("block_multiple_of", size_t{256});
    return (static_cast<size_t>(wanted) + multiple - 1) / multiple * multiple;
  }

  void AddLfmMatrices(const std::string& module, size_t width) {
    const size_t hidden = Size("hidden_size");
    AddLinear(module + "w1", width, hidden, false);
    AddLinear(module + "w2", hidden, width, false);
    AddLinear(module + "w3", width, hidden, false);
  }

  void AddLfmLayer(size_t index) {
    const std::string layer = std::format("{}layers.{}.", prefix_, index);
    const size_t hidden = Size("hidden_size");
    if (LfmLayerType(index) == "conv") {
      const bool has_bias = config_.value("conv_bias", false);
      const size_t taps = config_.value("conv_L_cache", name_.starts_with("Lfm3") ? 7 : 3);
      AddLinear(layer + "conv.in_proj", 3 * hidden, hidden, has_bias);
      AddLinear(layer + "conv.out_proj", hidden, hidden, has_bias);
      tensors_.push_back({layer + "conv.conv.weight", {hidden, 1, taps}});
      if (has_bias) tensors_.push_back({layer + "conv.conv.bias", {hidden}});
    } else {
      AddAttention(layer);
    }
    const std::string feed_forward = layer + "feed_forward.";
    if (!name_.starts_with("Lfm2Moe") || index < Size("num_dense_layers")) {
      AddLfmMatrices(feed_forward, LfmWidth());
    } else {
      AddLinear(feed_forward + "gate", Size("num_experts"), hidden, false);
      if (config_.value("use_expert_bias", true)) {
        tensors_.push_back({feed_forward + "expert_bias", {Size("num_experts")}});
      }
      for (size_t expert = 0; expert < Size("num_experts"); ++expert) {
        AddLfmMatrices(std::format("{}experts.{}.", feed_forward, expert),
                       Size("moe_intermediate_size"));
      }
    }
    AddNorm(layer + "operator_norm", hidden);
    AddNorm(layer + "ffn_norm", hidden);
    if (!name_.starts_with("Lfm3") || !config_.value("use_sandwich_norm", true)) return;
    AddNorm(layer + "post_operator_norm", hidden);
    AddNorm(layer + "post_ffn_norm", hidden);
  }

  void AddAttention(const std::string& layer) {
    const std::string module = layer + "self_attn.";
    const size_t hidden = Size("hidden_size");
    const size_t head_dim = config_.value("head_dim", hidden / Size("num_attention_heads"));
    const size_t queries = Size("num_attention_heads") * head_dim;
    const size_t keys = Size("num_key_value_heads") * head_dim;
    const bool has_bias = config_.value("attention_bias", false);
    const bool has_qkv_bias =
        name_.starts_with("Qwen2Moe") ? config_.value("qkv_bias", true) : has_bias;
    if (name_.starts_with("Phi")) {
      AddLinear(module + "qkv_proj", queries + 2 * keys, hidden, false);
    } else {
      AddLinear(module + "q_proj", (HasLinearAttention() ? 2 : 1) * queries, hidden, has_qkv_bias);
      AddLinear(module + "k_proj", keys, hidden, has_qkv_bias);
      AddLinear(module + "v_proj", keys, hidden, has_qkv_bias);
    }
    const bool is_lfm2 = name_.starts_with("Lfm2");
    AddLinear(module + (is_lfm2 ? "out_proj" : "o_proj"), hidden, queries, has_bias);
    if (name_.starts_with("Lfm3") && config_.value("use_attention_gate", true)) {
      AddLinear(module + "g_proj", Size("num_attention_heads"), hidden, false);
    }
    if (is_lfm2) {
      AddNorm(module + "q_layernorm", head_dim);
      AddNorm(module + "k_layernorm", head_dim);
    }
    const bool has_joint_norm = name_.starts_with("Olmo");
    if (has_joint_norm || name_.starts_with("Gemma3") || name_.starts_with("Qwen3Moe") ||
        name_.starts_with("Lfm3") || HasLinearAttention()) {
      AddNorm(module + "q_norm", has_joint_norm ? queries : head_dim);
      AddNorm(module + "k_norm", has_joint_norm ? keys : head_dim);
    }
  }

  void AddFeedForward(const std::string& module, size_t width) {
    const size_t hidden = Size("hidden_size");
    const bool has_bias = config_.value("mlp_bias", false);
    if (name_.starts_with("Phi")) {
      AddLinear(module + "gate_up_proj", 2 * width, hidden, false);
    } else {
      AddLinear(module + "gate_proj", width, hidden, has_bias);
      AddLinear(module + "up_proj", width, hidden, has_bias);
    }
    AddLinear(module + "down_proj", hidden, width, has_bias);
  }

  bool HasExperts(size_t index) const {
    const auto dense = config_.value("mlp_only_layers", std::vector<size_t>());
    return config_.contains("num_experts") && !std::ranges::contains(dense, index) &&
           (index + 1) % config_.value("decoder_sparse_step", size_t{1}) == 0;
  }

  void AddExperts(const std::string& module) {
    const size_t hidden = Size("hidden_size");
    const size_t width =
        Size(name_.starts_with("Olmoe") ? "intermediate_size" : "moe_intermediate_size");
    AddLinear(module + "gate", Size("num_experts"), hidden, false);
    for (size_t expert = 0; expert < Size("num_experts"); ++expert) {
      AddFeedForward(std::format("{}experts.{}.", module, expert), width);
    }
    if (!name_.starts_with("Qwen2Moe") && !HasLinearAttention()) return;
    AddFeedForward(module + "shared_expert.", Size("shared_expert_intermediate_size"));
    AddLinear(module + "shared_expert_gate", 1, hidden, false);
  }

  // Adds experts of Mixtral, or of Granite, which has one tensor for all experts.
  void AddExpertsOfABlock(const std::string& module) {
    const size_t hidden = Size("hidden_size");
    const size_t width = Size("intermediate_size");
    const size_t experts = Size("num_local_experts");
    if (name_.starts_with("Granite")) {
      AddLinear(module + "router.layer", experts, hidden, false);
      tensors_.push_back({module + "input_linear.weight", {experts, 2 * width, hidden}});
      tensors_.push_back({module + "output_linear.weight", {experts, hidden, width}});
      return;
    }
    AddLinear(module + "gate", experts, hidden, false);
    for (size_t expert = 0; expert < experts; ++expert) {
      const std::string matrices = std::format("{}experts.{}.", module, expert);
      AddLinear(matrices + "w1", width, hidden, false);
      AddLinear(matrices + "w2", hidden, width, false);
      AddLinear(matrices + "w3", width, hidden, false);
    }
  }

  std::string name_;
  json config_;
  std::string prefix_;
  std::vector<TensorShape> tensors_;
};

}  // namespace

std::vector<TensorShape> FamilyTensors(const FamilyCheckpoint& checkpoint) {
  if (IsGemma4(checkpoint.config_json)) return Gemma4Tensors(checkpoint.config_json);
  if (IsRecentFamily(checkpoint.config_json)) return RecentFamilyTensors(checkpoint.config_json);
  return TensorLister(checkpoint).Take();
}

std::vector<float> FamilyValues(const FamilyCheckpoint& checkpoint, const TensorShape& tensor) {
  return FamilyValues(checkpoint, tensor, 0, tensor.elements());
}

std::vector<float> FamilyValues(const FamilyCheckpoint& checkpoint, const TensorShape& tensor,
                                size_t first, size_t count) {
  std::vector<float> values(count);
  // A model within another has the same weights.
  std::string name = tensor.name;
  if (name.starts_with("model.language_model.")) name.erase(6, 15);
  if (name.starts_with("model.text_model.")) name.erase(6, 11);
  FillNormal(SeedFor(kSeed, name), first, values);
  if (tensor.is_bytes) {
    for (float& value : values) value = Mxfp4Byte(name, value);
    return values;
  }
  float center = 0.0f;
  float deviation = 0.3f;
  if (tensor.shape.size() > 1) {
    deviation = 1.0f / std::sqrt(static_cast<float>(tensor.shape.back()));
  } else if (IsNearOne(name) || name.ends_with(".linear_attn.norm.weight") ||
             (name.ends_with("norm.weight") && !AddsOneToNorms(checkpoint))) {
    center = 1.0f;
    // Scores are not scaled, and would be so large otherwise that each head reads one position
    // alone.
    if (name.ends_with(".q_norm.weight") && checkpoint.name.starts_with("Gemma4")) {
      center = 0.25f;
      deviation = 0.05f;
    }
  } else if (name.ends_with(".dt_bias") || name.ends_with(".A_log")) {
    // States forget a part of what they have, by different rates.
    center = -1.0f;
    deviation = 1.0f;
  }
  // Numbers that are the same in all models.
  if (name.ends_with(".act_fn.beta")) return {0.5f};
  if (name.ends_with(".act_fn.eps")) return {-1e-6f};
  if (name.ends_with("embed_tokens.weight")) deviation *= checkpoint.embedding_scale;
  for (float& value : values) value = center + deviation * value;
  if (checkpoint.router_skew != 0.0 && IsRouter(name)) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto expert = static_cast<double>((first + i) / tensor.shape.back());
      values[i] *= static_cast<float>(std::pow(expert + 1.0, -checkpoint.router_skew));
    }
  }
  return values;
}

}  // namespace cria::support
