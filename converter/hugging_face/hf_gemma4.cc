#include "converter/hugging_face/hf_gemma4.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "core/format.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr std::string_view kPerLayer = "per_layer_config";
constexpr std::string_view kSharedLayers = "num_kv_shared_layers";

// What layers of one sort have in place of head_dim and num_key_value_heads.
struct HeadSizes {
  uint32_t head_dim;
  uint32_t num_key_value_heads;

  bool operator==(const HeadSizes&) const = default;
};

Result<uint32_t> ReadPositive(const JsonFields& fields, std::string_view name,
                              std::optional<uint32_t> otherwise) {
  if (fields.object().contains(name) && fields.Find(name) == nullptr) {
    return fields.Bad(ErrorCode::kInvalidFile, name, "is null, which has no meaning here");
  }
  CRIA_ASSIGN_OR_RETURN(const uint32_t value, fields.Integer(name, otherwise));
  if (value != 0) return value;
  return fields.Bad(ErrorCode::kInvalidFile, name, "is 0");
}

// The sizes of each layer, by per_layer_config.
Result<std::vector<HeadSizes>> ReadPerLayerConfig(const JsonFields& fields, const HeadSizes& model,
                                                  size_t num_layers) {
  const json* all = fields.Find(kPerLayer);
  if (all == nullptr || !all->is_object()) {
    return fields.Bad(ErrorCode::kInvalidFile, kPerLayer, "must be an object");
  }
  const JsonFields object(*all, fields.where(), fields.PathOf(kPerLayer));
  std::vector<HeadSizes> sizes(num_layers, model);
  std::vector<bool> is_given(num_layers, false);
  for (const auto& [key, overrides] : all->items()) {
    size_t layer = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
    if (key.empty() || error != std::errc() || end != key.data() + key.size() ||
        layer >= num_layers || is_given[layer]) {
      return object.Bad(ErrorCode::kInvalidFile, key, "is not a layer, or not the only one");
    }
    is_given[layer] = true;
    if (!overrides.is_object())
      return object.Bad(ErrorCode::kInvalidFile, key, "must be an object");
    for (const auto& [name, value] : overrides.items()) {
      if (name == "head_dim" || name == "num_key_value_heads") continue;
      return object.Bad(ErrorCode::kUnsupported, key,
                        Format("has {}; this version supports head_dim and num_key_value_heads",
                               JsonFields::Text(json(name))));
    }
    const JsonFields own(overrides, fields.where(), object.PathOf(key));
    CRIA_ASSIGN_OR_RETURN(sizes[layer].head_dim, ReadPositive(own, "head_dim", model.head_dim));
    CRIA_ASSIGN_OR_RETURN(sizes[layer].num_key_value_heads,
                          ReadPositive(own, "num_key_value_heads", model.num_key_value_heads));
  }
  return sizes;
}

Result<std::vector<HeadSizes>> ReadGlobalSizes(const JsonFields& fields, const HeadSizes& model,
                                               const std::vector<bool>& is_sliding) {
  HeadSizes global = model;
  CRIA_ASSIGN_OR_RETURN(global.head_dim, ReadPositive(fields, "global_head_dim", 512));
  CRIA_ASSIGN_OR_RETURN(const bool has_heads, fields.Bool("attention_k_eq_v", false));
  constexpr std::string_view kHeads = "num_global_key_value_heads";
  if (has_heads && fields.Find(kHeads) != nullptr) {
    CRIA_ASSIGN_OR_RETURN(global.num_key_value_heads, ReadPositive(fields, kHeads, {}));
  }
  std::vector<HeadSizes> sizes;
  sizes.reserve(is_sliding.size());
  for (const bool slides : is_sliding) sizes.push_back(slides ? model : global);
  return sizes;
}

Status ReadExperts(const JsonFields& fields, ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(config.enable_moe_block, fields.Bool("enable_moe_block", false));
  if (!config.enable_moe_block) return {};
  CRIA_ASSIGN_OR_RETURN(config.num_experts, ReadPositive(fields, "num_experts", {}));
  CRIA_ASSIGN_OR_RETURN(config.num_experts_per_tok, ReadPositive(fields, "top_k_experts", {}));
  CRIA_ASSIGN_OR_RETURN(config.moe_intermediate_size,
                        ReadPositive(fields, "moe_intermediate_size", {}));
  config.norm_topk_prob = true;
  return {};
}

}  // namespace

