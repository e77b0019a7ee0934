#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cria/error.h"

namespace cria {

inline constexpr uint32_t kMaxHeadDim = 1024;
inline constexpr uint32_t kMaxLinearKeyHeadDim = 256;
inline constexpr uint32_t kMaxMambaStateDim = 256;
inline constexpr uint32_t kMaxHiddenLayers = 1024;
// Each kind of layers may take a rope table of its own.
inline constexpr size_t kMaxLayerKinds = 8;

// How rotary frequencies are stretched beyond the trained context; fields as in Hugging Face's
// `rope_scaling`.
struct RopeScaling {
  enum class Type : uint8_t { kNone, kLinear, kLlama3, kDynamic, kYarn, kLongrope, kProportional };

  Type type = Type::kNone;
  float factor = 1.0f;
  float low_freq_factor = 1.0f;  // kLlama3 only, like the next field.
  float high_freq_factor = 4.0f;
  uint32_t original_max_position_embeddings = 0;  // kLlama3, kYarn and kLongrope only.
  // kYarn and kLongrope only: the factor of queries and of keys, which transformers applies through
  // the cosines and sines. It includes a checkpoint's mscale and mscale_all_dim.
  float attention_factor = 1.0f;
  float beta_fast = 32.0f;  // kYarn only, like the next two.
  float beta_slow = 1.0f;
  bool truncate = true;
  // kLongrope only: [rotary_channels / 2], what each frequency is divided by. The second list is
  // for contexts that are longer than original_max_position_embeddings.
  std::vector<float> short_factor;
  std::vector<float> long_factor;
  // kProportional only: only this part of the pairs turns, those with the highest frequencies. The
  // frequencies are those of all pairs, and the factor divides them.
  float partial_rotary_factor = 0.0f;

  bool operator==(const RopeScaling&) const = default;
};

// What the gate's rows go through in a feed-forward: act(gate) * up.
enum class HiddenAct : uint8_t {
  kSilu,
  kGeluTanh,  // Hendrycks and Gimpel 2016, the approximation by tanh.
  kGelu,      // Hendrycks and Gimpel 2016, with the error function.
  // The next ones only where there is no gate, and act(up) is what the second matrix multiplies.
  kRelu2,  // The square of the positive part (So et al. 2021).
  kXielu,  // Huang and Schlag 2024, with numbers of each layer.
};

// Where the norms of a block (attention, feed-forward) are.
enum class NormPlacement : uint8_t {
  kBefore,          // The block's input is normalized.
  kAfter,           // The block's output is normalized, before it is added to the hidden state.
  kBeforeAndAfter,  // Both.
};

// What makes a router's scores of its products.
enum class ScoringFunc : uint8_t {
  kSoftmax,  // Over all experts.
  kSigmoid,  // For each by itself. norm_topk_prob then divides by the sum plus 1e-6.
};

// How many numbers of its own kXielu has in each layer.
inline constexpr size_t kXieluNumbers = 4;

// What differs between the layers of one model. All layers of most models are alike; other models
// have windows in some layers only, and frequencies of their own there, or none.
struct LayerKind {
  // How many positions a token attends to, its own included; 0: all so far.
  uint32_t sliding_window = 0;
  float rope_theta = 0.0f;
  RopeScaling rope_scaling;
  bool no_rope = false;    // Queries and keys are not rotated.
  bool dense_mlp = false;  // The feed-forward is dense in a model with experts.
  // The token mixer is a short convolution in place of attention. The fields of attention then have
  // fixed values, so that kinds with the same mathematics are equal: no window, no_rope and no
  // rope_scaling. rope_theta is not used; the converter gives it the checkpoint's.
  bool short_conv = false;
  // The token mixer is a gated delta rule in place of attention, whose fields then have the values
  // that they have with short_conv.
  bool linear_attention = false;
  // The token mixer is Mamba-2 in place of attention, whose fields again have those values.
  bool mamba = false;
  // The sizes of attention where they are not head_dim and num_key_value_heads; otherwise 0.
  uint32_t global_head_dim = 0;
  uint32_t num_global_key_value_heads = 0;
  // 1 + the index of an earlier layer, whose keys and values attention reads because it has none of
  // its own; otherwise 0.
  uint32_t kv_shared_layer = 0;
  bool use_double_wide_mlp = false;  // The dense feed-forward has twice intermediate_size channels.

