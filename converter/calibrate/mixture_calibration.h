#pragma once

#include <cstddef>

#include "converter/calibrate/calibration_run.h"
#include "converter/calibrate/layer_blocks.h"
#include "cria/error.h"

namespace cria {

// Whether so many rows can decide, and so many others judge, what an expert's matrices with up to
// this many inputs become.
bool HasEnoughRows(size_t training, size_t held_back, size_t inputs);

// Scales and calibrates the experts of a layer, each for the rows that choose it in the exact model
// or in the stored one, and adds their outputs to the hidden rows. Memory holds, of the experts,
// one matrix with its moments, and 16 bytes for each token and expert that it chooses.
Status CalibrateMixture(CalibrationRun& run, Mixture& mixture);

}  // namespace cria
