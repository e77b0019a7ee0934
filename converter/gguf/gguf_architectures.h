#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "converter/gguf/gguf_metadata.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// An architecture of GGUF files: its Hugging Face name, how its files differ, and what llama.cpp
// knows of it without a key.
struct GgufArchitecture {
  std::string_view name;  // `general.architecture`
  std::string_view hugging_face;
  // Rows of queries and keys that rope rotates together are stored next to each other.
  bool is_interleaved = false;
  // Always has biases; other architectures have them if the file has their tensors.
  bool qkv_bias = false;
  bool qk_norm = false;
  bool joint_qk_norm = false;
  bool qk_norm_after_rope = false;
  NormPlacement norm_placement = NormPlacement::kBefore;
  HiddenAct hidden_act = HiddenAct::kSilu;
  bool ungated_mlp = false;
  bool has_query_scaling = false;      // attention.temperature_scale
  std::string_view with_windows = {};  // The Hugging Face name of a model that has windows.
  bool scales_embedding = false;       // By sqrt(embedding_length).
  // The number of layers of the model whose scores are divided by sqrt(embedding_length / heads)
  // instead of sqrt(key_length); 0: none.
  uint32_t layers_with_other_scores = 0;
  uint32_t sliding_window = 0;  // Default.
  // Without a pattern in the file, all layers but every n-th have the window; 0: all layers.
  uint32_t sliding_window_pattern = 0;
  // Layers with the window have this base, unless the file has another, and no rope scaling.
  std::optional<float> sliding_rope_theta = {};
  bool sliding_has_rope_scaling = true;
  uint32_t no_rope_layer_interval = 0;  // Every n-th layer has no rope.
  // Layers without a window have no rope in a model that has windows.
  bool only_windows_have_rope = false;
  // rope.scaling.finetuned says whether there is rope; if it is absent, there is.
  bool has_rope_switch = false;
  std::optional<float> attn_logit_softcapping = {};  // Default.
  std::optional<float> final_logit_softcapping = {};
  bool has_fused_projections = false;  // attn_qkv, and gate and up in ffn_up.
  bool has_partial_rotary = false;
  // The name of the mixture with the architecture's other properties; empty: there is none.
  std::string_view mixture = {};
  std::string_view shared_mixture = {};  // The same, if there is a shared expert without a gate.
  bool normalizes_expert_weights = true;
  bool has_shared_expert_gate = false;
  bool has_longrope = false;
  // The mixture's scores are sigmoids, to which the file may add a bias.
  bool has_sigmoid_scores = false;
  // Layers without heads of keys and values have a short convolution, and norms' names differ.
  bool has_short_conv = false;
  // Layers with linear attention, in which heads of values are in tiled order or not, and gates of
  // the output in the others; norms' names differ, too.
  bool has_linear_attention = false;
  bool has_tiled_value_heads = false;
  // Layers without heads of keys and values are those of Mamba-2; the model may be a mixture.
  bool has_mamba = false;
  bool is_gemma4 = false;  // The keys and tensors of gguf_gemma4.h.
  // Sinks, biases of experts and of the router, and their clamped activation; yarn does not round
  // the ends of its ramp, although llama.cpp does.
  bool is_gpt_oss = false;
  // Other Hugging Face architectures whose files have this name and compute the same.
  std::span<const std::string_view> not_told_apart = {};
  // Keys that are used, although they are refused for other architectures.
  std::span<const std::string_view> own_keys = {};

  bool Uses(std::string_view key) const;
};

std::span<const GgufArchitecture> GgufArchitectures();

// The architecture of a file; fails if it is not known, and names it.
Result<GgufArchitecture> ReadGgufArchitecture(const GgufMetadata& metadata);

}  // namespace cria
