#include "converter/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "converter/calibrate/activation_file.h"
#include "converter/calibrate/block.h"
#include "converter/calibrate/block_steps.h"
#include "converter/calibrate/channel_scaling.h"
#include "converter/calibrate/input_moments.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/linear_algebra.h"
#include "converter/calibrate/matrix_calibration.h"
#include "converter/quantize/row_quantizer.h"
#include "converter/write/hadamard.h"
#include "core/numeric.h"
#include "model/rope_table.h"

namespace cria {
namespace {

// Tokens that are computed at once, if windows are not longer.
constexpr size_t kBatchTokens = 1024;

// Enough to know the sizes of channels.
constexpr size_t kScalingTokens = 4096;

// Windows that are computed at once.
struct Batch {
  size_t first_window;
  size_t first_row;
  size_t rows;
};

// The inputs of a matrix as the runtime will have them, and the outputs that the checkpoint has:
// [rows, input_channels] and [rows, output_channels].
struct InputsAndOutputs {
  Matrix inputs;
  Matrix outputs;
};

// The root mean squares of channels over many rows.
class ChannelSizes {
 public:
  explicit ChannelSizes(size_t channels) : squares_(channels) {}
  void Add(const Matrix& rows) {
    for (size_t row = 0; row < rows.rows(); ++row) {
      for (size_t i = 0; i < squares_.size(); ++i) {
        squares_[i] += double{rows(row, i)} * rows(row, i);
      }
    }
    num_rows_ += rows.rows();
  }
  std::vector<float> Rms() const {
    std::vector<float> rms;
    rms.reserve(squares_.size());
    for (const double square : squares_) {
      rms.push_back(static_cast<float>(std::sqrt(square / static_cast<double>(num_rows_))));
    }
    return rms;
  }

 private:
  std::vector<double> squares_;
  size_t num_rows_ = 0;
};

// Runs a model over the calibration tokens twice at once: as the checkpoint is, in f32 ("exact"),
// and with everything that is quantized so far ("stored").
class Calibration {
 public:
  Calibration(const CalibrationTokens& tokens, const ModelConfig& config, const ThreadPool& threads,
              std::shared_ptr<ScratchFile> scratch, const ProgressCallback& progress,
              ResumeFolder* resume, FilePlan& plan)
      : tokens_(tokens),
        config_(config),
        threads_(threads),
        scratch_(std::move(scratch)),
        progress_(progress),
        resume_(resume),
        plan_(plan),
        exact_(*scratch_, tokens.ids.size(), config.hidden_size),
        stored_(*scratch_, tokens.ids.size(), config.hidden_size),
        exact_inputs_(*scratch_, tokens.ids.size(), MaxInputs(config)),
        stored_inputs_(*scratch_, tokens.ids.size(), MaxInputs(config)) {}

  Result<CalibrationReport> Run() {
    for (const PlannedTensor& tensor : plan_.tensors) {
      if (IsCalibrated(tensor)) total_weights_ += NumWeights(tensor);
    }
    size_t layer = 0;
    if (resume_ != nullptr && resume_->num_layers() > 0) {
      CRIA_RETURN_IF_ERROR(Resume());
      layer = resume_->num_layers();
    } else {
      CRIA_RETURN_IF_ERROR(Embed());
    }
    CalibrationReport report = {.num_tokens = tokens_.ids.size(), .num_resumed_layers = layer};
    for (; layer < config_.num_hidden_layers; ++layer) {
      CRIA_ASSIGN_OR_RETURN(const auto blocks,
                            MakeBlocks(config_, threads_, tokens_.window_tokens, layer, plan_));
      for (const Block& block : blocks) CRIA_RETURN_IF_ERROR(RunBlock(block));
      if (resume_ == nullptr) continue;
      CRIA_RETURN_IF_ERROR(resume_->Keep(TensorsOf(layer), so_far_, tokens_.ids.size(),
                                         config_.hidden_size, exact_, stored_));
    }
    report.num_matrices = so_far_.num_matrices;
    report.num_scaled = so_far_.num_scaled;
    report.num_calibrated = so_far_.num_calibrated;
    report.held_back_ratio = std::exp(
        so_far_.log_ratios / static_cast<double>(std::max<size_t>(1, report.num_matrices)));
    report.has_few_tokens = tokens_.ids.size() < 2 * MaxInputs(config_);
    return report;
  }

