#include "model/tensor_table.h"

#include "core/format.h"
#include "core/numeric.h"

namespace cria {
namespace {

template <typename Add>
void AddAttention(const ModelConfig& config, const LayerKind& kind, const Add& add) {
  const size_t hidden = config.hidden_size;
  const size_t query = config.query_channels(kind);
  add(TensorRole::kQkvProj, config.qkv_channels(kind), hidden);
  if (config.qkv_bias) add(TensorRole::kQkvBias, 1, config.qkv_channels(kind));
  if (config.qk_norm || config.joint_qk_norm) {
    const size_t head_dim = config.head_dim_of(kind);
    add(TensorRole::kQNorm, 1, config.joint_qk_norm ? query : head_dim);
    if (kind.stores_tokens()) {
      add(TensorRole::kKNorm, 1, config.joint_qk_norm ? config.key_value_channels(kind) : head_dim);
    }
  }
  if (config.use_attention_gate) {
    add(TensorRole::kAttentionGate, config.num_attention_heads, hidden);
  }
  if (config.attn_sinks) add(TensorRole::kAttnSinks, 1, config.num_attention_heads);
  add(TensorRole::kOProj, hidden, query);
  if (config.o_bias) add(TensorRole::kOBias, 1, hidden);
}

template <typename Add>
void AddShortConv(const ModelConfig& config, const Add& add) {
  const size_t hidden = config.hidden_size;
  const size_t channels = config.conv_channels();
  add(TensorRole::kConvInProj, 3 * channels, hidden);
  if (config.conv_bias) add(TensorRole::kConvInBias, 1, 3 * channels);
  add(TensorRole::kConvWeight, 1, config.conv_L_cache * channels);
  if (config.conv_bias) add(TensorRole::kConvBias, 1, channels);
  add(TensorRole::kConvOutProj, hidden, channels);
  if (config.conv_bias) add(TensorRole::kConvOutBias, 1, hidden);
}

template <typename Add>
void AddLinearAttention(const ModelConfig& config, const Add& add) {
  const size_t hidden = config.hidden_size;
  const size_t values = config.linear_value_channels();
  const size_t heads = config.linear_num_value_heads;
  add(TensorRole::kLinearInProj, config.linear_conv_channels() + values, hidden);
  add(TensorRole::kLinearBaProj, 2 * heads, hidden);
  add(TensorRole::kLinearConvWeight, 1,
      config.linear_conv_kernel_dim * config.linear_conv_channels());
  add(TensorRole::kLinearDtBias, 1, heads);
  add(TensorRole::kLinearDecayRate, 1, heads);
  add(TensorRole::kLinearNorm, 1, config.linear_value_head_dim);
  add(TensorRole::kLinearOutProj, hidden, values);
}

template <typename Add>
void AddMamba(const ModelConfig& config, const Add& add) {
  const size_t hidden = config.hidden_size;
  const size_t channels = config.mamba_channels();
  const size_t heads = config.mamba_n_heads;
  const size_t convolved = config.mamba_conv_channels();
  add(TensorRole::kMambaInProj, config.mamba_in_channels(), hidden);
  add(TensorRole::kMambaDtProj, heads, hidden);
  if (config.mamba_proj_bias) {
    add(TensorRole::kMambaInBias, 1, config.mamba_in_channels() + heads);
  }
  add(TensorRole::kMambaConvWeight, 1, config.mamba_d_conv * convolved);
  if (config.mamba_conv_bias) add(TensorRole::kMambaConvBias, 1, convolved);
  add(TensorRole::kMambaDtBias, 1, heads);
  add(TensorRole::kMambaDecayRate, 1, heads);
  add(TensorRole::kMambaD, 1, heads);
  add(TensorRole::kMambaNorm, 1, channels);
  add(TensorRole::kMambaOutProj, hidden, channels);
  if (config.mamba_proj_bias) add(TensorRole::kMambaOutBias, 1, hidden);
}

template <typename Add>
void AddDenseFeedForward(const ModelConfig& config, const LayerKind& kind, const Add& add) {
  const size_t hidden = config.hidden_size;
  const size_t width = config.intermediate_size_of(kind);
  const size_t gate_up = config.gate_up_rows(width);
  add(TensorRole::kGateUpProj, gate_up, hidden);
  if (config.mlp_bias) add(TensorRole::kGateUpBias, 1, gate_up);
  add(TensorRole::kDownProj, hidden, width);
  if (config.mlp_bias) add(TensorRole::kDownBias, 1, hidden);
}

template <typename Add>
void AddMixture(const ModelConfig& config, const Add& add) {
  const size_t hidden = config.hidden_size;
  const size_t experts = config.num_experts;
  const size_t intermediate = config.moe_intermediate_size;
  const size_t shared = config.shared_expert_intermediate_size;
  add(TensorRole::kRouter, experts, hidden);
  if (config.use_expert_bias || config.router_bias) add(TensorRole::kRouterBias, 1, experts);
  add(TensorRole::kExpertsGateUpProj, experts * 2 * intermediate, hidden, experts);
  if (config.experts_bias) add(TensorRole::kExpertsGateUpBias, 1, experts * 2 * intermediate);
  add(TensorRole::kExpertsDownProj, experts * hidden, intermediate, experts);
  if (config.experts_bias) add(TensorRole::kExpertsDownBias, 1, experts * hidden);
  if (shared == 0) return;
  add(TensorRole::kSharedExpertGateUpProj, 2 * shared, hidden);
  add(TensorRole::kSharedExpertDownProj, hidden, shared);
  if (config.shared_expert_gate) add(TensorRole::kSharedExpertGate, 1, hidden);
}

template <typename Add>
void AddPerLayerInput(const ModelConfig& config, const Add& add) {
  const size_t inputs = config.hidden_size_per_layer_input;
  if (inputs == 0) return;
  add(TensorRole::kPerLayerGate, inputs, config.hidden_size);
  add(TensorRole::kPerLayerProj, config.hidden_size, inputs);
  add(TensorRole::kPerLayerOutputNorm, 1, config.hidden_size);
}

template <typename Add>
void AddLayer(const ModelConfig& config, size_t layer, const Add& add) {
  const size_t hidden = config.hidden_size;
  if (config.has_norms_before()) add(TensorRole::kInputLayernorm, 1, hidden);
  const LayerKind& kind = config.layer_kind(layer);
  if (kind.short_conv) {
    AddShortConv(config, add);
  } else if (kind.linear_attention) {
    AddLinearAttention(config, add);
  } else if (kind.mamba) {
    AddMamba(config, add);
  } else {
    AddAttention(config, kind, add);
  }
  if (config.has_norms_after()) add(TensorRole::kAttentionOutputNorm, 1, hidden);
  if (config.has_norms_before()) add(TensorRole::kPostAttentionLayernorm, 1, hidden);
  const bool is_mixture = config.is_mixture(layer);
  if (config.is_dense(layer)) AddDenseFeedForward(config, kind, add);
  if (is_mixture && config.enable_moe_block) {
    add(TensorRole::kDenseOutputNorm, 1, hidden);
    add(TensorRole::kExpertsNorm, 1, hidden);
  }
  if (is_mixture) AddMixture(config, add);
  if (is_mixture && config.enable_moe_block) add(TensorRole::kExpertsOutputNorm, 1, hidden);
  if (config.has_norms_after()) add(TensorRole::kMlpOutputNorm, 1, hidden);
  AddPerLayerInput(config, add);
  if (config.layer_scalar) add(TensorRole::kLayerScalar, 1, 1);
}

}  // namespace

std::string_view TensorRoleName(TensorRole role) {
  return static_cast<size_t>(role) < kTensorRoles.size() ? RowOf(role).name : "unknown";
}

std::string TensorSpec::Name() const {
  if (layer == kNoLayer) return std::string(TensorRoleName(role));
  return Format("layers.{}.{}", layer, TensorRoleName(role));
}

size_t TensorSpec::max_pieces() const {
  switch (role) {
    case TensorRole::kQkvProj:
      return 4;
    case TensorRole::kLinearInProj:
    case TensorRole::kGateUpProj:
    case TensorRole::kSharedExpertGateUpProj:
      return 2;
    default:
      return 1;
  }
}

std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config) {
  const size_t hidden = config.hidden_size;
  std::vector<TensorSpec> specs;
  specs.push_back({TensorRole::kEmbedTokens, kNoLayer, config.vocab_size, hidden});
  if (const size_t inputs = config.hidden_size_per_layer_input; inputs != 0) {
    specs.push_back({TensorRole::kEmbedTokensPerLayer, kNoLayer,
                     size_t{config.vocab_size} * config.num_hidden_layers, inputs});
    specs.push_back(
        {TensorRole::kPerLayerModelProj, kNoLayer, config.per_layer_channels(), hidden});
    specs.push_back({TensorRole::kPerLayerNorm, kNoLayer, 1, inputs});
  }
  int layer = 0;
  const auto add = [&](TensorRole role, size_t output_channels, size_t input_channels,
                       size_t num_parts = 1) {
    const bool is_of_mtp = layer == static_cast<int>(config.num_hidden_layers);
    specs.push_back({role, layer, output_channels, input_channels, num_parts, is_of_mtp});
  };
  for (; layer < static_cast<int>(config.num_hidden_layers); ++layer) {
    AddLayer(config, static_cast<size_t>(layer), add);
  }
  specs.push_back({TensorRole::kNorm, kNoLayer, 1, hidden});
  specs.push_back({TensorRole::kLmHead, kNoLayer, config.vocab_size, hidden});
  if (config.mtp_num_hidden_layers == 0) return specs;
  add(TensorRole::kMtpEmbeddingNorm, 1, hidden);
  add(TensorRole::kMtpHiddenNorm, 1, hidden);
  add(TensorRole::kMtpFc, hidden, 2 * hidden);
  AddLayer(config, config.num_hidden_layers, add);
  add(TensorRole::kMtpNorm, 1, hidden);
  return specs;
}

