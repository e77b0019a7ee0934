#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

// A checkpoint of Llama or a relative as plain data, under Hugging Face's names. Nothing here, nor
// in the rest of this folder, may include the runtime or the converter: it is what they are
// compared with.
namespace cria::reference {

struct ReferenceRopeScaling {
  enum class Type { kNone, kLinear, kLlama3, kDynamic, kYarn, kLongrope, kProportional };

  Type type = Type::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;  // kLlama3 only, as is the next.
  double high_freq_factor = 4.0;
  size_t original_max_position_embeddings = 8192;  // kLlama3, kYarn and kLongrope only.
  double attention_factor = 1.0;                   // kYarn and kLongrope only.
  double beta_fast = 32.0;                         // kYarn only, as are the next.
  double beta_slow = 1.0;
  bool truncate = true;
  // kLongrope only: what each frequency is divided by, [pairs that are turned]. The second list is
  // for contexts that are longer than original_max_position_embeddings.
  std::vector<double> short_factor;
  std::vector<double> long_factor;
  double partial_rotary_factor = 1.0;  // kProportional only: the part of the pairs that are turned.
};

enum class ReferenceActivation { kSilu, kGelu, kGeluTanh, kSquaredRelu, kXielu };

// Which norms a layer has: of what attention and the feed-forward read, of what they write, or of
// both.
enum class ReferenceNorms { kBefore, kAfter, kBoth };

// How checkpoints name what is not of a mixture: as Llama's class, or as those of LFM2 and LFM3.
enum class ReferenceNames { kLlama, kLfm2, kLfm3 };

// How checkpoints name experts: a tensor for each matrix of each, as Qwen's, Mixtral's or LFM2's
// files, or one for all experts.
enum class ReferenceExpertNames { kQwen, kMixtral, kGranite, kLfm2, kGemma4, kGptOss };

// The experts of a mixture.
struct ReferenceExperts {
  ReferenceExpertNames names = ReferenceExpertNames::kQwen;
  size_t num_experts = 0;  // 0: there are none.
  size_t num_experts_per_tok = 0;
  size_t intermediate_size = 0;     // The width of each.
  bool norm_topk_prob = false;      // The weights of those that are chosen have the sum 1.
  bool has_sigmoid_scores = false;  // Instead of a softmax over all experts.
  bool use_expert_bias = false;     // Added to what the experts are chosen by, and to nothing else.
  double routed_scaling_factor = 1.0;  // Multiplies the weights of those that are chosen.
  // The width of the expert that all tokens use; 0: there is none.
  size_t shared_intermediate_size = 0;
  std::vector<bool> is_dense = {};  // [num_hidden_layers]: the layers without experts.
  // A dense feed-forward is beside them, and both have norms of their own.
  bool are_beside_mlp = false;
};

// The sizes of gated delta nets.
struct ReferenceLinear {
  size_t conv_kernel_dim = 0;
  size_t key_head_dim = 0;
  size_t value_head_dim = 0;
  size_t num_key_heads = 0;
  size_t num_value_heads = 0;
  bool is_fused = false;  // Projections as in Qwen3-Next.
};

// The sizes of Mamba-2, and which biases it has.
struct ReferenceMambaSizes {
  size_t conv_kernel = 0;
  size_t state_size = 0;
  size_t head_dim = 0;
  size_t num_heads = 0;
  size_t num_groups = 0;
  bool conv_bias = false;
  bool proj_bias = false;
};

// The fields of ReferenceConfig that may be different from layer to layer.
struct ReferenceAttention {
  double rope_theta = 10000.0;
  ReferenceRopeScaling rope_scaling;
  size_t sliding_window = 0;
  bool no_rope = false;           // Queries and keys are not turned.
  bool short_conv = false;        // There is a short convolution instead of attention.
  bool linear_attention = false;  // Or a gated delta net.
  size_t head_dim = 0;            // 0: the model's, as the next one.
  size_t num_key_value_heads = 0;
  bool keys_are_values = false;  // Before their norms and before they are turned.
  int read_layer = -1;           // The layer whose keys and values it attends to; -1: its own.
  bool has_wide_mlp = false;     // The feed-forward has twice as many channels.
  bool mamba = false;            // Or Mamba-2.
};

struct ReferenceConfig {
  std::string architecture = "LlamaForCausalLM";
  size_t hidden_size = 0;
  size_t intermediate_size = 0;
  size_t num_hidden_layers = 0;
  size_t num_attention_heads = 0;
  size_t num_key_value_heads = 0;
  size_t head_dim = 0;
  size_t vocab_size = 0;
  size_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  ReferenceRopeScaling rope_scaling;
  bool tie_word_embeddings = false;
  size_t sliding_window = 0;  // How many positions a token attends to, its own included; 0: all.
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  // [num_hidden_layers], in place of the three fields above; empty if all layers are alike.
  std::vector<ReferenceAttention> layers;
  // The fields of families that compute more than Llama, as their own classes have them.
  ReferenceActivation activation = ReferenceActivation::kSilu;
  bool has_gate = true;  // The feed-forward has one.
  ReferenceNorms norms = ReferenceNorms::kBefore;
  double norm_weight_offset = 0.0;  // A norm multiplies by this plus its weight.
  bool joint_qk_norm = false;       // One norm of all heads of queries, one of all heads of keys.
  size_t rotary_dim = 0;            // How much of each head is turned; 0: all.
  bool norms_after_rope = false;    // With qk_norm: of heads that are turned already.
  bool turns_neighbours = false;    // Pairs are of elements 2 i and 2 i + 1, not of halves.
  double score_scale = 0.0;         // The factor of query times key; 0: 1 / sqrt(head_dim).
  double attn_logit_softcapping = 0.0;  // 0: none.
  double final_logit_softcapping = 0.0;
  double embedding_multiplier = 1.0;
  double residual_multiplier = 1.0;
  double logits_scaling = 1.0;     // Logits are divided by it.
  bool fused_projections = false;  // qkv_proj and gate_up_proj are one matrix each.
  bool split_queries = false;      // If they are: only gate_up_proj is.
  ReferenceExperts experts;
  size_t conv_L_cache = 0;  // The taps of short convolutions.
  bool conv_bias = false;   // They and their projections have biases.
  // What each head of attention writes is multiplied by a sigmoid.
  bool use_attention_gate = false;
  // q_proj also has gates, behind each head, whose sigmoids multiply what attention writes.
  bool attn_output_gate = false;
  ReferenceLinear linear;
  ReferenceMambaSizes mamba;
  bool has_sinks = false;     // Each head of attention has a score for no position.
  double swiglu_alpha = 0.0;  // gpt-oss's experts have it, and the next one.
  double swiglu_limit = 0.0;
  // Queries at a position p are multiplied by 1 + b ln(1 + floor(p / query_scale_positions)).
  double query_scale_beta = 0.0;
  size_t query_scale_positions = 0;
  bool normalizes_values = false;  // Each head, without weights.
  bool has_layer_scalars = false;  // What each layer's hidden state is multiplied by at its end.
  size_t per_layer_size = 0;       // Inputs of each layer for each token; 0: none.
  size_t per_layer_rows = 0;
  ReferenceNames names = ReferenceNames::kLlama;
  // Modules of layers by the names that Llama's class has, and the model's own names of them.
  std::map<std::string, std::string> modules = {};
  std::string prefix = "model.";  // The names of all tensors but the head begin with it.
  int bos_token_id = -1;          // -1: there is none.
  std::vector<int> eos_token_ids;

  ReferenceAttention AttentionOf(size_t layer) const {
    ReferenceAttention attention =
        layers.empty() ? ReferenceAttention{rope_theta, rope_scaling, sliding_window}
                       : layers.at(layer);
    if (attention.head_dim == 0) attention.head_dim = head_dim;
    if (attention.num_key_value_heads == 0) attention.num_key_value_heads = num_key_value_heads;
    return attention;
  }
  bool HasMamba() const {
    return std::any_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.mamba; });
  }
  bool HasExperts(size_t layer) const {
    return experts.num_experts != 0 && !experts.is_dense.at(layer);
  }
  size_t turned_channels(size_t layer = 0) const {
    return rotary_dim == 0 ? AttentionOf(layer).head_dim : rotary_dim;
  }
};

struct ReferenceTensor {
  std::vector<size_t> shape;  // Outermost first; a matrix is [outputs, inputs].
  std::vector<float> values;
};

struct ReferenceModel {
  ReferenceConfig config;
  std::map<std::string, ReferenceTensor> tensors;  // By Hugging Face's name.
};

}  // namespace cria::reference
