#pragma once

#include <functional>
#include <span>

#include "converter/calibrate/block.h"
#include "converter/calibrate/block_steps.h"
#include "converter/calibrate/calibration_run.h"
#include "converter/calibrate/matrix.h"
#include "converter/calibrate/row_batches.h"
#include "cria/error.h"

namespace cria {

// What becomes of the products with a block's second matrix, for the rows of a batch, in the exact
// model or in the stored one.
using TakeProducts = std::function<Status(const RowBatch&, Matrix products)>;
struct BlockOutputs {
  TakeProducts exact;
  TakeProducts stored;
  // What the rows that the stored model adds its products to lack by then, in comparison with the
  // exact model. Null if the products go through a norm or a weighted sum before.
  std::function<Result<Matrix>(const RowBatch&)> lacking;
};

// How the codes of matrices are chosen.
enum class CodeChoice : uint8_t {
  kCalibrated,  // For the rows that they get.
  kRounded,     // By rounding each weight.
};

// Chooses the codes of the block's matrices, and runs it over these rows. `steps` are the block's.
Status CalibrateBlock(CalibrationRun& run, const Block& block, const BlockSteps& steps,
                      std::span<const RowBatch> batches, CodeChoice choice,
                      const BlockOutputs& outputs);

// Calibrates attention or a dense feed-forward, and adds its outputs to the hidden rows.
Status CalibrateHalf(CalibrationRun& run, const Block& block);

// Adds what a block makes of these products to the hidden rows of one of the models.
Status AddToHidden(const RowBatch& batch, const BlockSteps& steps, Matrix products,
                   ActivationFile& hidden);

}  // namespace cria
