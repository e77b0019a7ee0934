#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/rotation.h"
#include "converter/calibrate/scheme_options.h"
#include "converter/calibrate/sensitivity.h"
#include "converter/checkpoint/checkpoint.h"
#include "converter/convert.h"
#include "converter/equalize/equalize.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "converter/write/file_plan.h"
#include "converter/write/metadata.h"
#include "converter/write/progress.h"
#include "core/thread_pool.h"
#include "cria/error.h"

namespace cria {

// The schemes that the options ask for. Fails with kUsage if options contradict each other.
Result<TensorSchemes> ChooseSchemes(const ConvertOptions& options);

// The contents of a checkpoint, without its weights.
struct Preparation {
  Checkpoint checkpoint;
  ImportedTokenizer tokenizer;
};

Result<Preparation> Prepare(const std::filesystem::path& checkpoint_path,
                            const ConvertOptions& options);

// The result has views of the arguments, as does the plan.
ModelDescription Describe(const std::string& name, const ModelConfig& config,
                          const ImportedTokenizer& tokenizer);
ModelDescription Describe(const Preparation& preparation);

// Every tensor in the scheme of the options.
Result<FilePlan> MakePlan(const Preparation& preparation, const ConvertOptions& options);

// What is known before the weights are written, or calibrated.
struct PlannedConversion {
  Preparation preparation;
  FilePlan plan;
  EqualizeReport equalized;
  RotationReport rotation;
  std::optional<CalibrationTokens> tokens;  // Absent: nothing is calibrated.
  bool found_codes = false;                 // As ConvertOptions::finds_codes says.
  // With a target, what it can choose for matrices, and one or two choices; the plan is that of the
  // first.
  std::vector<MatrixOptions> matrices;
  std::vector<OptionChoice> choices;
};

// Sets the layouts of a choice in the plan.
void ApplyChoice(const std::vector<MatrixOptions>& matrices, const OptionChoice& choice,
                 FilePlan& plan);

// A choice with the matrices' names.
std::vector<SchemeChoice> NameChoices(const FilePlan& plan,
                                      const std::vector<MatrixOptions>& matrices,
                                      const OptionChoice& choice);

// Evens out channels, rotates the hidden state and chooses schemes for a target, as the options
// say.
Result<PlannedConversion> PlanConversion(Preparation preparation, const ConvertOptions& options,
                                         const ThreadPool& threads,
                                         const ProgressCallback& progress);

// How far each matrix alone moves the predictions of the options' texts. Texts that the vocabulary
// lacks are left out; without any, the result is empty.
Result<std::vector<MatrixError>> MeasureErrorsOf(PlannedConversion& planned,
                                                 const ConvertOptions& options,
                                                 const ThreadPool& threads,
                                                 const ProgressCallback& progress);

}  // namespace cria
