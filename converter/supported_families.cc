#include "converter/supported_families.h"

#include <algorithm>

#include "converter/gguf/gguf_architectures.h"
#include "converter/hugging_face/hf_families.h"

namespace cria {
namespace {

bool IsOf(const GgufArchitecture& gguf, std::string_view architecture) {
  return gguf.hugging_face == architecture || gguf.mixture == architecture ||
         gguf.shared_mixture == architecture || gguf.with_windows == architecture ||
         std::ranges::contains(gguf.not_told_apart, architecture);
}

}  // namespace

std::vector<SupportedFamily> SupportedFamilies() {
  std::vector<SupportedFamily> families;
  for (const Family& family : HfFamilies()) {
    if (!family.nested_in.empty()) continue;
    SupportedFamily& added = families.emplace_back();
    added.architecture = family.architecture;
    added.model_type = family.model_type;
    for (const GgufArchitecture& gguf : GgufArchitectures()) {
      if (IsOf(gguf, family.architecture)) added.gguf.push_back(gguf.name);
    }
    added.has_experts = family.experts != nullptr;
    added.has_short_convolutions = family.short_conv != nullptr;
    added.has_linear_attention = family.linear_attention;
    added.has_mamba = family.mamba;
  }
  return families;
}

std::vector<SupportedOuterModel> SupportedOuterModels() {
  std::vector<SupportedOuterModel> models;
  for (const Family& family : HfFamilies()) {
    if (family.nested_in.empty()) continue;
    models.push_back({family.architecture, family.model_type, family.shown_architecture});
  }
  for (const VisionModel& model : VisionModels()) {
    models.push_back({model.architecture, model.model_type, {}});
  }
  return models;
}

}  // namespace cria
