#include "converter/hugging_face/hf_layers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "converter/checkpoint/layer_kinds.h"
#include "converter/hugging_face/hf_experts.h"
#include "converter/hugging_face/hf_gemma4.h"
#include "converter/hugging_face/hf_linear_attention.h"
#include "converter/hugging_face/hf_mamba.h"
#include "converter/hugging_face/hf_rope.h"
#include "converter/hugging_face/hf_short_conv.h"
#include "core/format.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr uint32_t kDefaultMaxWindowLayers = 28;
constexpr uint32_t kDefaultNoRopeLayerInterval = 4;

// Which layers have a window, by layer_types, which must exist.
Result<std::vector<bool>> ReadLayerTypes(const JsonFields& fields, uint32_t num_hidden_layers) {
  CRIA_ASSIGN_OR_RETURN(const json* types, fields.Array("layer_types"));
  if (types->size() != num_hidden_layers) {
    return fields.Bad(
        ErrorCode::kInvalidFile, "layer_types",
        Format("has {} entries, but num_hidden_layers is {}", types->size(), num_hidden_layers));
  }
  std::vector<bool> is_sliding;
  for (const json& type : *types) {
    if (type != kSlidingAttention && type != kFullAttention) {
      return fields.Bad(ErrorCode::kUnsupported, "layer_types",
                        Format("has {}; this version supports full_attention and sliding_attention",
                               JsonFields::Text(type)));
    }
    is_sliding.push_back(type == kSlidingAttention);
  }
  return is_sliding;
}

// Fails if a field asks for something that the family does not have.
Status RefuseGiven(const JsonFields& fields, std::string_view name) {
  const json* value = fields.Find(name);
  if (value == nullptr) return {};
  return fields.Bad(ErrorCode::kUnsupported, name,
                    Format("is {}, which this version does not support for this architecture",
                           JsonFields::Text(*value)));
}

Status RefuseForeignWindow(const JsonFields& fields, Window window) {
  if (window == Window::kRefused) CRIA_RETURN_IF_ERROR(RefuseGiven(fields, "sliding_window"));
  if (window != Window::kRefused && window != Window::kAll) return {};
  return RefuseGiven(fields, "layer_types");
}

// The window of layers that have one, 0 for none.
Result<uint32_t> ReadWindow(const JsonFields& fields, const Family& family) {
  constexpr std::string_view kName = "sliding_window";
  if (family.window == Window::kIgnored || family.window == Window::kRefused) return 0;
  if (family.window == Window::kUseSlidingWindow || family.window == Window::kLayersWithoutRope) {
    CRIA_ASSIGN_OR_RETURN(const bool is_used, fields.Bool("use_sliding_window", false));
    if (!is_used) return 0;
  }
  // Null switches the default off, too.
  const bool is_null = fields.Find(kName) == nullptr && fields.object().contains(kName);
  CRIA_ASSIGN_OR_RETURN(const uint32_t window,
                        fields.Integer(kName, is_null ? 0 : family.sliding_window));
  const bool is_absent = fields.Find(kName) == nullptr;
  if (window != 0 || is_absent || !family.refuses_window_of_0) return window;
  return fields.Bad(ErrorCode::kUnsupported, kName, "is 0; null means that there is no window");
}

