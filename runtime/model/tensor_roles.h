#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cria {

// What a tensor is for. Names follow Hugging Face's modules; q/k/v and gate/up, and their biases,
// are joined by rows.
enum class TensorRole : uint8_t {
  kEmbedTokens,
  kInputLayernorm,
  kQkvProj,
  kOProj,
  kPostAttentionLayernorm,
  kGateUpProj,
  kDownProj,
  kNorm,
  kLmHead,
  kQkvBias,
  kQNorm,
  kKNorm,
  kOBias,
  kGateUpBias,
  kDownBias,
  kAttentionOutputNorm,  // Normalizes attention's output before it is added to the hidden state.
  kMlpOutputNorm,        // Normalizes the feed-forward's output in the same way.
  kRouter,
  kExpertsGateUpProj,  // Expert after expert, of each the gate's rows and then those of up.
  kExpertsDownProj,    // Expert after expert.
  kSharedExpertGateUpProj,
  kSharedExpertDownProj,
  kSharedExpertGate,
  kConvInProj,  // [3 * conv_channels, hidden_size]: the rows of B, then of C, then of x.
  kConvInBias,
  kConvWeight,  // [conv_L_cache][conv_channels]: tap after tap; the last is the current token's.
  kConvBias,
  kConvOutProj,
  kConvOutBias,
  kRouterBias,  // Is added to the scores that experts are chosen by.
  kAttentionGate,
  kLinearInProj,      // Queries, keys, values and gates of the output, of all heads each.
  kLinearBaProj,      // The rows of beta, then those of the decay, one for each value head.
  kLinearConvWeight,  // [linear_conv_kernel_dim][linear_conv_channels], as kConvWeight.
  kLinearDtBias,
  kLinearDecayRate,  // exp(A_log)
  kLinearNorm,       // For each value head.
  kLinearOutProj,
  // [vocab_size * num_hidden_layers, hidden_size_per_layer_input]: the rows of a token's layers
  // follow one another.
  kEmbedTokensPerLayer,
  kPerLayerModelProj,  // [num_hidden_layers * hidden_size_per_layer_input, hidden_size]
  kPerLayerNorm,       // For each layer's part of its products.
  kPerLayerGate,
  kPerLayerProj,
  kPerLayerOutputNorm,
  kLayerScalar,
  kDenseOutputNorm,    // With enable_moe_block: for the dense feed-forward's output.
  kExpertsNorm,        // For what experts read.
  kExpertsOutputNorm,  // For the sum of their outputs.
  kMambaInProj,        // The gates of the output, then inputs of heads, keys and queries.
  kMambaDtProj,        // A row for the time step of each head.
  kMambaInBias,        // For kMambaInProj, then for kMambaDtProj.
  kMambaConvWeight,    // [mamba_d_conv][mamba_conv_channels], as kConvWeight.
  kMambaConvBias,
  kMambaDtBias,
  kMambaDecayRate,  // exp(A_log)
  kMambaD,          // What of each head's input goes around its state.
  kMambaNorm,       // For the channels of all heads.
  kMambaOutProj,
  kMambaOutBias,
  kAttnSinks,
  kExpertsGateUpBias,  // Expert after expert, as the rows of kExpertsGateUpProj.
  kExpertsDownBias,
  kMtpEmbeddingNorm,  // Only the layer that guesses has this and the next three.
  kMtpHiddenNorm,
  kMtpFc,  // [hidden_size, 2 * hidden_size], for an embedding and the hidden state behind it.
  kMtpNorm,
};

// How products use a tensor, and so how it is stored.
enum class TensorForm : uint8_t {
  kMatrix,
  // A small matrix, always f32, whose rows are used as they are: packing does not rearrange them.
  kPlainMatrix,
  kTable,   // Rows are read one by one.
  kVector,  // A norm's weights, a bias, or the taps of a convolution; always f32.
};

// What each of several ranks that compute a model together has of a tensor.
enum class RanksHave : uint8_t {
  kNotSaid,
  kAll,
  kParts,    // ranks::TensorSlice says which.
  kNothing,  // Models with such a tensor cannot be divided.
};