Status ReadHfGemma4(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (!family.is_gemma4) return {};
  // Tokens of pictures see each other, of which there are none.
  constexpr std::string_view kBidirectional = "use_bidirectional_attention";
  const json* bidirectional = fields.Find(kBidirectional);
  if (bidirectional != nullptr && *bidirectional != "vision") {
    return fields.Bad(
        ErrorCode::kUnsupported, kBidirectional,
        Format("is {}, which this version does not support", JsonFields::Text(*bidirectional)));
  }
  config.v_norm = true;
  config.layer_scalar = true;
  for (const std::string_view name : {"hidden_size_per_layer_input", "enable_moe_block"}) {
    const json* value = fields.Find(name);
    if (family.Uses(name) || value == nullptr || *value == 0 || *value == false) continue;
    return fields.Bad(
        ErrorCode::kUnsupported, name,
        Format("is {}, which this architecture does not use; remove it", JsonFields::Text(*value)));
  }
  const bool has_inputs = family.Uses("hidden_size_per_layer_input");
  CRIA_ASSIGN_OR_RETURN(config.hidden_size_per_layer_input,
                        fields.Integer("hidden_size_per_layer_input", has_inputs ? 256 : 0));
  constexpr std::string_view kRows = "vocab_size_per_layer_input";
  CRIA_ASSIGN_OR_RETURN(const uint32_t rows, fields.Integer(kRows, 262144));
  if (config.hidden_size_per_layer_input != 0 && rows < config.vocab_size) {
    return fields.Bad(ErrorCode::kUnsupported, kRows,
                      Format("is {}, but there are {} tokens", rows, config.vocab_size));
  }
  return ReadExperts(fields, config);
}

Status ReadHfGemma4Heads(const JsonFields& fields, const Family& family, const ModelConfig& config,
                         const std::vector<bool>& is_sliding, LayerKind& full, LayerKind& sliding) {
  if (!family.is_gemma4) return {};
  const HeadSizes model = {config.head_dim, config.num_key_value_heads};
  CRIA_ASSIGN_OR_RETURN(const std::vector<HeadSizes> sizes,
                        fields.object().contains(kPerLayer)
                            ? ReadPerLayerConfig(fields, model, is_sliding.size())
                            : ReadGlobalSizes(fields, model, is_sliding));
  for (const bool slides : {false, true}) {
    const auto first = std::ranges::find(is_sliding, slides);
    if (first == is_sliding.end()) continue;
    const HeadSizes own = sizes[static_cast<size_t>(first - is_sliding.begin())];
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (is_sliding[i] != slides || sizes[i] == own) continue;
      return fields.Bad(ErrorCode::kUnsupported, kPerLayer,
                        Format("gives layer {} other sizes than layers of the same type", i));
    }
    LayerKind& kind = slides ? sliding : full;
    if (own.head_dim != model.head_dim) kind.global_head_dim = own.head_dim;
    if (own.num_key_value_heads != model.num_key_value_heads) {
      kind.num_global_key_value_heads = own.num_key_value_heads;
    }
  }
  return {};
}

Status ReadHfGemma4SharedLayers(const JsonFields& fields, const Family& family,
                                const std::vector<bool>& is_sliding,
                                std::vector<LayerKind>& layers) {
  if (!family.is_gemma4) return {};
  CRIA_ASSIGN_OR_RETURN(const uint32_t num_shared, fields.Integer(kSharedLayers, 0));
  CRIA_ASSIGN_OR_RETURN(const bool are_wide, fields.Bool("use_double_wide_mlp", false));
  if (num_shared >= layers.size()) {
    if (num_shared == 0) return {};
    return fields.Bad(ErrorCode::kInvalidFile, kSharedLayers,
                      Format("is {}, but there are {} layers", num_shared, layers.size()));
  }
  const size_t num_own = layers.size() - num_shared;
  for (size_t i = num_own; i < layers.size(); ++i) {
    size_t read = num_own;
    while (read > 0 && is_sliding[read - 1] != is_sliding[i]) --read;
    if (read == 0) {
      return fields.Bad(
          ErrorCode::kInvalidFile, kSharedLayers,
          Format("is {}, but no layer before these is of the type of layer {}", num_shared, i));
    }
    layers[i].kv_shared_layer = static_cast<uint32_t>(read);
    layers[i].use_double_wide_mlp = are_wide;
  }
  return {};
}

}  // namespace cria