 private:
  using Step = std::function<Result<InputsAndOutputs>(const Batch&, const Matrix& weights)>;

  static size_t MaxInputs(const ModelConfig& config) {
    return std::max<size_t>(
        {config.hidden_size, config.query_channels(), config.intermediate_size});
  }
  static bool IsCalibrated(const PlannedTensor& tensor) {
    return tensor.stored.spec.layer != kNoLayer && !tensor.stored.spec.is_vector();
  }
  static uint64_t NumWeights(const PlannedTensor& tensor) {
    return uint64_t{tensor.stored.spec.output_channels} * tensor.stored.spec.input_channels;
  }

  std::vector<Batch> Batches() const {
    const size_t windows = std::max<size_t>(1, kBatchTokens / tokens_.window_tokens);
    std::vector<Batch> batches;
    for (size_t i = 0; i < tokens_.num_windows(); i += windows) {
      const size_t count = std::min(windows, tokens_.num_windows() - i);
      batches.push_back({i, i * tokens_.window_tokens, count * tokens_.window_tokens});
    }
    return batches;
  }

  Status Embed();
  // Takes over what an earlier run has done.
  Status Resume();
  std::vector<PlannedTensor*> TensorsOf(size_t layer) const {
    std::vector<PlannedTensor*> tensors;
    for (PlannedTensor& tensor : plan_.tensors) {
      if (tensor.stored.spec.layer == static_cast<int>(layer)) tensors.push_back(&tensor);
    }
    return tensors;
  }
  Status RunBlock(const Block& block);
  // Scales the channels that the block's matrices read, for the sizes that they have in the exact
  // model.
  Status ScaleBlock(const Block& block);
  // Some of the hidden rows of one of the models.
  Result<Matrix> Hidden(const ActivationFile& file, const Batch& batch) const {
    return file.Read(batch.first_row, batch.rows, config_.hidden_size);
  }
  // Calibrates a matrix with what `step` says of each batch, and returns what is stored of it.
  Result<Matrix> CalibrateTensor(PlannedTensor& tensor, const Step& step);
  Status Keep(const CalibratedMatrix& matrix, PlannedTensor& tensor);
  Status ReportProgress(const PlannedTensor& tensor, double fraction);

  // Adds a block's outputs, from these products with its second matrix.
  Status AddToHidden(ActivationFile& file, const Batch& batch, const BlockSteps& steps,
                     Matrix products) {
    CRIA_ASSIGN_OR_RETURN(Matrix hidden, Hidden(file, batch));
    steps.AddOutputs(std::move(products), hidden);
    return file.Write(batch.first_row, hidden);
  }

