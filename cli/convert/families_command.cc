#include "cli/convert/families_command.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "converter/supported_families.h"
#include "core/format.h"

namespace cria::cli {
namespace {

// What layers have besides, or in place of, attention and dense feed-forwards.
std::string LayersOf(const SupportedFamily& family) {
  std::string text;
  const auto add = [&text](bool has, std::string_view what) {
    if (has) text += (text.empty() ? "" : ", ") + std::string(what);
  };
  add(family.has_experts, "experts");
  add(family.has_short_convolutions, "short convolutions");
  add(family.has_linear_attention, "gated delta nets");
  add(family.has_mamba, "Mamba-2");
  return text;
}

std::string Names(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    text += Format("{}`{}`", text.empty() ? "" : ", ", name);
  }
  return text.empty() ? "–" : text;
}

Status PrintFamilies() {
  std::string text =
      "| architecture | `model_type` | in GGUF files | layers with |\n| --- | --- | --- | --- |\n";
  for (const SupportedFamily& family : SupportedFamilies()) {
    text += Format("| `{}` | `{}` | {} | {} |\n", family.architecture, family.model_type,
                   Names(family.gguf), LayersOf(family));
  }
  text += "\n| also sees pictures | `model_type` | text model |\n| --- | --- | --- |\n";
  for (const SupportedOuterModel& model : SupportedOuterModels()) {
    text += Format("| `{}` | `{}` | {} |\n", model.architecture, model.model_type,
                   model.text_architecture.empty() ? "as its own `model_type` says"
                                                   : Format("`{}`", model.text_architecture));
  }
  std::fputs(text.c_str(), stdout);
  return {};
}

}  // namespace

void AddFamiliesCommand(CommandLine& program) {
  program.AddCommand("families", "Print the families of models that can be converted, in Markdown")
      .SetAction([] { return PrintFamilies(); });
}

}  // namespace cria::cli
