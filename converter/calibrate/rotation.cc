#include "converter/calibrate/rotation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "converter/calibrate/block.h"
#include "converter/calibrate/layer_blocks.h"
#include "converter/calibrate/matrix_calibration.h"
#include "converter/calibrate/predictions.h"
#include "converter/calibrate/run_layer.h"
#include "converter/write/hadamard.h"

namespace cria {
namespace {

// The divergence must become less than this part of what it was. Calibrating gains less in rotated
// axes than in those that were trained, by a few percent.
constexpr double kMaxDivergenceRatio = 0.8;
// The text is as long as this number of multiplications allows, between these numbers of tokens.
constexpr double kTrialMultiplications = 6e10;
constexpr double kMinTrialTokens = 512;
constexpr double kMaxTrialTokens = 4096;

// Moves the gain into what reads it. Returns false if it has no inverse.
bool FoldGain(std::span<const float> gain, PlannedTensor& norm,
              std::span<PlannedTensor* const> readers) {
  std::vector<float> inverses(gain.begin(), gain.end());
  for (float& factor : inverses) factor = 1.0f / factor;
  const auto is_normal = [](float value) { return std::isnormal(value); };
  if (!std::ranges::all_of(gain, is_normal) || !std::ranges::all_of(inverses, is_normal)) {
    return false;
  }
  MultiplyColumns(inverses, norm.parts.front());
  for (PlannedTensor* const reader : readers) {
    for (MappedPart& part : reader->parts) MultiplyColumns(gain, part);
  }
  return true;
}

// Returns false, and leaves a plan that is of no use, if a gain has no inverse.
Result<bool> RotatePlan(const ModelConfig& config, FilePlan& plan) {
  // A layer has the halves of its kind.
  struct Half {
    TensorRole norm;
    std::vector<TensorRole> readers;
    std::vector<TensorRole> writers;
    std::vector<TensorRole> writer_biases;
  };
  const std::array<Half, 2> halves = {
      {{TensorRole::kInputLayernorm,
        {TensorRole::kQkvProj, TensorRole::kAttentionGate, TensorRole::kConvInProj,
         TensorRole::kLinearInProj, TensorRole::kLinearBaProj, TensorRole::kMambaInProj,
         TensorRole::kMambaDtProj},
        {TensorRole::kOProj, TensorRole::kConvOutProj, TensorRole::kLinearOutProj,
         TensorRole::kMambaOutProj},
        {TensorRole::kOBias, TensorRole::kConvOutBias, TensorRole::kMambaOutBias}},
       {TensorRole::kPostAttentionLayernorm,
        {TensorRole::kGateUpProj, TensorRole::kRouter, TensorRole::kExpertsGateUpProj,
         TensorRole::kSharedExpertGateUpProj, TensorRole::kSharedExpertGate},
        {TensorRole::kDownProj, TensorRole::kExpertsDownProj, TensorRole::kSharedExpertDownProj},
        {TensorRole::kDownBias, TensorRole::kExpertsDownBias}}}};
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const auto find = [&](const std::vector<TensorRole>& roles) {
      std::vector<PlannedTensor*> found;
      for (const TensorRole role : roles) {
        PlannedTensor* const tensor = FindTensor(plan, role, static_cast<int>(layer));
        if (tensor != nullptr) found.push_back(tensor);
      }
      return found;
    };
    for (const Half& half : halves) {
      PlannedTensor& norm = *find({half.norm}).front();
      const std::vector<PlannedTensor*> readers = find(half.readers);
      CRIA_ASSIGN_OR_RETURN(const std::vector<float> gain, ReadVector(&norm));
      if (!FoldGain(gain, norm, readers)) return false;
      for (PlannedTensor* const reader : readers) {
        for (MappedPart& part : reader->parts) part.is_rotated = true;
      }
      for (PlannedTensor* const writer : find(half.writers)) writer->rotates_outputs = true;
      for (PlannedTensor* const bias : find(half.writer_biases)) {
        for (MappedPart& part : bias->parts) part.is_rotated = true;
      }
    }
  }
  return true;
}

// Runs the model over some windows of the text.
class Trial {
 public:
  Trial(const CalibrationTokens& tokens, const ThreadPool& threads,
        const ProgressCallback& progress, const ModelConfig& config, const FilePlan& plan)
      : tokens_(tokens), threads_(threads), progress_(progress), config_(config) {
    double weights = 0.0;
    for (const PlannedTensor& tensor : plan.tensors) {
      const TensorSpec& spec = tensor.stored.spec;
      if (!spec.is_of_own_layer() || spec.is_vector()) continue;
      weights += WeightsPerToken(config, spec);
    }
    std::vector<size_t> held_back;
    for (size_t i = 0; i < tokens.num_windows(); ++i) {
      if (tokens.IsHeldBack(i)) held_back.push_back(i);
    }
    windows_ = EvenlySpaced(held_back, RotationTrialTokens(weights) / tokens.window_tokens);
  }

