#pragma once

#include <array>
#include <string_view>

#include "model/config.h"

namespace cria {

// Names for a model file's `required_features`. A reader that does not know one of them would
// compute something else without an error.

// chat_template.source renders the chats.
inline constexpr std::string_view kJinjaFeature = "jinja";
// The tokenizer normalizes text.
inline constexpr std::string_view kNormalizeNfcFeature = "normalize_nfc";
// There are no weights, and the configuration has only vocab_size.
inline constexpr std::string_view kVocabularyOnlyFeature = "vocabulary_only";

// Fields of the configuration that change the computation.
struct Feature {
  std::string_view name;
  bool (*is_used)(const ModelConfig&);
};
inline constexpr std::array kFeatures = {
    Feature{"sliding_window", [](const ModelConfig& config) { return config.sliding_window != 0; }},
    Feature{"qkv_bias", [](const ModelConfig& config) { return config.qkv_bias; }},
    Feature{"o_bias", [](const ModelConfig& config) { return config.o_bias; }},
    Feature{"mlp_bias", [](const ModelConfig& config) { return config.mlp_bias; }},
    Feature{"qk_norm", [](const ModelConfig& config) { return config.qk_norm; }},
};

}  // namespace cria
