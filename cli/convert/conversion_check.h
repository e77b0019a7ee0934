#pragma once

#include <string>

#include "converter/convert.h"
#include "cria/error.h"
#include "llm/measure/logit_comparison.h"

namespace cria::cli {

// Models of up to this many parameters are checked after their conversion unless that is declined:
// it takes a second or less.
inline constexpr uint64_t kMaxCheckedParameters = 64'000'000;

// Compares what the model file at `model_path` predicts for some short texts with what the
// checkpoint does, converted to f32 for it. That file, of four bytes a parameter, lies beside the
// model file, without a name once it is whole, and both models are held in memory. `progress` may
// cancel. kUnsupported means that the vocabulary can express none of the texts.
Result<LogitComparison> CheckConversion(const std::string& checkpoint_path,
                                        const std::string& model_path,
                                        const ConvertOptions& options,
                                        const ProgressCallback& progress);

// Removes the folders NAME.verify-XXXXXX beside the model file: converters before this one checked
// with a file in there, and left it behind when they were killed.
void RemoveAbandonedChecks(const std::string& model_path);

// "verified against f32 at 61 positions: …"
std::string ComparisonText(const LogitComparison& comparison);

}  // namespace cria::cli