// Which layers have rope: all, or as no_rope_layers says, which has 1 for layers with rope, or all
// but every n-th. There may be more entries than layers.
Result<std::vector<bool>> ReadLayersWithRope(const JsonFields& fields, const Family& family,
                                             size_t num_layers) {
  std::vector<bool> has_rope(num_layers, true);
  if (family.has_position_embedding_type) {
    constexpr std::string_view kType = "position_embedding_type";
    CRIA_ASSIGN_OR_RETURN(const std::string type, fields.String(kType, "nope"));
    if (type == "nope") has_rope.assign(num_layers, false);
    if (type == "nope" || type == "rope") return has_rope;
    return fields.Bad(
        ErrorCode::kUnsupported, kType,
        Format("is {}; this version supports rope and nope", JsonFields::Text(json(type))));
  }
  if (!family.Uses("no_rope_layers")) return has_rope;
  if (fields.Find("no_rope_layers") == nullptr) {
    CRIA_ASSIGN_OR_RETURN(const uint32_t interval,
                          fields.Integer("no_rope_layer_interval", kDefaultNoRopeLayerInterval));
    if (interval == 0) {
      return fields.Bad(ErrorCode::kInvalidFile, "no_rope_layer_interval", "is 0");
    }
    for (size_t i = 0; i < num_layers; ++i) has_rope[i] = (i + 1) % interval != 0;
    return has_rope;
  }
  CRIA_ASSIGN_OR_RETURN(const json* flags, fields.Array("no_rope_layers"));
  if (flags->size() < num_layers) {
    return fields.Bad(
        ErrorCode::kInvalidFile, "no_rope_layers",
        Format("has {} entries, but num_hidden_layers is {}", flags->size(), num_layers));
  }
  for (size_t i = 0; i < num_layers; ++i) {
    const json& flag = (*flags)[i];
    if (flag != 0 && flag != 1) {
      return fields.Bad(ErrorCode::kInvalidFile, "no_rope_layers",
                        Format("has {}, but must have 0 or 1", JsonFields::Text(flag)));
    }
    has_rope[i] = flag == 1;
  }
  return has_rope;
}

// Which layers have the window by the rules of a family whose configuration has no layer_types.
Result<std::vector<bool>> SlidingLayersByRule(const JsonFields& fields, const Family& family,
                                              const std::vector<bool>& has_rope, uint32_t window) {
  std::vector<bool> is_sliding(has_rope.size(), window != 0);
  switch (family.window) {
    case Window::kIgnored:
    case Window::kRefused:
    case Window::kSlidingWindow:
    case Window::kAll:
      break;
    case Window::kUseSlidingWindow: {
      if (window == 0) break;
      // The number of layers without a window; they come first.
      CRIA_ASSIGN_OR_RETURN(const uint32_t full_layers,
                            fields.Integer("max_window_layers", kDefaultMaxWindowLayers));
      std::fill_n(is_sliding.begin(), std::min<size_t>(full_layers, is_sliding.size()), false);
      break;
    }
    case Window::kLayersWithoutRope:
      for (size_t i = 0; i < has_rope.size(); ++i) is_sliding[i] = window != 0 && !has_rope[i];
      break;
    case Window::kPattern: {
      uint32_t period = family.sliding_window_pattern;
      if (family.Uses("sliding_window_pattern")) {
        CRIA_ASSIGN_OR_RETURN(period, fields.Integer("sliding_window_pattern", period));
      }
      if (period == 0) {
        return fields.Bad(ErrorCode::kInvalidFile, "sliding_window_pattern", "is 0");
      }
      for (size_t i = 0; i < is_sliding.size(); ++i) is_sliding[i] = (i + 1) % period != 0;
      break;
    }
  }
  return is_sliding;
}

// Fails if layers of layer_types have a window, but none is given.
Status CheckWindow(const JsonFields& fields, const std::vector<bool>& is_sliding, uint32_t window) {
  if (window != 0 || !std::ranges::contains(is_sliding, true)) return {};
  return fields.Bad(ErrorCode::kInvalidFile, "layer_types",
                    "has sliding_attention, but sliding_window gives no window");
}

Result<std::vector<bool>> ReadSlidingLayers(const JsonFields& fields, const Family& family,
                                            const std::vector<bool>& has_rope, uint32_t window,
                                            uint32_t num_hidden_layers) {
  std::vector<bool> is_sliding;
  const bool has_types = family.window != Window::kIgnored && fields.Find("layer_types") != nullptr;
  if (has_types) {
    CRIA_ASSIGN_OR_RETURN(is_sliding, ReadLayerTypes(fields, num_hidden_layers));
  } else {
    CRIA_ASSIGN_OR_RETURN(is_sliding, SlidingLayersByRule(fields, family, has_rope, window));
  }
  if (has_types) CRIA_RETURN_IF_ERROR(CheckWindow(fields, is_sliding, window));
  if (window != 0 || !std::ranges::contains(is_sliding, true)) return is_sliding;
  return fields.Bad(ErrorCode::kInvalidFile, "sliding_window",
                    "gives no window, but layers of this architecture have one");
}