  // Whether the token mixer is attention, and so the layer has keys and values.
  bool has_attention() const { return !short_conv && !linear_attention && !mamba; }
  // Whether the layer keeps something of each token for later ones.
  bool stores_tokens() const { return kv_shared_layer == 0; }
  // The factor of attention scores in addition to 1 / sqrt(head_dim).
  float score_factor() const;
  bool operator==(const LayerKind&) const = default;
};

// The hyperparameters of a Llama-family decoder, under Hugging Face's names.
struct ModelConfig {
  // The checkpoint's name of its family, such as "LlamaForCausalLM". It is only shown: one decoder
  // runs all families, whose differences are in the other fields.
  std::string architecture;
  uint32_t hidden_size = 0;
  uint32_t intermediate_size = 0;
  uint32_t num_hidden_layers = 0;
  uint32_t num_attention_heads = 0;
  uint32_t num_key_value_heads = 0;
  uint32_t head_dim = 0;
  uint32_t vocab_size = 0;
  uint32_t max_position_embeddings = 0;
  float rms_norm_eps = 0.0f;
  bool tie_word_embeddings = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;  // For gate, up and down.
  // Each head of queries and keys is normalized separately before rope, with one weight for all
  // heads of a layer.
  bool qk_norm = false;
  // At least one, and each has a layer.
  std::vector<LayerKind> layer_kinds = std::vector<LayerKind>(1);
  // [num_hidden_layers] indices into layer_kinds; empty if there is one kind.
  std::vector<uint8_t> kind_of_layer;
  // Between the embedding and the last norm, the hidden state is multiplied by the Hadamard matrix
  // of ops/hadamard.h, and the matrices of the layers are made for that. Only the converter sets
  // it.
  bool rotated_residual = false;
  HiddenAct hidden_act = HiddenAct::kSilu;
  NormPlacement norm_placement = NormPlacement::kBefore;
  // If it is not 0, a score s becomes cap * tanh(s / cap) before the softmax.
  float attn_logit_softcapping = 0.0f;
  float final_logit_softcapping = 0.0f;  // Caps logits in the same way.
  uint32_t rotary_dim = 0;               // rotary_channels(), or 0 for all of a head.
  // All heads of queries are normalized together before rope, and all heads of keys.
  bool joint_qk_norm = false;
  // 0: every feed-forward is dense, and the other fields of a mixture are 0, too.
  uint32_t num_experts = 0;
  uint32_t num_experts_per_tok = 0;
  uint32_t moe_intermediate_size = 0;
  bool norm_topk_prob = false;  // The weights of the chosen experts have the sum 1.
  uint32_t shared_expert_intermediate_size = 0;
  bool shared_expert_gate = false;
  // The short convolutions' taps, of which the last is the current token's; 0 if no layer has one.
  uint32_t conv_L_cache = 0;
  bool conv_bias = false;  // For the convolution and both projections around it.
  // The channels of short convolutions; 0: hidden_size, as in every whole model. A rank has a part
  // of them.
  uint32_t conv_dim = 0;
  ScoringFunc scoring_func = ScoringFunc::kSoftmax;
  // A number for each expert is added to the scores that experts are chosen by, but not to their
  // weights. Only with kSigmoid.
  bool use_expert_bias = false;
  // What each head of attention writes is multiplied by a sigmoid of a product with its input.
  bool use_attention_gate = false;
  // What attention writes to each channel is multiplied by a sigmoid of one more row of the fused
  // projection. Never with use_attention_gate.
  bool attn_output_gate = false;
  // The sizes of layers with linear_attention; 0 if there are none.
  uint32_t linear_conv_kernel_dim = 0;  // Taps, of which the last is the current token's.
  uint32_t linear_key_head_dim = 0;
  uint32_t linear_value_head_dim = 0;
  uint32_t linear_num_key_heads = 0;
  uint32_t linear_num_value_heads = 0;
  // Value head i uses key head i % linear_num_key_heads. Otherwise, consecutive value heads share
  // a key head.
  bool linear_tiled_value_heads = false;
  // Queries of later positions are multiplied by query_factor(); 0: they are not, and both are 0.
  float llama_4_scaling_beta = 0.0f;
  uint32_t llama_4_scaling_positions = 0;
  // With qk_norm: heads are normalized after rope. The weights of keys' norms are 1 then, so that
  // keys of the cache can be turned to other positions.
  bool qk_norm_after_rope = false;
  bool ungated_mlp = false;  // Feed-forwards have no gate: down_proj(act(up_proj(x))).
  // kXielu only: [num_hidden_layers][kXieluNumbers], as ops::XieluNumbers has them.
  std::vector<float> xielu;
  bool v_norm = false;  // With qk_norm: heads of values are normalized, too, without weights.
  // Each layer ends with a block that multiplies its gates by so many numbers, which depend on the
  // token and on its embedding; 0: there is no such block.
  uint32_t hidden_size_per_layer_input = 0;
  bool layer_scalar =
      false;  // The hidden state is multiplied by a number at the end of each layer.
  // The feed-forward is the sum of a dense one and a mixture of experts, whose inputs and outputs
  // have norms of their own.
  bool enable_moe_block = false;
  // The sizes of layers with mamba; 0 if there are none.
  uint32_t mamba_d_conv = 0;   // Taps, of which the last is the current token's.
  uint32_t mamba_d_state = 0;  // Rows of each head's state.
  uint32_t mamba_d_head = 0;   // Its columns.
  uint32_t mamba_n_heads = 0;
  uint32_t mamba_n_groups = 0;   // Consecutive heads share keys and queries, the paper's B and C.
  bool mamba_conv_bias = false;  // For the convolution.
  bool mamba_proj_bias = false;  // For both projections around it.
  // Each head of attention has a score of its own for no position, which takes a part of the
  // softmax.
  bool attn_sinks = false;
  bool router_bias = false;   // Added to the router's products before anything is made of them.
  bool experts_bias = false;  // Gate, up and down of each expert.
  // If the limit is not 0, experts have the activation of ops::ClampedSwiGlu with these numbers;
  // otherwise both are 0.
  float swiglu_alpha = 0.0f;
  float swiglu_limit = 0.0f;
  // 0 or 1: behind the model's layers stands one more, with the index num_hidden_layers, that
  // guesses the token after the next one (multi-token prediction, DeepSeek-AI 2024).
  uint32_t mtp_num_hidden_layers = 0;