  // What rounding all matrices changes with the rotated plan, in relation to without.
  Result<double> DivergenceRatio(FilePlan& plan, FilePlan& rotated) {
    ModelConfig rotated_config = config_;
    rotated_config.rotated_residual = true;
    CRIA_ASSIGN_OR_RETURN(const Matrix exact, Run(config_, plan, /*rounds=*/false));
    std::vector<Matrix> rounded(2);
    CRIA_ASSIGN_OR_RETURN(rounded[0], Run(config_, plan, /*rounds=*/true));
    CRIA_ASSIGN_OR_RETURN(rounded[1], Run(rotated_config, rotated, /*rounds=*/true));
    CRIA_ASSIGN_OR_RETURN(const std::vector<double> divergences,
                          Divergences(threads_, config_, plan, exact, rounded));
    return divergences[0] > 0.0 ? divergences[1] / divergences[0] : 1.0;
  }

 private:
  // The hidden rows behind the last layer, as the checkpoint has them; with `rounds`, if every
  // matrix of the layers is rounded, and its inputs, as the runtime does.
  Result<Matrix> Run(const ModelConfig& config, FilePlan& plan, bool rounds) {
    const WeightReader read = [&](const PlannedTensor& tensor) -> Result<Matrix> {
      CRIA_ASSIGN_OR_RETURN(Matrix weights, ReadMatrix(tensor));
      if (!rounds) return weights;
      return std::move(RoundMatrix(threads_, weights, tensor.stored.layout).values);
    };
    CRIA_ASSIGN_OR_RETURN(Matrix hidden, EmbedWindows(tokens_, windows_, config, plan));
    for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
      if (progress_ != nullptr &&
          !progress_({"measuring a rotation", num_layers_++, 3 * config.num_hidden_layers})) {
        return Fail(ErrorCode::kCancelled, "cancelled; nothing was written");
      }
      CRIA_ASSIGN_OR_RETURN(const LayerBlocks blocks,
                            MakeLayerBlocks(config, threads_, tokens_.window_tokens, layer, plan));
      CRIA_RETURN_IF_ERROR(RunLayer(blocks, config_, threads_, read, rounds, hidden));
    }
    if (config.rotated_residual) RotateRows(hidden.columns(), hidden.values());
    return hidden;
  }

  const CalibrationTokens& tokens_;
  const ThreadPool& threads_;
  const ProgressCallback& progress_;
  const ModelConfig& config_;
  std::vector<size_t> windows_;
  uint64_t num_layers_ = 0;  // Layers that ran, in all runs.
};

}  // namespace

size_t RotationTrialTokens(double weights_per_token) {
  return static_cast<size_t>(
      std::clamp(kTrialMultiplications / weights_per_token, kMinTrialTokens, kMaxTrialTokens));
}

Result<RotationReport> RotateResidual(const CalibrationTokens& tokens,
                                      const std::optional<bool>& choice, const ThreadPool& threads,
                                      const ProgressCallback& progress, ModelConfig& config,
                                      FilePlan& plan) {
  CRIA_RETURN_IF_ERROR(CheckCalibrates(config));
  RotationReport report;
  if (choice == false) return report;
  // The gain of such a norm is applied to the checkpoint's channels, and no matrix follows that
  // could rotate them.
  if (config.has_norms_after()) {
    if (!choice) return report;
    return Fail(ErrorCode::kUsage,
                "outputs of the layers are normalized, so the hidden state cannot be rotated");
  }
  FilePlan rotated = plan;
  CRIA_ASSIGN_OR_RETURN(const bool can_rotate, RotatePlan(config, rotated));
  if (!can_rotate) {
    if (!choice) return report;
    return Fail(ErrorCode::kUsage,
                "a gain of a norm is zero, so the hidden state cannot be rotated");
  }
  if (!choice) {
    CRIA_ASSIGN_OR_RETURN(
        report.divergence_ratio,
        Trial(tokens, threads, progress, config, plan).DivergenceRatio(plan, rotated));
    if (!(report.divergence_ratio < kMaxDivergenceRatio)) return report;
  }
  report.is_rotated = true;
  config.rotated_residual = true;
  plan = std::move(rotated);
  return report;
}

}  // namespace cria
