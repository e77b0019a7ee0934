#include "converter/calibrate/head_calibration.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "converter/calibrate/held_back_rows.h"
#include "converter/calibrate/input_moments.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/matrix_calibration.h"
#include "converter/calibrate/predictions.h"
#include "converter/write/hadamard.h"

namespace cria {
namespace {

// Rows of the head that are in memory at once.
constexpr size_t kHeadSliceRows = 4096;

// What the head reads of one of the models.
Result<Matrix> ReadHeadInputs(const CalibrationRun& run, const ActivationFile& file,
                              const RowBatch& batch, FilePlan& plan) {
  CRIA_ASSIGN_OR_RETURN(Matrix hidden, file.ReadRows(batch.rows, run.config.hidden_size));
  if (run.config.rotated_residual) RotateRows(hidden.columns(), hidden.values());
  return HeadInputs(run.threads, run.config, plan, std::as_const(hidden).view());
}

}  // namespace

bool ChoosesCodesOfHead(FilePlan& plan) {
  const PlannedTensor& head = HeadOf(plan);
  const Scheme scheme = head.stored.layout.scheme;
  return head.stored.spec.role == TensorRole::kLmHead && scheme != Scheme::kF32 &&
         scheme != Scheme::kQc8w;
}

Status CalibrateHead(CalibrationRun& run, const std::shared_ptr<ScratchFile>& scratch,
                     FilePlan& plan) {
  PlannedTensor& head = HeadOf(plan);
  const TensorSpec& spec = head.stored.spec;
  InputMoments training(head.stored.layout, OutputKind::kUnknownProducts);
  HeldBackRows held_back(NumRows(run.all_rows, /*is_held_back=*/true), spec.input_channels,
                         spec.output_channels, OutputKind::kUnknownProducts);
  for (const RowBatch& batch : run.all_rows) {
    CRIA_ASSIGN_OR_RETURN(const Matrix exact, ReadHeadInputs(run, run.exact, batch, plan));
    CRIA_ASSIGN_OR_RETURN(Matrix stored, ReadHeadInputs(run, run.stored, batch, plan));
    RoundInputs(run.threads, stored.view());
    const Matrix lacking = Difference(exact, stored);
    for (const RowBatch::Segment& segment : batch.segments) {
      const ConstMatrixView inputs = stored.view().Rows(segment.first, segment.rows);
      const ConstMatrixView exact_inputs = exact.view().Rows(segment.first, segment.rows);
      if (segment.is_held_back) {
        held_back.Add(inputs, exact_inputs, {});
      } else {
        training.Add(run.threads, inputs, lacking.view().Rows(segment.first, segment.rows));
      }
    }
  }
  training.Finish(run.threads);
  head.encoded = ReserveCodes(scratch, head.stored.layout);
  EncodedTensor& encoded = *head.encoded;
  const MappedPart& part = head.parts.front();
  TensorReader reader;
  for (size_t first = 0; first < spec.output_channels; first += kHeadSliceRows) {
    CRIA_RETURN_IF_ERROR(
        run.ReportProgress(head, static_cast<double>(first) / spec.output_channels));
    TensorLayout layout = head.stored.layout;
    layout.output_channels = std::min(kHeadSliceRows, spec.output_channels - first);
    Matrix weights(layout.output_channels, spec.input_channels);
    CRIA_RETURN_IF_ERROR(
        reader.Read(*part.source, uint64_t{first} * spec.input_channels, weights.values()));
    ApplyFactors(part, first, spec.input_channels, weights.values());
    CRIA_ASSIGN_OR_RETURN(const CalibratedMatrix slice,
                          CalibrateMatrix(run.threads, weights, layout, training, held_back));
    encoded.error += slice.error;
    CRIA_RETURN_IF_ERROR(
        scratch->WriteAt(encoded.data_offset + first * layout.row_bytes(), slice.data));
    CRIA_RETURN_IF_ERROR(
        scratch->WriteAt(encoded.scale_offset + first * layout.row_scale_bytes(), slice.scales));
  }
  run.done_weights += NumWeights(head);
  return {};
}

}  // namespace cria
