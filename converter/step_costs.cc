#include "converter/step_costs.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/input_moments.h"
#include "converter/calibrate/kept_predictions.h"
#include "converter/calibrate/layer_blocks.h"
#include "converter/calibrate/rotation.h"
#include "converter/calibrate/sensitivity.h"
#include "model/tensor_table.h"

namespace cria {
namespace {

// All costs are in nanoseconds of one thread of the machine on which they were measured. Only their
// relations matter.
constexpr double kProduct = 0.1;  // A multiplication of a matrix product in f32.
// A multiplication where much else is done for each token: attention, rounding inputs,
// comparing logits.
constexpr double kTrialProduct = 0.3;
constexpr double kChangedProduct = 0.7;
constexpr double kGiveInt4 = 60.0;  // Choosing the int4 code of a weight without a text.
constexpr double kGiveInt8 = 5.0;
constexpr double kGiveF32 = 2.0;
constexpr double kRound = 20.0;          // Rounding a weight in order to try that out.
constexpr double kSampledProduct = 0.2;  // As kProduct, in a model that writes text.
constexpr double kSolve = 0.1;           // A product of those that choose calibrated codes.
constexpr double kComparedTokens = 200.0;
constexpr double kCopyCode = 0.5;  // Writing the code that calibrating chose.

// What a model costs that does not depend on the step.
struct Sizes {
  double weights = 0.0;            // In the matrices of the layers.
  double weights_per_token = 0.0;  // Without the experts that a token does not use.
  double table_weights = 0.0;      // In the embedding's table, and in the head if it is stored.
  double head_weights = 0.0;       // Weights that a token is multiplied by.
  double moments = 0.0;            // Products that one token adds to the moments of all inputs.
  double solving = 0.0;            // Products to choose the codes of all matrices with moments.
  size_t num_matrices = 0;
};

Sizes SizesOf(const ModelConfig& config) {
  Sizes sizes;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    const double inputs = static_cast<double>(spec.input_channels);
    const double weights = static_cast<double>(spec.output_channels) * inputs;
    if (spec.role == TensorRole::kLmHead) {
      sizes.head_weights = weights;
      if (config.tie_word_embeddings) continue;
    }
    if (spec.is_of_mtp) continue;
    if (spec.layer == kNoLayer) {
      sizes.table_weights += weights;
    } else if (!spec.is_always_f32()) {
      const double per_token = WeightsPerToken(config, spec);
      sizes.weights += weights;
      sizes.weights_per_token += per_token;
      const double inputs_of_part = std::min(inputs, double{kMaxPartInputs});
      sizes.moments +=
          per_token / weights * inputs * inputs_of_part * static_cast<double>(spec.num_parts);
      sizes.solving += weights * inputs_of_part;
      ++sizes.num_matrices;
    }
  }
  return sizes;
}

double CostOfGiving(Scheme scheme) {
  switch (scheme) {
    case Scheme::kF32:
      return kGiveF32;
    case Scheme::kQc8w:
      return kGiveInt8;
    case Scheme::kQb4w:
      return kGiveInt4;
    default:
      // Codes are copied, but also read as numbers.
      return kGiveF32;
  }
}

// Costs of quantizing and writing tables, which are int8 unless the model is in f32.
double CostOfTables(const Sizes& sizes, const ConvertOptions& options) {
  const Scheme otherwise = options.weights == Scheme::kF32 ? Scheme::kF32 : Scheme::kQc8w;
  return sizes.table_weights * CostOfGiving(options.embedding.value_or(otherwise));
}

// How many tokens of text calibrating has, at most.
double CalibrationTokensOf(const ModelConfig& config, const ConvertOptions& options) {
  const size_t wanted = options.calibration ? options.calibration->max_tokens : 0;
  return static_cast<double>(wanted != 0 ? wanted : UsualCalibrationTokens(config));
}

double CostOfRotating(const Sizes& sizes, const ModelConfig& config,
                      const ConvertOptions& options) {
  if (options.calibration->rotation || config.has_norms_after()) return 0.0;
  // Only windows that are held back are run.
  const double tokens = std::min(static_cast<double>(RotationTrialTokens(sizes.weights_per_token)),
                                 CalibrationTokensOf(config, options) / 8.0);
  // The checkpoint, rounded, and rotated and rounded.
  return 3.0 * tokens * (sizes.weights_per_token + sizes.head_weights) * kTrialProduct +
         2.0 * sizes.weights * kRound;
}

// Costs of running the model with each matrix changed, on so many tokens.
double CostOfChanging(const Sizes& sizes, double tokens, double options_of_matrix) {
  const auto matrices = static_cast<double>(sizes.num_matrices);
  return tokens * kChangedProduct *
             (0.5 * matrices * sizes.weights_per_token + matrices * sizes.head_weights) +
         options_of_matrix * sizes.weights * kRound;
}

double CostOfChoosing(const Sizes& sizes, const ModelConfig& config,
                      const ConvertOptions& options) {
  constexpr double kOptions = 5.0;  // Int8, and int4 with each size of blocks.
  if (!options.calibration) return kOptions * sizes.weights * kRound;
  const double tokens =
      std::min(static_cast<double>(SensitivityTokens(sizes.weights_per_token, sizes.num_matrices)),
               CalibrationTokensOf(config, options));
  return CostOfChanging(sizes, tokens, kOptions);
}

double CostOfSampledTokens(const Sizes& sizes, const ModelConfig& config,
                           const ConvertOptions& options) {
  return CalibrationTokensOf(config, options) * (sizes.weights_per_token + sizes.head_weights) *
         kSampledProduct;
}

double CostOfCopy(const Sizes& sizes, Scheme scheme) {
  return (sizes.weights + sizes.table_weights) * CostOfGiving(scheme);
}

double CostOfComparing(const Sizes& sizes) {
  return kComparedTokens * (sizes.weights_per_token + sizes.head_weights) * 2.0 * kProduct;
}

}  // namespace

