#include "converter/calibrate/held_back_rows.h"

#include <algorithm>

#include "converter/calibrate/linear_algebra.h"
#include "core/numeric.h"

namespace cria {
namespace {

constexpr size_t kMaxRows = 2048;
constexpr size_t kJudgedOutputs = 256;

// One row of so many is kept.
size_t RowStep(size_t num_rows) {
  return std::max<size_t>(1, DivideRoundingUp(num_rows, kMaxRows));
}

}  // namespace

HeldBackRows::HeldBackRows(size_t num_rows, size_t input_channels, size_t output_channels,
                           OutputKind output_kind)
    : row_step_(RowStep(num_rows)),
      output_step_(JudgedStep(output_channels)),
      knows_outputs_(output_kind != OutputKind::kUnknownProducts),
      inputs_(DivideRoundingUp(num_rows, row_step_), input_channels),
      exact_(inputs_.rows(),
             knows_outputs_ ? DivideRoundingUp(output_channels, output_step_) : input_channels) {}

void HeldBackRows::Add(ConstMatrixView inputs, ConstMatrixView exact_inputs,
                       ConstMatrixView exact_outputs) {
  for (size_t row = 0; row < inputs.rows; ++row, ++num_added_) {
    if (num_added_ % row_step_ != 0) continue;
    const size_t kept = num_added_ / row_step_;
    std::ranges::copy(inputs.row(row), inputs_.view().row(kept).begin());
    if (!knows_outputs_) {
      std::ranges::copy(exact_inputs.row(row), exact_.view().row(kept).begin());
      continue;
    }
    for (size_t i = 0; i < exact_.columns(); ++i) {
      exact_(kept, i) = exact_outputs(row, i * output_step_);
    }
  }
}

size_t HeldBackRows::JudgedStep(size_t output_channels) {
  return std::max<size_t>(1, output_channels / kJudgedOutputs);
}

Matrix HeldBackRows::OutputsOf(ConstMatrixView weights, size_t first) const {
  Matrix outputs(inputs_.rows(), weights.rows);
  if (!knows_outputs_) {
    AddProductWithTransposed(exact_.view(), weights, outputs.view());
    return outputs;
  }
  const ConstMatrixView judged = exact_.view().Columns(first / output_step_, weights.rows);
  for (size_t row = 0; row < outputs.rows(); ++row) {
    std::ranges::copy(judged.row(row), outputs.view().row(row).begin());
  }
  return outputs;
}

}  // namespace cria
