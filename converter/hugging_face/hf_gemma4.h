#pragma once

#include <vector>

#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// These functions read the fields that only Gemma 4's class has; they do nothing for other
// families.

// Fields that are of no layer alone.
Status ReadHfGemma4(const JsonFields& fields, const Family& family, ModelConfig& config);

// The sizes of attention in layers with and without a window, which is_sliding tells apart: those
// of per_layer_config or, if there is none, global_head_dim and num_global_key_value_heads.
Status ReadHfGemma4Heads(const JsonFields& fields, const Family& family, const ModelConfig& config,
                         const std::vector<bool>& is_sliding, LayerKind& full, LayerKind& sliding);

// The last layers, which read the keys and values of earlier ones with the same sort of window.
Status ReadHfGemma4SharedLayers(const JsonFields& fields, const Family& family,
                                const std::vector<bool>& is_sliding,
                                std::vector<LayerKind>& layers);

}  // namespace cria
