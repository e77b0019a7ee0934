#pragma once

#include <string_view>
#include <vector>

namespace cria {

// A family of models that the converter reads, under its names in Hugging Face's and GGUF's files.
struct SupportedFamily {
  std::string_view architecture;  // In `architectures` of a config.json.
  std::string_view model_type;
  std::vector<std::string_view> gguf;  // `general.architecture`; empty: not read from GGUF files.
  bool has_experts = false;
  bool has_short_convolutions = false;
  bool has_linear_attention = false;
  bool has_mamba = false;
};

// A model that also sees pictures, of which only the text model is converted.
struct SupportedOuterModel {
  std::string_view architecture;
  std::string_view model_type;
  std::string_view text_architecture;  // Empty: that of another family, as its model_type says.
};

// These functions keep the order of the tables that the reader of config.json searches.
std::vector<SupportedFamily> SupportedFamilies();
std::vector<SupportedOuterModel> SupportedOuterModels();

}  // namespace cria
