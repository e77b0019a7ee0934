#include "converter/hugging_face/hf_experts.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/format.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr std::string_view kNumDense = "num_dense_layers";

// Windows of these families are switched on, but by rules that differ between versions.
Status RefuseWindow(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const bool uses_window, fields.Bool("use_sliding_window", false));
  if (uses_window) {
    return fields.Bad(ErrorCode::kUnsupported, "use_sliding_window",
                      "is true, which this version does not support for a mixture of experts");
  }
  const json* types = fields.Find("layer_types");
  if (types == nullptr || (types->is_array() && std::ranges::all_of(*types, [](const json& type) {
                             return type == "full_attention";
                           }))) {
    return {};
  }
  return fields.Bad(ErrorCode::kUnsupported, "layer_types",
                    "has other layers than full_attention, which this version does not support "
                    "for a mixture of experts");
}

Result<uint32_t> ReadNumExperts(const JsonFields& fields, const ExpertFields& experts) {
  CRIA_ASSIGN_OR_RETURN(const uint32_t count,
                        fields.Integer(experts.num_experts, experts.default_num_experts));
  for (const std::string_view name : {"num_experts", "num_local_experts"}) {
    if (name == experts.num_experts || fields.Find(name) == nullptr) continue;
    if (name != experts.num_experts_alias) {
      return fields.Bad(
          ErrorCode::kUnsupported, name,
          Format("is not used by this architecture, but {}; remove it", experts.num_experts));
    }
    const bool has_both = fields.Find(experts.num_experts) != nullptr;
    CRIA_ASSIGN_OR_RETURN(const uint32_t other, fields.Integer(name));
    if (!has_both) return other;
    if (other != count) {
      return fields.Bad(
          ErrorCode::kInvalidFile, name,
          Format("contradicts {}; correct the one that is wrong", experts.num_experts));
    }
  }
  return count;
}

Result<float> ReadAboveZero(const JsonFields& fields, std::string_view name, float otherwise) {
  CRIA_ASSIGN_OR_RETURN(const float value, fields.Number(name, otherwise));
  if (value > 0.0f && std::isfinite(value)) return value;
  return fields.Bad(ErrorCode::kUnsupported, name, Format("is {}, but must be more than 0", value));
}

}  // namespace

Status ReadHfExperts(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (family.experts == nullptr) return {};
  const ExpertFields& experts = *family.experts;
  if (family.window == Window::kIgnored && family.short_conv == nullptr &&
      !family.linear_attention && !family.mamba) {
    CRIA_RETURN_IF_ERROR(RefuseWindow(fields));
  }
  CRIA_ASSIGN_OR_RETURN(const uint32_t num_experts, ReadNumExperts(fields, experts));
  if (num_experts == 0) {
    return fields.Bad(ErrorCode::kUnsupported, experts.num_experts,
                      "is 0, but a mixture needs experts");
  }
  const size_t num_layers = std::min(config.num_hidden_layers, kMaxHiddenLayers);
  CRIA_ASSIGN_OR_RETURN(const std::vector<bool> is_dense,
                        ReadHfDenseLayers(fields, family, num_layers));
  if (!std::ranges::contains(is_dense, false)) {
    constexpr std::string_view kLeavesNone =
        "leaves no layer with experts; convert it as a dense model";
    if (experts.is_lfm2) return fields.Bad(ErrorCode::kUnsupported, kNumDense, kLeavesNone);
    return fields.Bad(ErrorCode::kUnsupported, "mlp_only_layers",
                      Format("or decoder_sparse_step {}", kLeavesNone));
  }
  config.num_experts = num_experts;
  CRIA_ASSIGN_OR_RETURN(config.num_experts_per_tok,
                        fields.Integer("num_experts_per_tok", experts.default_num_experts_per_tok));
  config.moe_intermediate_size = config.intermediate_size;
  if (experts.default_moe_intermediate_size != 0) {
    CRIA_ASSIGN_OR_RETURN(
        config.moe_intermediate_size,
        fields.Integer("moe_intermediate_size", experts.default_moe_intermediate_size));
  }
  config.norm_topk_prob = true;
  if (experts.has_norm_field) {
    CRIA_ASSIGN_OR_RETURN(config.norm_topk_prob,
                          fields.Bool("norm_topk_prob", experts.default_norm));
  }
  if (experts.is_lfm2) {
    config.scoring_func = ScoringFunc::kSigmoid;
    CRIA_ASSIGN_OR_RETURN(config.use_expert_bias, fields.Bool("use_expert_bias", true));
  }
  if (experts.is_gpt_oss) {
    config.router_bias = config.experts_bias = config.attn_sinks = true;
    CRIA_ASSIGN_OR_RETURN(config.swiglu_alpha, ReadAboveZero(fields, "swiglu_alpha", 1.702f));
    CRIA_ASSIGN_OR_RETURN(config.swiglu_limit, ReadAboveZero(fields, "swiglu_limit", 7.0f));
  }
  if (experts.shared_size.empty()) return {};
  CRIA_ASSIGN_OR_RETURN(config.shared_expert_intermediate_size,
                        fields.Integer(experts.shared_size, experts.default_shared_size));
  config.shared_expert_gate =
      experts.has_shared_gate && config.shared_expert_intermediate_size != 0;
  return {};
}

Result<std::vector<bool>> ReadHfDenseLayers(const JsonFields& fields, const Family& family,
                                            size_t num_layers) {
  std::vector<bool> is_dense(num_layers, false);
  if (family.experts != nullptr && family.experts->is_lfm2) {
    CRIA_ASSIGN_OR_RETURN(const uint32_t num_dense, fields.Integer(kNumDense, 2));
    std::fill_n(is_dense.begin(), std::min<size_t>(num_dense, num_layers), true);
    return is_dense;
  }
  if (family.experts == nullptr || !family.experts->has_dense_layers) return is_dense;
  constexpr std::string_view kStep = "decoder_sparse_step";
  CRIA_ASSIGN_OR_RETURN(const uint32_t step, fields.Integer(kStep, 1));
  if (step == 0) return fields.Bad(ErrorCode::kInvalidFile, kStep, "is 0");
  for (size_t i = 0; i < num_layers; ++i) is_dense[i] = (i + 1) % step != 0;
  constexpr std::string_view kOnly = "mlp_only_layers";
  const json* only = fields.Find(kOnly);
  if (only == nullptr) return is_dense;
  for (size_t i = 0; i < num_layers && only->is_array(); ++i) {
    if (std::ranges::contains(*only, json(i))) is_dense[i] = true;
  }
  if (only->is_array() &&
      std::ranges::all_of(*only, [](const json& layer) { return layer.is_number_unsigned(); })) {
    return is_dense;
  }
  return fields.Bad(ErrorCode::kInvalidFile, kOnly,
                    Format("is {}, but must be a list of layers", JsonFields::Text(*only)));
}

}  // namespace cria
