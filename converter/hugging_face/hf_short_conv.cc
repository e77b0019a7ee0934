#include "converter/hugging_face/hf_short_conv.h"

#include <algorithm>
#include <limits>

#include "converter/hugging_face/hf_rope.h"
#include "core/format.h"

namespace cria {
namespace {

using nlohmann::json;

// The width of the feed-forward, which the class makes of intermediate_size: two thirds of it,
// times a multiplier, as a multiple of a number. Python's int() rounds down.
Result<uint32_t> ReadAdjustedWidth(const JsonFields& fields, uint32_t width) {
  CRIA_ASSIGN_OR_RETURN(const bool adjusts, fields.Bool("block_auto_adjust_ff_dim", true));
  if (!adjusts) return width;
  constexpr std::string_view kMultiplier = "block_ffn_dim_multiplier";
  CRIA_RETURN_IF_ERROR(fields.Number(kMultiplier, 1.0f));
  const json* given = fields.Find(kMultiplier);
  // Not as a float, whose rounding can make the product another whole number.
  const double multiplier = given == nullptr ? 1.0 : given->get<double>();
  CRIA_ASSIGN_OR_RETURN(const uint32_t multiple, fields.Integer("block_multiple_of", 256));
  if (multiple == 0) {
    return fields.Bad(ErrorCode::kInvalidFile, "block_multiple_of", "is 0");
  }
  const uint64_t two_thirds = uint64_t{2} * width / 3;
  const double wanted = multiplier * static_cast<double>(two_thirds);
  if (!(wanted >= 0.0 && wanted < static_cast<double>(std::numeric_limits<uint32_t>::max()))) {
    return fields.Bad(ErrorCode::kInvalidFile, kMultiplier,
                      Format("is {}, which gives no width of the feed-forward", multiplier));
  }
  const uint64_t blocks = (static_cast<uint64_t>(wanted) + multiple - 1) / multiple;
  // ValidateConfig refuses what is too large.
  return static_cast<uint32_t>(
      std::min<uint64_t>(blocks * multiple, std::numeric_limits<uint32_t>::max()));
}

// The class has no field for the activation and always computes SiLU.
Status RefuseOtherActivation(const JsonFields& fields, const ModelConfig& config) {
  if (config.hidden_act == HiddenAct::kSilu) return {};
  return fields.Bad(ErrorCode::kUnsupported, "hidden_act",
                    "is not silu, which is all that this architecture computes");
}

// tie_embedding is an older name, to which the class gives precedence.
Status ReadTied(const JsonFields& fields, ModelConfig& config) {
  constexpr std::string_view kOlder = "tie_embedding";
  if (fields.Find(kOlder) == nullptr) return {};
  CRIA_ASSIGN_OR_RETURN(const bool is_tied, fields.Bool(kOlder, true));
  if (fields.Find("tie_word_embeddings") != nullptr && is_tied != config.tie_word_embeddings) {
    return fields.Bad(ErrorCode::kInvalidFile, kOlder,
                      "contradicts tie_word_embeddings; correct the one that is wrong");
  }
  config.tie_word_embeddings = is_tied;
  return {};
}

Result<std::vector<std::string_view>> LayersOfIndices(const JsonFields& fields,
                                                      uint32_t num_hidden_layers) {
  constexpr std::string_view kIndices = "full_attn_idxs";
  // Without the field, every layer attends.
  const size_t num_layers = std::min(num_hidden_layers, kMaxHiddenLayers);
  if (fields.Find(kIndices) == nullptr) {
    return std::vector<std::string_view>(num_layers, kFullAttention);
  }
  std::vector<std::string_view> types(num_layers, kConvLayer);
  CRIA_ASSIGN_OR_RETURN(const json* indices, fields.Array(kIndices));
  for (const json& index : *indices) {
    if (!index.is_number_unsigned() || index.get<uint64_t>() >= num_layers) {
      return fields.Bad(ErrorCode::kInvalidFile, kIndices,
                        Format("has {}, but num_hidden_layers is {}", JsonFields::Text(index),
                               num_hidden_layers));
    }
    types[index.get<size_t>()] = kFullAttention;
  }
  return types;
}

// Returns what the class has for files without layer_types.
std::vector<std::string_view> LayersOfLfm3(uint32_t num_hidden_layers) {
  std::vector<std::string_view> types;
  for (uint32_t i = 0; i < std::min(num_hidden_layers, kMaxHiddenLayers); ++i) {
    const bool is_sliding = i % 4 == 0 && i > 0;
    types.push_back(i % 4 == 2 ? kFullAttention : is_sliding ? kSlidingAttention : kConvLayer);
  }
  return types;
}

}  // namespace

Status ReadHfShortConv(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (family.short_conv == nullptr) return {};
  const ShortConvFields& names = *family.short_conv;
  CRIA_RETURN_IF_ERROR(RefuseOtherActivation(fields, config));
  if (names.is_lfm3) {
    CRIA_ASSIGN_OR_RETURN(const bool has_output_norms, fields.Bool("use_sandwich_norm", true));
    if (has_output_norms) config.norm_placement = NormPlacement::kBeforeAndAfter;
    CRIA_ASSIGN_OR_RETURN(config.use_attention_gate, fields.Bool("use_attention_gate", true));
    // The class knows the field under this name, too.
    if (fields.Find("norm_eps") == nullptr) {
      CRIA_ASSIGN_OR_RETURN(config.rms_norm_eps, fields.Number("rms_norm_eps", 1e-5f));
    }
  }
  if (names.has_tie_embedding) CRIA_RETURN_IF_ERROR(ReadTied(fields, config));
  if (names.has_block_fields) {
    CRIA_ASSIGN_OR_RETURN(config.intermediate_size,
                          ReadAdjustedWidth(fields, config.intermediate_size));
  }
  // A model whose layers all attend has no other fields of convolutions.
  CRIA_ASSIGN_OR_RETURN(const auto types,
                        ReadHfShortConvLayers(fields, family, config.num_hidden_layers));
  if (!std::ranges::contains(types, kConvLayer)) return {};
  CRIA_ASSIGN_OR_RETURN(config.conv_L_cache,
                        fields.Integer("conv_L_cache", names.default_conv_L_cache));
  CRIA_ASSIGN_OR_RETURN(config.conv_bias, fields.Bool("conv_bias", false));
  return {};
}

Result<std::vector<std::string_view>> ReadHfShortConvLayers(const JsonFields& fields,
                                                            const Family& family,
                                                            uint32_t num_hidden_layers) {
  constexpr std::string_view kTypes = "layer_types";
  if (fields.Find(kTypes) == nullptr) {
    if (family.short_conv->is_lfm3) return LayersOfLfm3(num_hidden_layers);
    if (family.short_conv->has_block_fields) return LayersOfIndices(fields, num_hidden_layers);
    return fields.Bad(ErrorCode::kNotFound, kTypes,
                      "is missing; it must say which layers are convolutions");
  }
  CRIA_ASSIGN_OR_RETURN(const json* given, fields.Array(kTypes));
  if (given->size() != num_hidden_layers) {
    return fields.Bad(
        ErrorCode::kInvalidFile, kTypes,
        Format("has {} entries, but num_hidden_layers is {}", given->size(), num_hidden_layers));
  }
  std::vector<std::string_view> types;
  for (const json& type : *given) {
    if (type == kConvLayer) {
      types.push_back(kConvLayer);
    } else if (type == kFullAttention) {
      types.push_back(kFullAttention);
    } else if (type == kSlidingAttention && family.short_conv->is_lfm3) {
      types.push_back(kSlidingAttention);
    } else {
      return fields.Bad(
          ErrorCode::kUnsupported, kTypes,
          Format("has {}; this version supports {} for this architecture", JsonFields::Text(type),
                 family.short_conv->is_lfm3 ? "conv, full_attention and sliding_attention"
                                            : "conv and full_attention"));
    }
  }
  return types;
}

}  // namespace cria
