#include "converter/hugging_face/hf_linear_attention.h"

#include <algorithm>

#include "converter/hugging_face/hf_rope.h"
#include "core/format.h"

namespace cria {
namespace {

using nlohmann::json;

struct LinearSize {
  std::string_view name;
  uint32_t ModelConfig::* member;
  uint32_t otherwise;
};
constexpr LinearSize kLinearSizes[] = {
    {"linear_conv_kernel_dim", &ModelConfig::linear_conv_kernel_dim, 4},
    {"linear_key_head_dim", &ModelConfig::linear_key_head_dim, 128},
    {"linear_value_head_dim", &ModelConfig::linear_value_head_dim, 128},
    {"linear_num_key_heads", &ModelConfig::linear_num_key_heads, 16},
    {"linear_num_value_heads", &ModelConfig::linear_num_value_heads, 32}};

}  // namespace

Status ReadHfLinearAttention(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (!family.linear_attention) return {};
  config.attn_output_gate = true;
  // The classes do not have the field, which published configurations have, and always gate.
  constexpr std::string_view kGate = "attn_output_gate";
  CRIA_ASSIGN_OR_RETURN(const bool has_gate, fields.Bool(kGate, true));
  if (!has_gate) {
    return fields.Bad(ErrorCode::kUnsupported, kGate,
                      "is false, but this architecture always has these gates");
  }
  CRIA_ASSIGN_OR_RETURN(const auto types,
                        ReadHfLinearAttentionLayers(fields, config.num_hidden_layers));
  if (!std::ranges::contains(types, kLinearAttentionLayer)) return {};
  // It is that of the convolution, too; the gates of its output are always SiLU.
  if (config.hidden_act != HiddenAct::kSilu) {
    return fields.Bad(ErrorCode::kUnsupported, "hidden_act",
                      "is not silu, which this version needs for linear attention");
  }
  for (const LinearSize& size : kLinearSizes) {
    CRIA_ASSIGN_OR_RETURN(config.*size.member, fields.Integer(size.name, size.otherwise));
  }
  return {};
}

Result<std::vector<std::string_view>> ReadHfLinearAttentionLayers(const JsonFields& fields,
                                                                  uint32_t num_hidden_layers) {
  constexpr std::string_view kTypes = "layer_types";
  constexpr std::string_view kInterval = "full_attention_interval";
  std::vector<std::string_view> types;
  if (fields.Find(kTypes) == nullptr) {
    CRIA_ASSIGN_OR_RETURN(const uint32_t interval, fields.Integer(kInterval, 4));
    if (interval == 0) return fields.Bad(ErrorCode::kInvalidFile, kInterval, "is 0");
    // ValidateConfig refuses more layers.
    for (uint32_t i = 0; i < std::min(num_hidden_layers, kMaxHiddenLayers); ++i) {
      types.push_back((i + 1) % interval == 0 ? kFullAttention : kLinearAttentionLayer);
    }
    return types;
  }
  CRIA_ASSIGN_OR_RETURN(const json* given, fields.Array(kTypes));
  if (given->size() != num_hidden_layers) {
    return fields.Bad(
        ErrorCode::kInvalidFile, kTypes,
        Format("has {} entries, but num_hidden_layers is {}", given->size(), num_hidden_layers));
  }
  for (const json& type : *given) {
    if (type != kLinearAttentionLayer && type != kFullAttention) {
      return fields.Bad(ErrorCode::kUnsupported, kTypes,
                        Format("has {}; this version supports linear_attention and full_attention "
                               "for this architecture",
                               JsonFields::Text(type)));
    }
    types.push_back(type == kFullAttention ? kFullAttention : kLinearAttentionLayer);
  }
  return types;
}

}  // namespace cria