struct TensorRoleRow {
  TensorRole role;
  std::string_view name;  // As that of the schema, in snake case.
  TensorForm form;
  RanksHave ranks_have;
};

// All ranks have whole biases of outputs, which are added after the sum over the ranks, or, those
// of experts, before it and divided by the number of ranks. They also have whole routers, because
// each rank chooses the same experts.
inline constexpr std::array kTensorRoles = {
    TensorRoleRow{TensorRole::kEmbedTokens, "embed_tokens", TensorForm::kTable, RanksHave::kAll},
    TensorRoleRow{TensorRole::kInputLayernorm, "input_layernorm", TensorForm::kVector,
                  RanksHave::kAll},
    TensorRoleRow{TensorRole::kQkvProj, "qkv_proj", TensorForm::kMatrix, RanksHave::kParts},
    TensorRoleRow{TensorRole::kOProj, "o_proj", TensorForm::kMatrix, RanksHave::kParts},
    TensorRoleRow{TensorRole::kPostAttentionLayernorm, "post_attention_layernorm",
                  TensorForm::kVector, RanksHave::kAll},
    TensorRoleRow{TensorRole::kGateUpProj, "gate_up_proj", TensorForm::kMatrix, RanksHave::kParts},
    TensorRoleRow{TensorRole::kDownProj, "down_proj", TensorForm::kMatrix, RanksHave::kParts},
    TensorRoleRow{TensorRole::kNorm, "norm", TensorForm::kVector, RanksHave::kAll},
    TensorRoleRow{TensorRole::kLmHead, "lm_head", TensorForm::kMatrix, RanksHave::kParts},
    TensorRoleRow{TensorRole::kQkvBias, "qkv_bias", TensorForm::kVector, RanksHave::kParts},
    TensorRoleRow{TensorRole::kQNorm, "q_norm", TensorForm::kVector, RanksHave::kParts},
    TensorRoleRow{TensorRole::kKNorm, "k_norm", TensorForm::kVector, RanksHave::kParts},
    TensorRoleRow{TensorRole::kOBias, "o_bias", TensorForm::kVector, RanksHave::kAll},
    TensorRoleRow{TensorRole::kGateUpBias, "gate_up_bias", TensorForm::kVector, RanksHave::kParts},
    TensorRoleRow{TensorRole::kDownBias, "down_bias", TensorForm::kVector, RanksHave::kAll},
    TensorRoleRow{TensorRole::kAttentionOutputNorm, "attention_output_norm", TensorForm::kVector,
                  RanksHave::kAll},
    TensorRoleRow{TensorRole::kMlpOutputNorm, "mlp_output_norm", TensorForm::kVector,
                  RanksHave::kAll},
    TensorRoleRow{TensorRole::kRouter, "router", TensorForm::kPlainMatrix, RanksHave::kAll},
    TensorRoleRow{TensorRole::kExpertsGateUpProj, "experts_gate_up_proj", TensorForm::kMatrix,
                  RanksHave::kParts},
    TensorRoleRow{TensorRole::kExpertsDownProj, "experts_down_proj", TensorForm::kMatrix,
                  RanksHave::kParts},
    TensorRoleRow{TensorRole::kSharedExpertGateUpProj, "shared_expert_gate_up_proj",
                  TensorForm::kMatrix, RanksHave::kParts},
    TensorRoleRow{TensorRole::kSharedExpertDownProj, "shared_expert_down_proj", TensorForm::kMatrix,
                  RanksHave::kParts},
    TensorRoleRow{TensorRole::kSharedExpertGate, "shared_expert_gate", TensorForm::kVector,
                  RanksHave::kAll},
    TensorRoleRow{TensorRole::kConvInProj, "conv_in_proj", TensorForm::kMatrix, RanksHave::kParts},
    TensorRoleRow{TensorRole::kConvInBias, "conv_in_bias", TensorForm::kVector, RanksHave::kParts},
    TensorRoleRow{TensorRole::kConvWeight, "conv_weight", TensorForm::kVector, RanksHave::kParts},
    TensorRoleRow{TensorRole::kConvBias, "conv_bias", TensorForm::kVector, RanksHave::kParts},
    TensorRoleRow{TensorRole::kConvOutProj, "conv_out_proj", TensorForm::kMatrix,
                  RanksHave::kParts},
    TensorRoleRow{TensorRole::kConvOutBias, "conv_out_bias", TensorForm::kVector, RanksHave::kAll},
    TensorRoleRow{TensorRole::kRouterBias, "router_bias", TensorForm::kVector, RanksHave::kAll},
    TensorRoleRow{TensorRole::kAttentionGate, "attention_gate", TensorForm::kPlainMatrix,
                  RanksHave::kParts},
    TensorRoleRow{TensorRole::kLinearInProj, "linear_in_proj", TensorForm::kMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kLinearBaProj, "linear_ba_proj", TensorForm::kPlainMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kLinearConvWeight, "linear_conv_weight", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kLinearDtBias, "linear_dt_bias", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kLinearDecayRate, "linear_decay_rate", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kLinearNorm, "linear_norm", TensorForm::kVector, RanksHave::kNothing},
    TensorRoleRow{TensorRole::kLinearOutProj, "linear_out_proj", TensorForm::kMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kEmbedTokensPerLayer, "embed_tokens_per_layer", TensorForm::kTable,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kPerLayerModelProj, "per_layer_model_proj", TensorForm::kMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kPerLayerNorm, "per_layer_norm", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kPerLayerGate, "per_layer_gate", TensorForm::kMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kPerLayerProj, "per_layer_proj", TensorForm::kMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kPerLayerOutputNorm, "per_layer_output_norm", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kLayerScalar, "layer_scalar", TensorForm::kVector, RanksHave::kAll},
    TensorRoleRow{TensorRole::kDenseOutputNorm, "dense_output_norm", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kExpertsNorm, "experts_norm", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kExpertsOutputNorm, "experts_output_norm", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaInProj, "mamba_in_proj", TensorForm::kMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaDtProj, "mamba_dt_proj", TensorForm::kPlainMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaInBias, "mamba_in_bias", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaConvWeight, "mamba_conv_weight", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaConvBias, "mamba_conv_bias", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaDtBias, "mamba_dt_bias", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaDecayRate, "mamba_decay_rate", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaD, "mamba_d", TensorForm::kVector, RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaNorm, "mamba_norm", TensorForm::kVector, RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaOutProj, "mamba_out_proj", TensorForm::kMatrix,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMambaOutBias, "mamba_out_bias", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kAttnSinks, "attn_sinks", TensorForm::kVector, RanksHave::kParts},
    TensorRoleRow{TensorRole::kExpertsGateUpBias, "experts_gate_up_bias", TensorForm::kVector,
                  RanksHave::kParts},
    TensorRoleRow{TensorRole::kExpertsDownBias, "experts_down_bias", TensorForm::kVector,
                  RanksHave::kAll},
    TensorRoleRow{TensorRole::kMtpEmbeddingNorm, "mtp_embedding_norm", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMtpHiddenNorm, "mtp_hidden_norm", TensorForm::kVector,
                  RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMtpFc, "mtp_fc", TensorForm::kMatrix, RanksHave::kNothing},
    TensorRoleRow{TensorRole::kMtpNorm, "mtp_norm", TensorForm::kVector, RanksHave::kNothing},
};
inline constexpr int kNumTensorRoles = static_cast<int>(kTensorRoles.size());

// A row is at the number of its role, and says everything.
static_assert([] {
  for (size_t i = 0; i < kTensorRoles.size(); ++i) {
    const TensorRoleRow& row = kTensorRoles[i];
    if (static_cast<size_t>(row.role) != i || row.name.empty()) return false;
    if (row.ranks_have == RanksHave::kNotSaid) return false;
  }
  return true;
}());

inline constexpr const TensorRoleRow& RowOf(TensorRole role) {
  return kTensorRoles[static_cast<size_t>(role)];
}

}  // namespace cria
