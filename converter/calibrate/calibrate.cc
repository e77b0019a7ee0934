#include "converter/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "converter/calibrate/block.h"
#include "converter/calibrate/block_calibration.h"
#include "converter/calibrate/calibration_run.h"
#include "converter/calibrate/head_calibration.h"
#include "converter/calibrate/kept_predictions.h"
#include "converter/calibrate/layer_blocks.h"
#include "converter/calibrate/mixture_calibration.h"
#include "converter/quantize/row_quantizer.h"
#include "converter/write/hadamard.h"

namespace cria {
namespace {

bool IsCalibrated(const PlannedTensor& tensor) {
  return tensor.stored.spec.is_of_own_layer() && !tensor.stored.spec.is_always_f32();
}

size_t MostInputs(const FilePlan& plan) {
  size_t inputs = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (IsCalibrated(tensor)) inputs = std::max(inputs, tensor.stored.spec.input_channels);
  }
  return inputs;
}

class Calibration {
 public:
  Calibration(const CalibrationTokens& tokens, const ModelConfig& config, const ThreadPool& threads,
              std::shared_ptr<ScratchFile> scratch, const ProgressCallback& progress,
              ResumeFolder* resume, FilePlan& plan)
      : scratch_(std::move(scratch)),
        resume_(resume),
        plan_(plan),
        run_(tokens, config, threads, *scratch_, progress, MostInputs(plan)) {}

  Result<CalibrationReport> Run() {
    for (const PlannedTensor& tensor : plan_.tensors) {
      if (IsCalibrated(tensor)) run_.total_weights += NumWeights(tensor);
    }
    const bool has_head = ChoosesCodesOfHead(plan_);
    run_.total_weights += (has_head ? 2 : 1) * NumWeights(HeadOf(plan_));
    size_t layer = 0;
    if (resume_ != nullptr && resume_->num_layers() > 0) {
      CRIA_RETURN_IF_ERROR(Resume());
      layer = resume_->num_layers();
    } else {
      CRIA_RETURN_IF_ERROR(Embed());
    }
    const size_t num_tokens = run_.tokens.ids.size();
    CalibrationReport report = {.num_tokens = num_tokens, .num_resumed_layers = layer};
    for (; layer < run_.config.num_hidden_layers; ++layer) {
      CRIA_RETURN_IF_ERROR(RunOneLayer(layer));
      if (resume_ == nullptr) continue;
      CRIA_RETURN_IF_ERROR(resume_->Keep(TensorsOf(layer), run_.so_far, num_tokens,
                                         run_.config.hidden_size, run_.exact, run_.stored));
    }
    const CalibrationProgress& so_far = run_.so_far;
    report.num_matrices = so_far.num_matrices;
    report.num_calibrated = so_far.num_calibrated;
    report.num_experts = so_far.num_experts;
    report.num_rounded_experts = so_far.num_rounded_experts;
    report.held_back_ratio =
        std::exp(so_far.log_ratios / static_cast<double>(std::max<size_t>(1, report.num_matrices)));
    if (has_head) CRIA_RETURN_IF_ERROR(CalibrateHead(run_, scratch_, plan_));
    report.has_few_tokens = num_tokens < CalibrationTokensFor(run_.config, 2);
    CRIA_ASSIGN_OR_RETURN(report.predictions, Judge());
    return report;
  }

 private:
  Status Embed();
  // Compares the predictions of the whole model with the checkpoint's.
  Result<KeptPredictions> Judge();
  // Takes over what an earlier run has done.
  Status Resume();
  std::vector<PlannedTensor*> TensorsOf(size_t layer) const {
    std::vector<PlannedTensor*> tensors;
    for (PlannedTensor& tensor : plan_.tensors) {
      if (tensor.stored.spec.layer == static_cast<int>(layer)) tensors.push_back(&tensor);
    }
    return tensors;
  }

