#pragma once

#include <string_view>

#include "model/config_fields.h"

namespace cria {

// Names for a model file's `required_features`. A reader that does not know one of them would
// compute something else without an error. The other names are those of fields of the configuration
// that change the computation (ConfigField::is_feature).

// chat_template.source renders the chats.
inline constexpr std::string_view kJinjaFeature = "jinja";
// The tokenizer normalizes text.
inline constexpr std::string_view kNormalizeNfcFeature = "normalize_nfc";
// The tokenizer puts no space before text that begins with one.
inline constexpr std::string_view kDummyPrefixUnlessSpaceFeature = "dummy_prefix_unless_space";
// There are no weights, and the configuration has only vocab_size.
inline constexpr std::string_view kVocabularyOnlyFeature = "vocabulary_only";

constexpr bool IsKnownFeature(std::string_view name) {
  bool is_known = name == kJinjaFeature || name == kNormalizeNfcFeature ||
                  name == kDummyPrefixUnlessSpaceFeature || name == kVocabularyOnlyFeature;
  ForEachField(kModelConfigFields, [&](const auto& field) {
    is_known = is_known || (field.is_feature && name == field.name);
  });
  return is_known;
}

// Whether a configuration needs `field` among its required features.
template <typename Owner, typename Value>
constexpr bool NeedsFeature(const ConfigField<Owner, Value>& field, const ModelConfig& config) {
  const Value& value = ValueOf(field, config);
  if constexpr (std::integral<Value>) return field.is_feature && value != 0;
  if constexpr (std::same_as<Value, std::vector<LayerKind>>) return value.size() > 1;
  return false;
}

}  // namespace cria
