#include "converter/checkpoint/fold_weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

namespace cria {
namespace {

// The ends of names of tensors whose products are added to the hidden state.
constexpr std::array<std::string_view, 9> kWritersOfHiddenState = {".o_proj.weight",
                                                                   ".o_proj.bias",
                                                                   ".down_proj.weight",
                                                                   ".down_proj.bias",
                                                                   ".conv.out_proj.weight",
                                                                   ".conv.out_proj.bias",
                                                                   ".linear_attn.out_proj.weight",
                                                                   ".mamba.out_proj.weight",
                                                                   ".mamba.out_proj.bias"};

// What linear attention reads is normalized without this.
constexpr std::string_view kNormWithoutOne = ".linear_attn.norm.weight";

bool EndsWithOneOf(std::string_view name, std::span<const std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

// A norm of queries would undo a factor of the projection before it.
bool ScalesScores(std::string_view name, const ModelConfig& config) {
  if (config.qk_norm || config.joint_qk_norm) return name.ends_with(".q_norm.weight");
  return name.ends_with(".q_proj.weight") || name.ends_with(".q_proj.bias");
}

// The root of the size of heads in the layer that the tensor belongs to.
double RootOfHeadDim(std::string_view name, const ModelConfig& config) {
  constexpr std::string_view kLayers = "model.layers.";
  size_t layer = 0;
  if (name.starts_with(kLayers)) {
    std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  }
  if (layer >= config.num_hidden_layers) return 1.0;  // MapTensors refuses the tensor.
  return std::sqrt(config.head_dim_of(config.layer_kind(layer)));
}

// Per-layer inputs are (sqrt(size) row + norm(projection / sqrt(hidden_size))) / sqrt(2).
double PerLayerFactorOf(std::string_view name, const ModelConfig& config) {
  if (name == "model.embed_tokens_per_layer.weight") {
    return std::sqrt(config.hidden_size_per_layer_input / 2.0);
  }
  if (name == "model.per_layer_projection_norm.weight") return std::sqrt(0.5);
  if (name == "model.per_layer_model_projection.weight") {
    return 1.0 / std::sqrt(config.hidden_size);
  }
  return 1.0;
}

double FactorOf(std::string_view name, const Checkpoint& checkpoint) {
  const WeightFolding& folding = checkpoint.folding;
  const bool is_tied = checkpoint.config.tie_word_embeddings;
  if (name == "model.embed_tokens.weight") return folding.embedding_multiplier;
  // A tied head that is stored, too, must stay the same as the embedding.
  if (name == "lm_head.weight") return is_tied ? folding.embedding_multiplier : 1.0;
  if (name == "model.norm.weight") {
    return 1.0 / (folding.logits_divisor * (is_tied ? folding.embedding_multiplier : 1.0));
  }
  if (EndsWithOneOf(name, kWritersOfHiddenState)) {
    const bool is_of_expert = name.contains(".mlp.experts.");
    return folding.residual_multiplier * (is_of_expert ? folding.routed_scaling_factor : 1.0);
  }
  if (ScalesScores(name, checkpoint.config)) {
    return folding.score_factor *
           (folding.has_unscaled_scores ? RootOfHeadDim(name, checkpoint.config) : 1.0);
  }
  return PerLayerFactorOf(name, checkpoint.config);
}

}  // namespace

void MoveAttentionFactor(ModelConfig& config, WeightFolding& folding) {
  const auto attends = std::ranges::find_if(config.layer_kinds, &LayerKind::has_attention);
  if (config.rotary_dim == 0 || attends == config.layer_kinds.end() ||
      std::ranges::count_if(config.layer_kinds, &LayerKind::has_attention) != 1) {
    return;
  }
  // The factor is one of queries and of keys.
  float& factor = attends->rope_scaling.attention_factor;
  folding.rotated_score_factor = double{factor} * factor;
  factor = 1.0f;
}

void FoldIntoWeights(Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  for (auto& [name, source] : checkpoint.tensors) {
    if (checkpoint.folding.adds_one_to_norms && name.ends_with("norm.weight") &&
        !name.ends_with(kNormWithoutOne)) {
      source.addend = 1.0f;
    }
    source.factor *= static_cast<float>(FactorOf(name, checkpoint));
    if (checkpoint.folding.rotated_score_factor != 1.0 && ScalesScores(name, config)) {
      source.row_factor = {.period = config.head_dim,
                           .count = config.rotary_dim,
                           .factor = static_cast<float>(checkpoint.folding.rotated_score_factor)};
    }
  }
  checkpoint.folding = {};
}

}  // namespace cria
