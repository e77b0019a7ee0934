#pragma once

#include <string_view>
#include <type_traits>

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
// The tokenizer drops white space after some special tokens.
inline constexpr std::string_view kRstripIdsFeature = "rstrip_ids";
// There are no weights, and the configuration has only vocab_size.
inline constexpr std::string_view kVocabularyOnlyFeature = "vocabulary_only";

constexpr bool IsKnownFeature(std::string_view name) {
  bool is_known = name == kJinjaFeature || name == kNormalizeNfcFeature ||
                  name == kDummyPrefixUnlessSpaceFeature || name == kRstripIdsFeature ||
                  name == kVocabularyOnlyFeature;
  ForEachField(kModelConfigFields, [&](const auto& field) {
    is_known = is_known || (field.is_feature && name == field.name);
  });
  return is_known;
}

// Whether a configuration needs `field` among its required features.
template <typename Owner, typename Value>
constexpr bool NeedsFeature(const ConfigField<Owner, Value>& field, const ModelConfig& config) {
  // Files that are older than the other fields of layers name sliding_window only if the first kind
  // has one; layer_kinds keeps them from readers that know no others.
  if constexpr (std::same_as<Owner, LayerKind>) {
    if (field.is_omitted_if_zero) {
      for (const LayerKind& kind : config.layer_kinds) {
        if (field.is_feature && kind.*field.member != Value{}) return true;
      }
      return false;
    }
  }
  const Value& value = ValueOf(field, config);
  if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
    return field.is_feature && value != Value{};
  }
  if constexpr (std::same_as<Value, std::vector<LayerKind>>) return value.size() > 1;
  if constexpr (std::same_as<Value, std::vector<float>>) return !value.empty();
  return false;
}

}  // namespace cria