uint64_t VectorElements(const ModelConfig& config) {
  uint64_t elements = 0;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (spec.is_vector()) elements += spec.input_channels;
  }
  return elements;
}

uint64_t TensorLayout::row_bytes() const {
  if (const BlockFormat* const format = block_format(); format != nullptr) {
    return padded_input_channels / format->inputs * format->bytes;
  }
  switch (scheme) {
    case Scheme::kF32:
      return padded_input_channels * sizeof(float);
    case Scheme::kQc8w:
      return padded_input_channels;
    case Scheme::kQb4w:
      return padded_input_channels / 2;
    default:
      return 0;
  }
}

size_t TensorLayout::scales_per_row() const {
  switch (scheme) {
    case Scheme::kF32:
      return 0;
    case Scheme::kQc8w:
      return 1;
    case Scheme::kQb4w:
      return padded_input_channels / block_size;
    default:
      return 0;
  }
}

uint64_t TensorLayout::row_scale_bytes() const {
  return scales_per_row() * (scheme == Scheme::kQb4w ? sizeof(uint16_t) : sizeof(float));
}

TensorLayout MakeTensorLayout(const TensorSpec& spec, Scheme scheme, size_t block_size) {
  TensorLayout layout = {.scheme = scheme,
                         .output_channels = spec.output_channels,
                         .input_channels = spec.input_channels,
                         .padded_input_channels = spec.input_channels,
                         .block_size = 0,
                         .num_parts = spec.num_parts,
                         .is_plain = spec.is_plain()};
  const BlockFormat* const format = layout.block_format();
  if (format != nullptr && format->inputs <= kMaxPaddedBlock) {
    layout.padded_input_channels =
        DivideRoundingUp(spec.input_channels, format->inputs) * format->inputs;
  }
  if (scheme != Scheme::kQb4w) return layout;
  while (block_size > kBlockSizes.front() && spec.input_channels % block_size != 0) block_size /= 2;
  layout.block_size = block_size;
  layout.padded_input_channels = (spec.input_channels + block_size - 1) / block_size * block_size;
  return layout;
}

}  // namespace cria
