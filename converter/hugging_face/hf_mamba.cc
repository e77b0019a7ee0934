#include "converter/hugging_face/hf_mamba.h"

#include <algorithm>

#include "converter/hugging_face/hf_rope.h"
#include "core/format.h"

namespace cria {
namespace {

using nlohmann::json;

struct MambaSize {
  std::string_view name;
  uint32_t ModelConfig::* member;
  uint32_t otherwise;
};
constexpr MambaSize kMambaSizes[] = {{"mamba_d_conv", &ModelConfig::mamba_d_conv, 4},
                                     {"mamba_d_state", &ModelConfig::mamba_d_state, 256},
                                     {"mamba_n_heads", &ModelConfig::mamba_n_heads, 128},
                                     {"mamba_n_groups", &ModelConfig::mamba_n_groups, 1}};

// All heads together have mamba_expand times as many channels as the hidden state.
Status ReadHeads(const JsonFields& fields, ModelConfig& config) {
  constexpr std::string_view kHeadDim = "mamba_d_head";
  CRIA_ASSIGN_OR_RETURN(const uint32_t expand, fields.Integer("mamba_expand", 2));
  const uint64_t channels = uint64_t{expand} * config.hidden_size;
  const uint32_t heads = std::max(config.mamba_n_heads, 1u);
  const json* given = fields.Find(kHeadDim);
  config.mamba_d_head = static_cast<uint32_t>(channels / heads);
  if (given != nullptr && *given != "auto") {
    CRIA_ASSIGN_OR_RETURN(config.mamba_d_head, fields.Integer(kHeadDim));
  }
  if (config.mamba_channels() == channels) return {};
  return fields.Bad(ErrorCode::kInvalidFile, kHeadDim,
                    Format("is {} for {} heads, but mamba_expand * hidden_size is {}",
                           config.mamba_d_head, config.mamba_n_heads, channels));
}

// Time steps are never below 0. As they are computed with bounds for a prompt, but without them for
// the tokens behind it, no other bounds are converted.
Status CheckTimeSteps(const JsonFields& fields) {
  constexpr std::string_view kLimit = "time_step_limit";
  const json* limit = fields.Find(kLimit);
  if (limit == nullptr) return {};
  const json infinity = {{"__float__", "Infinity"}};
  if (limit->is_array() && limit->size() == 2 && limit->front() == 0.0 &&
      limit->back() == infinity) {
    return {};
  }
  return fields.Bad(
      ErrorCode::kUnsupported, kLimit,
      Format("is {}, but this version supports no bounds of time steps", JsonFields::Text(*limit)));
}

Result<std::vector<std::string_view>> ReadTypes(const JsonFields& fields, std::string_view name,
                                                uint32_t num_hidden_layers) {
  CRIA_ASSIGN_OR_RETURN(const json* given, fields.Array(name));
  if (given->size() != num_hidden_layers) {
    return fields.Bad(
        ErrorCode::kInvalidFile, name,
        Format("has {} entries, but num_hidden_layers is {}", given->size(), num_hidden_layers));
  }
  std::vector<std::string_view> types;
  for (const json& type : *given) {
    const bool is_mamba = type == "mamba" || type == "linear_attention";
    if (!is_mamba && type != "attention" && type != kFullAttention) {
      return fields.Bad(
          ErrorCode::kUnsupported, name,
          Format("has {}; this version supports mamba and attention", JsonFields::Text(type)));
    }
    types.push_back(is_mamba ? kMambaLayer : kFullAttention);
  }
  return types;
}

}  // namespace

Status ReadHfMamba(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (!family.mamba) return {};
  CRIA_ASSIGN_OR_RETURN(const auto types, ReadHfMambaLayers(fields, config.num_hidden_layers));
  if (!std::ranges::contains(types, kMambaLayer)) return {};
  // It is that of the convolution, too; the gates of its output are always SiLU.
  if (config.hidden_act != HiddenAct::kSilu) {
    return fields.Bad(ErrorCode::kUnsupported, "hidden_act",
                      "is not silu, which this version needs for Mamba");
  }
  for (const MambaSize& size : kMambaSizes) {
    CRIA_ASSIGN_OR_RETURN(config.*size.member, fields.Integer(size.name, size.otherwise));
  }
  CRIA_RETURN_IF_ERROR(ReadHeads(fields, config));
  CRIA_ASSIGN_OR_RETURN(config.mamba_conv_bias, fields.Bool("mamba_conv_bias", true));
  CRIA_ASSIGN_OR_RETURN(config.mamba_proj_bias, fields.Bool("mamba_proj_bias", false));
  return CheckTimeSteps(fields);
}

Result<std::vector<std::string_view>> ReadHfMambaLayers(const JsonFields& fields,
                                                        uint32_t num_hidden_layers) {
  constexpr std::string_view kTypes = "layer_types";
  constexpr std::string_view kOlder = "layers_block_type";
  constexpr std::string_view kWindow = "sliding_window";
  if (fields.Find(kWindow) != nullptr) {
    return fields.Bad(ErrorCode::kUnsupported, kWindow,
                      Format("is {}, which this version does not support for this architecture",
                             JsonFields::Text(*fields.Find(kWindow))));
  }
  // ValidateConfig refuses more layers.
  std::vector<std::string_view> types(std::min(num_hidden_layers, kMaxHiddenLayers), kMambaLayer);
  if (fields.Find(kTypes) != nullptr) {
    CRIA_ASSIGN_OR_RETURN(types, ReadTypes(fields, kTypes, num_hidden_layers));
  }
  if (fields.Find(kOlder) == nullptr) return types;
  CRIA_ASSIGN_OR_RETURN(const auto older, ReadTypes(fields, kOlder, num_hidden_layers));
  if (fields.Find(kTypes) == nullptr || older == types) return older;
  return fields.Bad(ErrorCode::kInvalidFile, kOlder,
                    "contradicts layer_types; remove the one that is wrong");
}

}  // namespace cria
