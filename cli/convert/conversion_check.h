#pragma once

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

// Compares what the model file at `model_path` predicts for `texts`, each in windows of the model's
// context, with what the checkpoint in f32 predicts. Texts that the vocabulary cannot express are
// left out. For this, it converts the checkpoint into a temporary file beside the
// model file, of four bytes for each parameter, and loads both models. `progress` may cancel.
// Fails with kUnsupported if the vocabulary can express none of the texts.
Result<LogitComparison> CheckConversion(const std::string& checkpoint_path,
                                        const std::string& model_path,
                                        const ConvertOptions& options,
                                        std::span<const char* const> texts,
                                        const ProgressCallback& progress);

// Removes folders NAME.verify-XXXXXX beside the model file, which earlier versions of the converter
// left behind if they were killed while they verified.
void RemoveAbandonedChecks(const std::string& model_path);

// "verified against f32 at 61 positions: …"
std::string ComparisonText(const LogitComparison& comparison);

}  // namespace cria::cli
