#include "converter/write/tensor_map.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "converter/write/hadamard.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
constexpr std::string_view kHead = "lm_head.weight";

// The kind of the tensor's layer.
const LayerKind& KindOf(const TensorSpec& spec, const ModelConfig& config) {
  return config.layer_kind(spec.layer == kNoLayer ? 0 : static_cast<size_t>(spec.layer));
}

// Hugging Face's names of the tensors with the rows of a role; unused parts are empty. In a layer,
// "model.layers.N." comes before them, and before those of an expert "mlp.experts.E.", too.
using PartNames = std::array<std::string_view, 4>;

PartNames PartNamesOf(const TensorSpec& spec, TensorRole role, const ModelConfig& config) {
  const bool has_keys = KindOf(spec, config).stores_tokens();
  switch (role) {
    case TensorRole::kEmbedTokens:
      return {kEmbedding};
    case TensorRole::kInputLayernorm:
      return {"input_layernorm.weight"};
    case TensorRole::kQkvProj:
      if (!has_keys) return {"self_attn.q_proj.weight"};
      return {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
              config.attn_output_gate ? "self_attn.gate_proj.weight" : ""};
    case TensorRole::kOProj:
      return {"self_attn.o_proj.weight"};
    case TensorRole::kPostAttentionLayernorm:
      return {config.has_norms_after() ? "pre_feedforward_layernorm.weight"
                                       : "post_attention_layernorm.weight"};
    case TensorRole::kGateUpProj:
      if (config.ungated_mlp) return {"mlp.up_proj.weight"};
      return {"mlp.gate_proj.weight", "mlp.up_proj.weight"};
    case TensorRole::kDownProj:
      return {"mlp.down_proj.weight"};
    case TensorRole::kNorm:
      return {"model.norm.weight"};
    case TensorRole::kLmHead:
      return {kHead};
    case TensorRole::kQkvBias:
      if (!has_keys) return {"self_attn.q_proj.bias"};
      return {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"};
    case TensorRole::kQNorm:
      return {"self_attn.q_norm.weight"};
    case TensorRole::kKNorm:
      return {"self_attn.k_norm.weight"};
    case TensorRole::kOBias:
      return {"self_attn.o_proj.bias"};
    case TensorRole::kGateUpBias:
      if (config.ungated_mlp) return {"mlp.up_proj.bias"};
      return {"mlp.gate_proj.bias", "mlp.up_proj.bias"};
    case TensorRole::kDownBias:
      return {"mlp.down_proj.bias"};
    case TensorRole::kAttentionOutputNorm:
      return {"post_attention_layernorm.weight"};
    case TensorRole::kMlpOutputNorm:
      return {"post_feedforward_layernorm.weight"};
    case TensorRole::kRouter:
      return {"mlp.gate.weight"};
    case TensorRole::kSharedExpertGateUpProj:
      return {"mlp.shared_expert.gate_proj.weight", "mlp.shared_expert.up_proj.weight"};
    case TensorRole::kSharedExpertDownProj:
      return {"mlp.shared_expert.down_proj.weight"};
    case TensorRole::kSharedExpertGate:
      return {"mlp.shared_expert_gate.weight"};
    case TensorRole::kConvInProj:
      return {"conv.in_proj.weight"};
    case TensorRole::kConvInBias:
      return {"conv.in_proj.bias"};
    case TensorRole::kConvWeight:
      return {"conv.conv.weight"};
    case TensorRole::kConvBias:
      return {"conv.conv.bias"};
    case TensorRole::kConvOutProj:
      return {"conv.out_proj.weight"};
    case TensorRole::kConvOutBias:
      return {"conv.out_proj.bias"};
    case TensorRole::kAttentionGate:
      return {"self_attn.g_proj.weight"};
    case TensorRole::kLinearInProj:
      return {"linear_attn.q_proj.weight", "linear_attn.k_proj.weight", "linear_attn.v_proj.weight",
              "linear_attn.z_proj.weight"};
    case TensorRole::kLinearBaProj:
      return {"linear_attn.b_proj.weight", "linear_attn.a_proj.weight"};
    case TensorRole::kLinearConvWeight:
      return {"linear_attn.conv1d.weight"};
    case TensorRole::kLinearDtBias:
      return {"linear_attn.dt_bias"};
    case TensorRole::kLinearDecayRate:
      return {"linear_attn.A_log"};
    case TensorRole::kLinearNorm:
      return {"linear_attn.norm.weight"};
    case TensorRole::kLinearOutProj:
      return {"linear_attn.out_proj.weight"};
    case TensorRole::kMambaInProj:
      return {"mamba.in_proj.weight"};
    case TensorRole::kMambaDtProj:
      return {"mamba.dt_proj.weight"};
    case TensorRole::kMambaInBias:
      return {"mamba.in_proj.bias"};
    case TensorRole::kMambaConvWeight:
      return {"mamba.conv1d.weight"};
    case TensorRole::kMambaConvBias:
      return {"mamba.conv1d.bias"};
    case TensorRole::kMambaDtBias:
      return {"mamba.dt_bias"};
    case TensorRole::kMambaDecayRate:
      return {"mamba.A_log"};
    case TensorRole::kMambaD:
      return {"mamba.D"};
    case TensorRole::kMambaNorm:
      return {"mamba.norm.weight"};
    case TensorRole::kMambaOutProj:
      return {"mamba.out_proj.weight"};
    case TensorRole::kMambaOutBias:
      return {"mamba.out_proj.bias"};
    case TensorRole::kAttnSinks:
      return {"self_attn.sinks"};
    case TensorRole::kExpertsGateUpBias:
      return {"gate_proj.bias", "up_proj.bias"};
    case TensorRole::kExpertsDownBias:
      return {"down_proj.bias"};
    case TensorRole::kRouterBias:
      return {config.router_bias ? "mlp.gate.bias" : "mlp.expert_bias"};
    case TensorRole::kEmbedTokensPerLayer:
      return {"model.embed_tokens_per_layer.weight"};
    case TensorRole::kPerLayerModelProj:
      return {"model.per_layer_model_projection.weight"};
    case TensorRole::kPerLayerNorm:
      return {"model.per_layer_projection_norm.weight"};
    case TensorRole::kPerLayerGate:
      return {"per_layer_input_gate.weight"};
    case TensorRole::kPerLayerProj:
      return {"per_layer_projection.weight"};
    case TensorRole::kPerLayerOutputNorm:
      return {"post_per_layer_input_norm.weight"};
    case TensorRole::kLayerScalar:
      return {"layer_scalar"};
    case TensorRole::kDenseOutputNorm:
      return {"post_feedforward_layernorm_1.weight"};
    case TensorRole::kExpertsNorm:
      return {"pre_feedforward_layernorm_2.weight"};
    case TensorRole::kExpertsOutputNorm:
      return {"post_feedforward_layernorm_2.weight"};
    case TensorRole::kMtpEmbeddingNorm:
      return {"mtp.embedding_norm.weight"};
    case TensorRole::kMtpHiddenNorm:
      return {"mtp.hidden_norm.weight"};
    case TensorRole::kMtpFc:
      return {"mtp.fc.weight"};
    case TensorRole::kMtpNorm:
      return {"mtp.norm.weight"};
    case TensorRole::kExpertsGateUpProj:
      return {"gate_proj.weight", "up_proj.weight"};
    case TensorRole::kExpertsDownProj:
      return {"down_proj.weight"};
  }
  return {};
}

bool IsOfExperts(TensorRole role) {
  return role == TensorRole::kExpertsGateUpProj || role == TensorRole::kExpertsDownProj ||
         role == TensorRole::kExpertsGateUpBias || role == TensorRole::kExpertsDownBias;
}

// The number of rows of part `index` of a matrix, or of its elements for a vector.
uint64_t PartChannels(const TensorSpec& spec, const ModelConfig& config, size_t index) {
  const LayerKind& kind = KindOf(spec, config);
  switch (spec.role) {
    case TensorRole::kQkvProj:
    case TensorRole::kQkvBias:
      return index == 1 || index == 2 ? config.key_value_channels(kind)
                                      : config.query_channels(kind);
    case TensorRole::kLinearInProj:
      return index < 2 ? config.linear_key_channels() : config.linear_value_channels();
    case TensorRole::kLinearBaProj:
      return config.linear_num_value_heads;
    case TensorRole::kGateUpProj:
    case TensorRole::kGateUpBias:
      return config.intermediate_size_of(kind);
    case TensorRole::kSharedExpertGateUpProj:
      return config.shared_expert_intermediate_size;
    case TensorRole::kExpertsGateUpProj:
    case TensorRole::kExpertsGateUpBias:
      return config.moe_intermediate_size;
    case TensorRole::kExpertsDownProj:
    case TensorRole::kExpertsDownBias:
      return config.hidden_size;
    default:
      break;
  }
  // All others come from one tensor.
  return spec.is_vector() ? spec.input_channels : spec.output_channels;
}

std::vector<uint64_t> PartShape(const TensorSpec& spec, const ModelConfig& config, size_t index) {
  const uint64_t channels = PartChannels(spec, config, index);
  if (spec.role == TensorRole::kSharedExpertGate) return {1, channels};
  if (spec.role == TensorRole::kConvWeight) return {config.conv_L_cache, config.hidden_size};
  if (spec.role == TensorRole::kLinearConvWeight) {
    return {config.linear_conv_kernel_dim, config.linear_conv_channels()};
  }
  if (spec.role == TensorRole::kMambaConvWeight) {
    return {config.mamba_d_conv, config.mamba_conv_channels()};
  }
  if (spec.is_vector()) return {channels};
  return {channels, spec.input_channels};
}

// Old checkpoints have rotary frequencies, which are computed from the configuration here.
bool IsRedundant(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

Result<bool> HoldSameValues(const TensorSource& left, const TensorSource& right) {
  if (left.shape != right.shape) return false;
  const uint64_t num_elements = left.num_elements();
  // Whole rows, because split tensors are read by rows.
  const uint64_t row_elements = num_elements / left.shape.front();
  const uint64_t chunk_elements = std::max<uint64_t>(1, (1 << 18) / row_elements) * row_elements;
  TensorReader reader;
  std::vector<float> left_values;
  std::vector<float> right_values;
  for (uint64_t first = 0; first < num_elements; first += chunk_elements) {
    left_values.resize(std::min(chunk_elements, num_elements - first));
    right_values.resize(left_values.size());
    CRIA_RETURN_IF_ERROR(reader.Read(left, first, left_values));
    CRIA_RETURN_IF_ERROR(reader.Read(right, first, right_values));
    if (left_values != right_values) return false;
  }
  return true;
}

float FiniteProduct(float left, float right) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return std::clamp(left * right, -kLargest, kLargest);
}

class Mapper {
 public:
  explicit Mapper(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), config_(checkpoint.config) {}

  Result<std::vector<MappedTensor>> Map() {
    std::vector<MappedTensor> tensors;
    for (const TensorSpec& spec : ExpectedTensors(config_)) {
      CRIA_ASSIGN_OR_RETURN(MappedTensor tensor, MapOne(spec));
      tensors.push_back(std::move(tensor));
    }
    CRIA_RETURN_IF_ERROR(CheckTiedHead());
    CRIA_RETURN_IF_ERROR(CheckNothingIsLeft());
    return tensors;
  }

 private:
  Result<MappedTensor> MapOne(const TensorSpec& spec) {
    const bool is_tied_head = spec.role == TensorRole::kLmHead && config_.tie_word_embeddings;
    const TensorRole role = is_tied_head ? TensorRole::kEmbedTokens : spec.role;
    const PartNames names = PartNamesOf(spec, role, config_);
    MappedTensor tensor = {.spec = spec};
    const size_t num_experts = IsOfExperts(spec.role) ? config_.num_experts : 1;
    for (size_t expert = 0; expert < num_experts; ++expert) {
      std::string prefix =
          spec.layer == kNoLayer ? std::string() : Format("model.layers.{}.", spec.layer);
      if (IsOfExperts(spec.role)) prefix += Format("mlp.experts.{}.", expert);
      for (size_t i = 0; i < names.size() && !names[i].empty(); ++i) {
        CRIA_ASSIGN_OR_RETURN(const TensorSource* source,
                              Find(prefix + std::string(names[i]), PartShape(spec, config_, i)));
        tensor.parts.push_back({.source = source});
      }
    }
    return tensor;
  }

  Result<const TensorSource*> Find(const std::string& name, const std::vector<uint64_t>& shape) {
    const auto found = checkpoint_.tensors.find(name);
    if (found == checkpoint_.tensors.end()) {
      return Fail(ErrorCode::kNotFound,
                  Format("{}: tensor \"{}\" is missing, but {} calls for it",
                         checkpoint_.folder.string(), name, checkpoint_.described_by));
    }
    const TensorSource& source = found->second;
    if (source.shape != shape) return WrongShape(source, shape, checkpoint_);
    used_.insert(found->first);
    return &source;
  }

  // Some checkpoints store a tied head, which is harmless if it is the same as the embedding.
  Status CheckTiedHead() {
    const auto head = checkpoint_.tensors.find(kHead);
    if (!config_.tie_word_embeddings || head == checkpoint_.tensors.end()) return {};
    CRIA_ASSIGN_OR_RETURN(
        const bool same,
        HoldSameValues(checkpoint_.tensors.find(kEmbedding)->second, head->second));
    if (!same) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: tensor \"{}\" differs from \"{}\", but config.json says that "
                         "tie_word_embeddings is true; set it to false if the head is to be used",
                         head->second.file->path(), kHead, kEmbedding));
    }
    used_.insert(kHead);
    return {};
  }

  Status CheckNothingIsLeft() const {
    for (const auto& [name, source] : checkpoint_.tensors) {
      if (used_.contains(name) || IsRedundant(name)) continue;
      return Fail(ErrorCode::kUnsupported,
                  Format("{}: tensor \"{}\" is not part of a {} with {} layers; the model "
                         "would compute something else without it",
                         source.file->path(), Quotable(source.name), config_.architecture,
                         config_.num_hidden_layers));
    }
    return {};
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  std::set<std::string_view> used_;
};