bool HasRecurrentTypes(const Family& family) {
  return family.short_conv != nullptr || family.linear_attention || family.mamba;
}

// The types of the layers of a family that has recurrent ones.
Result<std::vector<std::string_view>> ReadRecurrentTypes(const JsonFields& fields,
                                                         const Family& family,
                                                         uint32_t num_hidden_layers) {
  if (family.mamba) return ReadHfMambaLayers(fields, num_hidden_layers);
  if (family.linear_attention) return ReadHfLinearAttentionLayers(fields, num_hidden_layers);
  return ReadHfShortConvLayers(fields, family, num_hidden_layers);
}

}  // namespace

Status ReadHfLayers(const JsonFields& fields, const Family& family, ModelConfig& config) {
  CRIA_RETURN_IF_ERROR(RefuseForeignWindow(fields, family.window));
  CRIA_ASSIGN_OR_RETURN(const uint32_t window, ReadWindow(fields, family));
  // ValidateConfig refuses more layers.
  const size_t num_layers = std::min(config.num_hidden_layers, kMaxHiddenLayers);
  CRIA_ASSIGN_OR_RETURN(const std::vector<bool> has_rope,
                        ReadLayersWithRope(fields, family, num_layers));
  std::vector<bool> is_sliding;
  std::vector<std::string_view> types(num_layers);
  const bool has_types = HasRecurrentTypes(family);
  if (has_types) {
    CRIA_ASSIGN_OR_RETURN(types, ReadRecurrentTypes(fields, family, config.num_hidden_layers));
    for (const std::string_view type : types) is_sliding.push_back(type == kSlidingAttention);
    CRIA_RETURN_IF_ERROR(CheckWindow(fields, is_sliding, window));
  } else {
    CRIA_ASSIGN_OR_RETURN(
        is_sliding, ReadSlidingLayers(fields, family, has_rope, window, config.num_hidden_layers));
  }
  // The last layer of Gemma 4 has no window, whatever its type is.
  if (family.is_gemma4 && !is_sliding.empty()) is_sliding.back() = false;
  LayerKind full;
  LayerKind sliding = {.sliding_window = window};
  CRIA_RETURN_IF_ERROR(ReadHfGemma4Heads(fields, family, config, is_sliding, full, sliding));
  // Parameters of a type that no layer has may be absent.
  const bool has_full = has_types ? std::ranges::contains(types, kFullAttention)
                                  : std::ranges::contains(is_sliding, false);
  if (has_full && std::ranges::contains(has_rope, true)) {
    CRIA_RETURN_IF_ERROR(ReadHfRope(fields, family, kFullAttention, config, full));
  } else if (has_full) {
    full.rope_theta = family.rope_theta;  // It must have a value.
  }
  if (std::ranges::contains(is_sliding, true)) {
    CRIA_RETURN_IF_ERROR(ReadHfRope(fields, family, kSlidingAttention, config, sliding));
  }
  CRIA_ASSIGN_OR_RETURN(const std::vector<bool> is_dense,
                        ReadHfDenseLayers(fields, family, num_layers));
  const bool has_sliding = std::ranges::contains(is_sliding, true);
  const LayerKind recurrent = {.rope_theta = has_full      ? full.rope_theta
                                             : has_sliding ? sliding.rope_theta
                                                           : family.rope_theta,
                               .no_rope = true,
                               .short_conv = family.short_conv != nullptr,
                               .linear_attention = family.linear_attention,
                               .mamba = family.mamba};
  std::vector<LayerKind> layers;
  for (size_t i = 0; i < num_layers; ++i) {
    if (has_types && types[i] != kFullAttention && !is_sliding[i]) {
      layers.push_back(recurrent);
    } else {
      layers.push_back(is_sliding[i] ? sliding : full);
      const bool has_none = family.only_windows_have_rope && window != 0 && !is_sliding[i];
      layers.back().no_rope = !has_rope[i] || has_none;
    }
    layers.back().dense_mlp = is_dense[i];
  }
  CRIA_RETURN_IF_ERROR(ReadHfGemma4SharedLayers(fields, family, is_sliding, layers));
  SetLayerKinds(std::move(layers), config);
  return {};
}

}  // namespace cria
