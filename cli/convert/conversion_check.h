#pragma once

#include <optional>
#include <span>
#include <string>

#include "converter/convert.h"
#include "cria/error.h"
#include "llm/measure/logit_comparison.h"

namespace cria::cli {

// Models of up to this many parameters are compared with their checkpoint after the conversion,
// unless --no-verify is given. This takes a second or less.
inline constexpr uint64_t kMaxCheckedParameters = 64'000'000;

// Some short texts, in several languages, one of them code.
std::span<const char* const> ShortTexts();

struct ConversionCheck {
  LogitComparison comparison;
  // All of the model is in f32. There is nothing to compare it with, and only that its predictions
  // are finite was checked.
  bool is_f32 = false;
  // Why the models could not be compared, which says nothing against the model: for example, there
  // is no room for the checkpoint in f32, or it has changed. With kUnsupported, the vocabulary can
  // express none of the texts.
  std::optional<Error> obstacle = {};
};

// Compares what a converted model, which will have the name `model_path`, predicts for `texts`,
// each in windows of the model's context, with what the checkpoint in f32 predicts. For this, it
// converts the checkpoint into a temporary file beside the model file, of four bytes for each
// parameter, and loads both models. `config` is the checkpoint's. `progress` may cancel. Fails if
// something is wrong with the model.
Result<ConversionCheck> CheckConversion(const std::string& checkpoint_path,
                                        const std::string& model_path, const Conversion& conversion,
                                        const ModelConfig& config, const ConvertOptions& options,
                                        std::span<const char* const> texts,
                                        const ProgressCallback& progress);

// Removes folders NAME.verify-XXXXXX beside the model file, which earlier versions of the converter
// left behind if they were killed while they verified.
void RemoveAbandonedChecks(const std::string& model_path);

// "verified against f32 at 61 positions: …"
std::string CheckText(const ConversionCheck& check);

}  // namespace cria::cli