  Status RunOneLayer(size_t layer) {
    for (PlannedTensor* const tensor : TensorsOf(layer)) {
      if (IsCalibrated(*tensor)) tensor->encoded = ReserveCodes(scratch_, tensor->stored.layout);
    }
    CRIA_ASSIGN_OR_RETURN(
        LayerBlocks blocks,
        MakeLayerBlocks(run_.config, run_.threads, run_.tokens.window_tokens, layer, plan_));
    for (const Block& block : blocks.blocks) CRIA_RETURN_IF_ERROR(CalibrateHalf(run_, block));
    return blocks.mixture ? CalibrateMixture(run_, *blocks.mixture) : Status();
  }

  std::shared_ptr<ScratchFile> scratch_;
  ResumeFolder* resume_;
  FilePlan& plan_;
  CalibrationRun run_;
};

Status Calibration::Embed() {
  const ModelConfig& config = run_.config;
  const PlannedTensor& embedding = *FindTensor(plan_, TensorRole::kEmbedTokens, kNoLayer);
  const TensorLayout& layout = embedding.stored.layout;
  const MappedPart& part = embedding.parts.front();
  TensorReader reader;
  RowQuantizer quantizer(layout);
  for (const RowBatch& batch : run_.all_rows) {
    Matrix exact(batch.rows.size(), config.hidden_size);
    Matrix stored(batch.rows.size(), config.hidden_size);
    for (size_t row = 0; row < batch.rows.size(); ++row) {
      const auto id = static_cast<uint64_t>(run_.tokens.ids[batch.rows[row]]);
      const std::span<float> values = exact.view().row(row);
      CRIA_RETURN_IF_ERROR(reader.Read(*part.source, id * values.size(), values));
      std::ranges::copy(values, stored.view().row(row).begin());
      quantizer.Round(stored.view().row(row));
    }
    if (config.rotated_residual) {
      for (Matrix* const rows : {&exact, &stored}) RotateRows(rows->columns(), rows->values());
    }
    CRIA_RETURN_IF_ERROR(run_.exact.WriteRows(batch.rows, exact));
    CRIA_RETURN_IF_ERROR(run_.stored.WriteRows(batch.rows, stored));
  }
  return {};
}

Result<KeptPredictions> Calibration::Judge() {
  const std::vector<uint32_t> tokens = HeldBackTokens(run_.tokens, kJudgedTokens);
  CRIA_ASSIGN_OR_RETURN(Matrix exact, run_.exact.ReadRows(tokens, run_.config.hidden_size));
  CRIA_ASSIGN_OR_RETURN(Matrix stored, run_.stored.ReadRows(tokens, run_.config.hidden_size));
  const uint64_t num_weights = NumWeights(HeadOf(plan_));
  return ComparePredictions(
      run_.threads, run_.config, plan_, std::move(exact), std::move(stored),
      [&](double part) { return run_.ReportProgress("comparing predictions", num_weights, part); });
}

Status Calibration::Resume() {
  for (size_t layer = 0; layer < resume_->num_layers(); ++layer) {
    const std::vector<PlannedTensor*> tensors = TensorsOf(layer);
    CRIA_RETURN_IF_ERROR(resume_->ReadLayer(layer, scratch_, tensors));
    for (const PlannedTensor* const tensor : tensors) {
      if (IsCalibrated(*tensor)) run_.done_weights += NumWeights(*tensor);
    }
  }
  run_.so_far = resume_->progress();
  return resume_->ReadActivations(run_.tokens.ids.size(), run_.config.hidden_size, run_.exact,
                                  run_.stored);
}

}  // namespace

Result<CalibrationReport> Calibrate(const CalibrationTokens& tokens, const ModelConfig& config,
                                    const ThreadPool& threads,
                                    const std::shared_ptr<ScratchFile>& scratch,
                                    const ProgressCallback& progress, ResumeFolder* resume,
                                    FilePlan& plan) {
  CRIA_RETURN_IF_ERROR(CheckCalibrates(config));
  return Calibration(tokens, config, threads, scratch, progress, resume, plan).Run();
}

}  // namespace cria
