#include "converter/calibrate/block_calibration.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "converter/calibrate/held_back_rows.h"
#include "converter/calibrate/input_moments.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/matrix_calibration.h"

namespace cria {
namespace {

// The part of what the stored model's rows lack that the second matrix of a block makes up for, as
// far as its inputs tell. All of it would fit the calibration text too closely.
constexpr float kMadeUpFor = 0.5f;

// The inputs of a matrix as the runtime will have them, the inputs of the checkpoint's matrix, and
// the outputs that there should be: [rows, input_channels] and [rows, output_channels].
struct InputsAndOutputs {
  Matrix inputs;
  Matrix exact_inputs;
  Matrix exact_outputs;
};
using BatchStep = std::function<Result<InputsAndOutputs>(const RowBatch&, const Matrix& weights)>;

// Some of the hidden rows of one of the models.
Result<Matrix> HiddenRows(const CalibrationRun& run, const ActivationFile& file,
                          const RowBatch& batch) {
  return file.ReadRows(batch.rows, run.config.hidden_size);
}

// A matrix's codes go to their place in the scratch file.
Status KeepCodes(const CalibratedMatrix& matrix, CalibrationRun& run, PlannedTensor& tensor) {
  ++run.so_far.num_matrices;
  run.so_far.num_calibrated += size_t{matrix.is_calibrated};
  run.so_far.log_ratios += std::log(std::max(matrix.held_back_ratio, 1e-6));
  EncodedTensor& encoded = *tensor.encoded;
  encoded.error = matrix.error;
  CRIA_RETURN_IF_ERROR(encoded.file->WriteAt(encoded.data_offset, matrix.data));
  return encoded.file->WriteAt(encoded.scale_offset, matrix.scales);
}

// Chooses a matrix's codes with what `step` says of each batch, and returns what they stand for.
Result<Matrix> CalibrateTensor(CalibrationRun& run, std::span<const RowBatch> batches,
                               CodeChoice choice, OutputKind output_kind, PlannedTensor& tensor,
                               const BatchStep& step) {
  const TensorSpec& spec = tensor.stored.spec;
  CRIA_ASSIGN_OR_RETURN(const Matrix weights, ReadMatrix(tensor));
  std::optional<InputMoments> training;
  std::optional<HeldBackRows> held_back;
  if (choice == CodeChoice::kCalibrated) {
    training.emplace(tensor.stored.layout, output_kind);
    held_back.emplace(NumRows(batches, /*is_held_back=*/true), spec.input_channels,
                      spec.output_channels, output_kind);
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    CRIA_RETURN_IF_ERROR(run.ReportProgress(
        tensor, 0.5 * static_cast<double>(i) / static_cast<double>(batches.size())));
    CRIA_ASSIGN_OR_RETURN(const InputsAndOutputs rows, step(batches[i], weights));
    if (!training) continue;
    const Matrix lacking =
        training->takes_inputs()
            ? Difference(rows.exact_inputs, rows.inputs)
            : Difference(rows.exact_outputs, Multiply(run.threads, rows.inputs, weights));
    for (const RowBatch::Segment& segment : batches[i].segments) {
      const auto rows_of = [&](const Matrix& matrix) {
        return matrix.view().Rows(segment.first, segment.rows);
      };
      if (segment.is_held_back) {
        held_back->Add(rows_of(rows.inputs), rows_of(rows.exact_inputs),
                       rows_of(rows.exact_outputs));
      } else {
        training->Add(run.threads, rows_of(rows.inputs), rows_of(lacking));
      }
    }
  }
  CRIA_RETURN_IF_ERROR(run.ReportProgress(tensor, 0.5));
  CalibratedMatrix matrix;
  if (training) {
    training->Finish(run.threads);
    CRIA_ASSIGN_OR_RETURN(matrix, CalibrateMatrix(run.threads, weights, tensor.stored.layout,
                                                  *std::move(training), *held_back));
  } else {
    matrix = RoundMatrix(run.threads, weights, tensor.stored.layout);
  }
  CRIA_RETURN_IF_ERROR(KeepCodes(matrix, run, tensor));
  CRIA_RETURN_IF_ERROR(run.ReportProgress(tensor, 1.0));
  run.done_weights += NumWeights(tensor);
  return std::move(matrix.values);
}

}  // namespace

Status CalibrateBlock(CalibrationRun& run, const Block& block, const BlockSteps& steps,
                      std::span<const RowBatch> batches, CodeChoice choice,
                      const BlockOutputs& outputs) {
  const auto rounded_inputs = [&](const RowBatch& batch) -> Result<Matrix> {
    CRIA_ASSIGN_OR_RETURN(Matrix hidden, HiddenRows(run, run.stored, batch));
    Matrix inputs = steps.Inputs(std::move(hidden));
    RoundInputs(run.threads, inputs.view());
    return inputs;
  };
  const auto first_step = [&](const RowBatch& batch,
                              const Matrix& weights) -> Result<InputsAndOutputs> {
    CRIA_ASSIGN_OR_RETURN(Matrix hidden, HiddenRows(run, run.exact, batch));
    Matrix exact = steps.Inputs(std::move(hidden));
    Matrix products = Multiply(run.threads, exact, weights);
    CRIA_RETURN_IF_ERROR(run.exact_inner.Write(batch.first, steps.Inner(products, exact)));
    CRIA_ASSIGN_OR_RETURN(Matrix inputs, rounded_inputs(batch));
    return InputsAndOutputs{std::move(inputs), std::move(exact), std::move(products)};
  };
  CRIA_ASSIGN_OR_RETURN(
      const Matrix first,
      CalibrateTensor(run, batches, choice, OutputKind::kProducts, *block.first, first_step));
  const auto second_step = [&](const RowBatch& batch,
                               const Matrix& weights) -> Result<InputsAndOutputs> {
    CRIA_ASSIGN_OR_RETURN(const Matrix rounded, rounded_inputs(batch));
    Matrix inputs = steps.Inner(Multiply(run.threads, rounded, first), rounded);
    RoundInputs(run.threads, inputs.view());
    CRIA_RETURN_IF_ERROR(run.stored_inner.Write(batch.first, inputs));
    CRIA_ASSIGN_OR_RETURN(
        Matrix exact, run.exact_inner.Read(batch.first, batch.rows.size(), block.inner_channels));
    Matrix products = Multiply(run.threads, exact, weights);
    Matrix lacking;
    if (outputs.lacking) {
      CRIA_ASSIGN_OR_RETURN(lacking, outputs.lacking(batch));
    }
    CRIA_RETURN_IF_ERROR(outputs.exact(batch, products));
    for (size_t i = 0; i < lacking.values().size(); ++i) {
      products.values()[i] += kMadeUpFor * lacking.values()[i];
    }
    return InputsAndOutputs{std::move(inputs), std::move(exact), std::move(products)};
  };
  const OutputKind second_outputs = outputs.lacking ? OutputKind::kOthers : OutputKind::kProducts;
  CRIA_ASSIGN_OR_RETURN(const Matrix second, CalibrateTensor(run, batches, choice, second_outputs,
                                                             *block.second, second_step));
  for (const RowBatch& batch : batches) {
    CRIA_ASSIGN_OR_RETURN(const Matrix inputs, run.stored_inner.Read(batch.first, batch.rows.size(),
                                                                     block.inner_channels));
    CRIA_RETURN_IF_ERROR(outputs.stored(batch, Multiply(run.threads, inputs, second)));
  }
  return {};
}

Status CalibrateHalf(CalibrationRun& run, const Block& block) {
  CRIA_ASSIGN_OR_RETURN(const BlockSteps steps, BlockSteps::Read(block, run.config, run.threads));
  const auto add_to = [&](ActivationFile& hidden) -> TakeProducts {
    return [&steps, &hidden](const RowBatch& batch, Matrix products) {
      return AddToHidden(batch, steps, std::move(products), hidden);
    };
  };
  BlockOutputs outputs = {.exact = add_to(run.exact), .stored = add_to(run.stored), .lacking = {}};
  if (block.output_norm == nullptr) {
    outputs.lacking = [&run](const RowBatch& batch) -> Result<Matrix> {
      CRIA_ASSIGN_OR_RETURN(const Matrix exact, HiddenRows(run, run.exact, batch));
      CRIA_ASSIGN_OR_RETURN(const Matrix stored, HiddenRows(run, run.stored, batch));
      return Difference(exact, stored);
    };
  }
  return CalibrateBlock(run, block, steps, run.all_rows, CodeChoice::kCalibrated, outputs);
}

Status AddToHidden(const RowBatch& batch, const BlockSteps& steps, Matrix products,
                   ActivationFile& hidden) {
  CRIA_ASSIGN_OR_RETURN(Matrix rows, hidden.ReadRows(batch.rows, products.columns()));
  steps.AddOutputs(std::move(products), rows);
  return hidden.WriteRows(batch.rows, rows);
}

}  // namespace cria