  const CalibrationTokens& tokens_;
  const ModelConfig& config_;
  const ThreadPool& threads_;
  std::shared_ptr<ScratchFile> scratch_;
  const ProgressCallback& progress_;
  ResumeFolder* resume_;
  FilePlan& plan_;
  // What the layers so far have added up to: [tokens, hidden_size].
  ActivationFile exact_;
  ActivationFile stored_;
  // The inputs of o_proj, and then those of down_proj, in both models.
  ActivationFile exact_inputs_;
  ActivationFile stored_inputs_;
  uint64_t total_weights_ = 0;
  uint64_t done_weights_ = 0;
  CalibrationProgress so_far_;
};

Status Calibration::Embed() {
  const PlannedTensor& embedding = *FindTensor(plan_, TensorRole::kEmbedTokens, kNoLayer);
  const TensorLayout& layout = embedding.stored.layout;
  const MappedPart& part = embedding.parts.front();
  TensorReader reader;
  RowQuantizer quantizer(layout);
  std::vector<float> padded(layout.padded_input_channels);
  std::vector<std::byte> data(layout.row_bytes());
  std::vector<std::byte> scales(layout.row_scale_bytes());
  for (const Batch& batch : Batches()) {
    Matrix exact(batch.rows, config_.hidden_size);
    Matrix stored(batch.rows, config_.hidden_size);
    for (size_t row = 0; row < batch.rows; ++row) {
      const auto id = static_cast<uint64_t>(tokens_.ids[batch.first_row + row]);
      const std::span<float> values = exact.view().row(row);
      CRIA_RETURN_IF_ERROR(reader.Read(*part.source, id * values.size(), values));
      std::ranges::copy(values, padded.begin());
      quantizer.Quantize(padded, data, scales);
      quantizer.Dequantize(data, scales, padded);
      std::ranges::copy_n(padded.begin(), static_cast<ptrdiff_t>(values.size()),
                          stored.view().row(row).begin());
      std::ranges::fill(padded, 0.0f);
    }
    if (config_.rotated_residual) {
      for (Matrix* const rows : {&exact, &stored}) RotateRows(rows->columns(), rows->values());
    }
    CRIA_RETURN_IF_ERROR(exact_.Write(batch.first_row, exact));
    CRIA_RETURN_IF_ERROR(stored_.Write(batch.first_row, stored));
  }
  return {};
}

Status Calibration::Resume() {
  for (size_t layer = 0; layer < resume_->num_layers(); ++layer) {
    const std::vector<PlannedTensor*> tensors = TensorsOf(layer);
    CRIA_RETURN_IF_ERROR(resume_->ReadLayer(layer, scratch_, tensors));
    for (const PlannedTensor* const tensor : tensors) {
      if (IsCalibrated(*tensor)) done_weights_ += NumWeights(*tensor);
    }
  }
  so_far_ = resume_->progress();
  return resume_->ReadActivations(tokens_.ids.size(), config_.hidden_size, exact_, stored_);
}

Status Calibration::ScaleBlock(const Block& block) {
  CRIA_ASSIGN_OR_RETURN(const BlockSteps steps, BlockSteps::Read(block, config_, threads_));
  CRIA_ASSIGN_OR_RETURN(const Matrix weights, ReadMatrix(*block.first));
  ChannelSizes sizes(config_.hidden_size);
  ChannelSizes inner_sizes(block.inner_channels);
  for (const Batch& batch : Batches()) {
    if (batch.first_row >= kScalingTokens) break;
    CRIA_ASSIGN_OR_RETURN(Matrix hidden, Hidden(exact_, batch));
    const Matrix inputs = steps.Inputs(std::move(hidden));
    sizes.Add(inputs);
    inner_sizes.Add(steps.Inner(Multiply(threads_, inputs, weights)));
  }
  bool scales_first = false;
  if (block.norm != nullptr) {
    CRIA_ASSIGN_OR_RETURN(scales_first,
                          ScaleChannels({.tensor = block.norm}, sizes.Rms(), *block.first));
  }
  CRIA_ASSIGN_OR_RETURN(const bool scales_second,
                        ScaleChannels({.tensor = block.first,
                                       .part = block.scaled_part,
                                       .bias = block.first_bias,
                                       .head_dim = block.head_dim,
                                       .heads_per_channel_head = block.heads_per_channel_head},
                                      inner_sizes.Rms(), *block.second));
  so_far_.num_scaled += size_t{scales_first} + size_t{scales_second};
  return {};
}

Status Calibration::RunBlock(const Block& block) {
  CRIA_RETURN_IF_ERROR(ScaleBlock(block));
  CRIA_ASSIGN_OR_RETURN(const BlockSteps steps, BlockSteps::Read(block, config_, threads_));
  const auto rounded_inputs = [&](const Batch& batch) -> Result<Matrix> {
    CRIA_ASSIGN_OR_RETURN(Matrix hidden, Hidden(stored_, batch));
    Matrix inputs = steps.Inputs(std::move(hidden));
    RoundInputs(threads_, inputs.view());
    return inputs;
  };
  CRIA_ASSIGN_OR_RETURN(
      const Matrix first,
      CalibrateTensor(
          *block.first, [&](const Batch& batch, const Matrix& weights) -> Result<InputsAndOutputs> {
            CRIA_ASSIGN_OR_RETURN(Matrix exact, Hidden(exact_, batch));
            Matrix outputs = Multiply(threads_, steps.Inputs(std::move(exact)), weights);
            CRIA_RETURN_IF_ERROR(exact_inputs_.Write(batch.first_row, steps.Inner(outputs)));
            CRIA_ASSIGN_OR_RETURN(Matrix inputs, rounded_inputs(batch));
            return InputsAndOutputs{std::move(inputs), std::move(outputs)};
          }));
  CRIA_ASSIGN_OR_RETURN(
      const Matrix second,
      CalibrateTensor(*block.second,
                      [&](const Batch& batch, const Matrix& weights) -> Result<InputsAndOutputs> {
                        CRIA_ASSIGN_OR_RETURN(const Matrix rounded, rounded_inputs(batch));
                        Matrix inputs = steps.Inner(Multiply(threads_, rounded, first));
                        RoundInputs(threads_, inputs.view());
                        CRIA_RETURN_IF_ERROR(stored_inputs_.Write(batch.first_row, inputs));
                        CRIA_ASSIGN_OR_RETURN(
                            const Matrix exact,
                            exact_inputs_.Read(batch.first_row, batch.rows, block.inner_channels));
                        Matrix outputs = Multiply(threads_, exact, weights);
                        CRIA_RETURN_IF_ERROR(AddToHidden(exact_, batch, steps, outputs));
                        return InputsAndOutputs{std::move(inputs), std::move(outputs)};
                      }));
  for (const Batch& batch : Batches()) {
    CRIA_ASSIGN_OR_RETURN(const Matrix inputs,
                          stored_inputs_.Read(batch.first_row, batch.rows, block.inner_channels));
    CRIA_RETURN_IF_ERROR(AddToHidden(stored_, batch, steps, Multiply(threads_, inputs, second)));
  }
  return {};
}

Result<Matrix> Calibration::CalibrateTensor(PlannedTensor& tensor, const Step& step) {
  const TensorSpec& spec = tensor.stored.spec;
  CRIA_ASSIGN_OR_RETURN(const Matrix weights, ReadMatrix(tensor));
  InputMoments training(spec.input_channels, spec.output_channels);
  InputMoments held_back(spec.input_channels, spec.output_channels);
  const std::vector<Batch> batches = Batches();
  for (size_t i = 0; i < batches.size(); ++i) {
    const Batch& batch = batches[i];
    CRIA_RETURN_IF_ERROR(
        ReportProgress(tensor, 0.5 * static_cast<double>(i) / static_cast<double>(batches.size())));
    CRIA_ASSIGN_OR_RETURN(const InputsAndOutputs rows, step(batch, weights));
    const size_t size = tokens_.window_tokens;
    for (size_t row = 0; row < batch.rows; row += size) {
      const bool is_held_back = tokens_.IsHeldBack(batch.first_window + row / size);
      (is_held_back ? held_back : training)
          .Add(threads_, rows.inputs.view().Rows(row, size), rows.outputs.view().Rows(row, size));
    }
  }
  CRIA_RETURN_IF_ERROR(ReportProgress(tensor, 0.5));
  training.Finish();
  held_back.Finish();
  CRIA_ASSIGN_OR_RETURN(
      CalibratedMatrix matrix,
      CalibrateMatrix(threads_, weights, tensor.stored.layout, training, held_back));
  CRIA_RETURN_IF_ERROR(Keep(matrix, tensor));
  CRIA_RETURN_IF_ERROR(ReportProgress(tensor, 1.0));
  done_weights_ += NumWeights(tensor);
  return std::move(matrix.values);
}

Status Calibration::Keep(const CalibratedMatrix& matrix, PlannedTensor& tensor) {
  ++so_far_.num_matrices;
  so_far_.num_calibrated += size_t{matrix.is_calibrated};
  so_far_.log_ratios += std::log(std::max(matrix.held_back_ratio, 1e-6));
  const uint64_t offset = scratch_->Reserve(matrix.data.size() + matrix.scales.size());
  tensor.encoded = {.file = scratch_, .offset = offset, .error = matrix.error};
  CRIA_RETURN_IF_ERROR(scratch_->WriteAt(offset, matrix.data));
  return scratch_->WriteAt(offset + matrix.data.size(), matrix.scales);
}

Status Calibration::ReportProgress(const PlannedTensor& tensor, double fraction) {
  if (progress_ == nullptr) return {};
  const std::string name = "calibrating " + tensor.stored.spec.Name();
  const auto weights = static_cast<uint64_t>(fraction * static_cast<double>(NumWeights(tensor)));
  if (progress_({name, done_weights_ + weights, total_weights_})) return {};
  return Fail(ErrorCode::kCancelled, "cancelled; nothing was written");
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