  // The layers of the model, and behind them that which guesses.
  size_t num_stored_layers() const { return size_t{num_hidden_layers} + mtp_num_hidden_layers; }
  // The layer that guesses is of the first kind with attention.
  const LayerKind& layer_kind(size_t layer) const {
    if (layer == num_hidden_layers) return attention_kind();
    return layer_kinds[kind_of_layer.empty() ? 0 : kind_of_layer[layer]];
  }
  // The first kind with attention, which every model has.
  const LayerKind& attention_kind() const;
  // Whether the layer's feed-forward is a mixture of experts.
  bool is_mixture(size_t layer) const { return num_experts != 0 && !layer_kind(layer).dense_mlp; }
  // Whether it has a dense feed-forward, alone or beside a mixture.
  bool is_dense(size_t layer) const { return !is_mixture(layer) || enable_moe_block; }
  // Whether a layer's feed-forward is dense.
  bool has_dense_layers() const;
  // Whether a layer's token mixer is a short convolution.
  bool has_short_conv() const;
  // Whether a layer's token mixer is a gated delta rule.
  bool has_linear_attention() const;
  // Whether a layer's token mixer is Mamba-2.
  bool has_mamba() const;
  // Whether a layer keeps a state in place of keys and values.
  bool has_recurrent_layers() const {
    return has_short_conv() || has_linear_attention() || has_mamba();
  }
  // Whether sequences have no memory of their own: all layers have keys and values of all tokens.
  bool shares_all_pages() const;
  bool has_norms_before() const { return norm_placement != NormPlacement::kAfter; }
  bool has_norms_after() const { return norm_placement != NormPlacement::kBefore; }
  // The sizes of attention in layers of a kind. Without a kind, they are those of layers with
  // head_dim and num_key_value_heads.
  uint32_t head_dim_of(const LayerKind& kind) const {
    return kind.global_head_dim == 0 ? head_dim : kind.global_head_dim;
  }
  uint32_t key_value_heads_of(const LayerKind& kind) const {
    return kind.num_global_key_value_heads == 0 ? num_key_value_heads
                                                : kind.num_global_key_value_heads;
  }
  // The channels of each head that are rotated, at its start.
  uint32_t rotary_channels() const { return rotary_dim == 0 ? head_dim : rotary_dim; }
  uint32_t rotary_channels(const LayerKind& kind) const {
    return rotary_dim == 0 ? head_dim_of(kind) : rotary_dim;
  }
  size_t query_channels() const { return size_t{num_attention_heads} * head_dim; }
  size_t query_channels(const LayerKind& kind) const {
    return size_t{num_attention_heads} * head_dim_of(kind);
  }
  size_t key_value_channels() const { return size_t{num_key_value_heads} * head_dim; }
  // The keys are those that the layer reads, which may be another layer's.
  size_t key_value_channels(const LayerKind& kind) const {
    return size_t{key_value_heads_of(kind)} * head_dim_of(kind);
  }
  // The width of a dense feed-forward.
  size_t intermediate_size_of(const LayerKind& kind) const {
    return (kind.use_double_wide_mlp ? 2 : 1) * size_t{intermediate_size};
  }
  // The rows of the first matrix of a dense feed-forward with `width` channels: gate and up.
  size_t gate_up_rows(size_t width) const { return ungated_mlp ? width : 2 * width; }
  // What queries at `position` are multiplied by after rope: it grows by the logarithm of how many
  // times llama_4_scaling_positions fit before the position. It is 1 for the first ones.
  float query_factor(size_t position) const;
  // The rows of the fused projection: queries, then keys, then values, then gates of the output.
  size_t qkv_channels() const {
    return (attn_output_gate ? 2 : 1) * query_channels() + 2 * key_value_channels();
  }
  size_t qkv_channels(const LayerKind& kind) const {
    return (attn_output_gate ? 2 : 1) * query_channels(kind) +
           (kind.stores_tokens() ? 2 * key_value_channels(kind) : 0);
  }
  // The largest of all kinds of layers with attention.
  size_t most_query_channels() const;
  size_t most_qkv_channels() const;
  // The numbers of all layers' per-layer inputs.
  size_t per_layer_channels() const {
    return size_t{num_hidden_layers} * hidden_size_per_layer_input;
  }
  size_t conv_channels() const { return conv_dim == 0 ? hidden_size : conv_dim; }
  // The channels of all heads of a layer with linear_attention.
  size_t linear_key_channels() const { return size_t{linear_num_key_heads} * linear_key_head_dim; }
  size_t linear_value_channels() const {
    return size_t{linear_num_value_heads} * linear_value_head_dim;
  }
  // What its convolution reads: queries, then keys, then values.
  size_t linear_conv_channels() const {
    return 2 * linear_key_channels() + linear_value_channels();
  }
  // The channels of all heads of a layer with mamba.
  size_t mamba_channels() const { return size_t{mamba_n_heads} * mamba_d_head; }
  // The keys of all groups, and the queries of all groups.
  size_t mamba_key_channels() const { return size_t{mamba_n_groups} * mamba_d_state; }
  // What its convolution reads: inputs of heads, then keys, then queries.
  size_t mamba_conv_channels() const { return mamba_channels() + 2 * mamba_key_channels(); }
  // The rows of its first projection but for time steps: gates, then what the convolution reads.
  size_t mamba_in_channels() const { return mamba_channels() + mamba_conv_channels(); }
  // The longest context that the model supports: max_position_embeddings; for kDynamic, and for
  // kYarn if it is more, the trained context times the factor. Kinds with a window do not limit it,
  // unless all that attend have one; layers without attention never do.
  size_t longest_context() const;
};

// Checks the range of every field, as config_fields.h gives it, so that no later size computation
// overflows, and the relations between fields. An error names the field.
Status ValidateConfig(const ModelConfig& config);

}  // namespace cria