void MultiplyBy(std::span<const float> factors, std::vector<float>& target) {
  if (target.empty()) target.assign(factors.size(), 1.0f);
  for (size_t i = 0; i < factors.size(); ++i) target[i] *= factors[i];
}

void MultiplyRow(std::span<const float> factors, std::span<float> row) {
  if (factors.empty()) return;
  for (size_t j = 0; j < row.size(); ++j) row[j] = FiniteProduct(row[j], factors[j]);
}

}  // namespace

void MultiplyColumns(std::span<const float> factors, MappedPart& part) {
  MultiplyBy(factors, part.is_rotated ? part.rotated_column_factors : part.column_factors);
}

void MultiplyRows(std::span<const float> factors, MappedPart& part) {
  MultiplyBy(factors, part.row_factors);
}

void ApplyFactors(const MappedPart& part, uint64_t first_row, size_t columns,
                  std::span<float> values) {
  for (size_t i = 0; i * columns < values.size(); ++i) {
    const std::span<float> row = values.subspan(i * columns, columns);
    if (!part.row_factors.empty()) {
      const float factor = part.row_factors[first_row + i];
      for (float& value : row) value = FiniteProduct(value, factor);
    }
    MultiplyRow(part.column_factors, row);
    if (part.is_rotated) {
      RotateRows(columns, row);
      MultiplyRow(part.rotated_column_factors, row);
    }
  }
}

Result<std::vector<MappedTensor>> MapTensors(const Checkpoint& checkpoint) {
  return Mapper(checkpoint).Map();
}

}  // namespace cria
