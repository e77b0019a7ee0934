#pragma once

#include <memory>

#include "converter/calibrate/calibration_run.h"
#include "converter/write/file_plan.h"
#include "converter/write/scratch_file.h"
#include "cria/error.h"

namespace cria {

// Whether CalibrateHead has codes to choose: of a head that is no embedding table, with fewer than
// 8 bits. Rounding to 8 bits loses almost nothing.
bool ChoosesCodesOfHead(FilePlan& plan);

// Chooses the codes of such a head for the hidden rows behind the last layer. The head is read in
// slices of some thousand rows.
Status CalibrateHead(CalibrationRun& run, const std::shared_ptr<ScratchFile>& scratch,
                     FilePlan& plan);

}  // namespace cria