uint64_t CountParameters(const ModelConfig& config) {
  uint64_t parameters = 0;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (spec.role == TensorRole::kLmHead && config.tie_word_embeddings) continue;
    parameters += uint64_t{spec.output_channels} * spec.input_channels;
  }
  return parameters;
}

StepCosts EstimateStepCosts(const ModelConfig& config, const ConvertOptions& options,
                            const StepsAround& around) {
  const Sizes sizes = SizesOf(config);
  StepCosts costs = {};
  const auto cost_of = [&](ConvertStep step) -> double& {
    return costs[static_cast<size_t>(step)];
  };
  if (around.samples) {
    cost_of(ConvertStep::kSampling) =
        CostOfCopy(sizes, Scheme::kQc8w) + CostOfSampledTokens(sizes, config, options);
  }
  if (options.calibration) {
    cost_of(ConvertStep::kRotating) = CostOfRotating(sizes, config, options);
  }
  if (options.target) cost_of(ConvertStep::kChoosing) = CostOfChoosing(sizes, config, options);
  if (!around.writes) return costs;
  if (options.calibration) {
    const double num_models = options.target ? 2.0 : 1.0;  // CalibratePlan compares two choices.
    // The model runs as it is and quantized, and every matrix's inputs are computed once more.
    cost_of(ConvertStep::kCalibrating) =
        num_models * (CalibrationTokensOf(config, options) *
                          (4.0 * sizes.weights_per_token + 2.0 * sizes.moments) * kProduct +
                      2.0 * double{kJudgedTokens} * sizes.head_weights * kProduct +
                      sizes.solving * kSolve + (sizes.weights + sizes.head_weights) * kRound);
  }
  if (!options.error_texts.empty()) {
    const double tokens = std::min(
        static_cast<double>(SensitivityTokens(sizes.weights_per_token, sizes.num_matrices)),
        kComparedTokens);
    cost_of(ConvertStep::kMeasuring) = CostOfChanging(sizes, tokens, 1.0);
  }
  cost_of(ConvertStep::kWriting) =
      CostOfTables(sizes, options) +
      sizes.weights * (options.calibration
                           ? kCopyCode
                           : CostOfGiving(options.keeps_codes ? Scheme::kQ4_0 : options.weights));
  if (around.verifies) {
    cost_of(ConvertStep::kVerifying) = CostOfCopy(sizes, Scheme::kF32) + CostOfComparing(sizes);
  }
  return costs;
}

double ConvertingPartOfSampling(const ModelConfig& config, const ConvertOptions& options) {
  const Sizes sizes = SizesOf(config);
  const double converting = CostOfCopy(sizes, Scheme::kQc8w);
  return converting / (converting + CostOfSampledTokens(sizes, config, options));
}

double ConvertingPartOfVerifying(const ModelConfig& config) {
  const Sizes sizes = SizesOf(config);
  const double converting = CostOfCopy(sizes, Scheme::kF32);
  return converting / (converting + CostOfComparing(sizes));
}

}  // namespace cria
