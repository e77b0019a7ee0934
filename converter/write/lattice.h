#pragma once

#include "converter/write/file_plan.h"
#include "cria/error.h"

namespace cria {

// Whether all quantized matrices of the layers have weights that are products of Q4_0's scales and
// codes, but for being rounded to bf16 since: those of a checkpoint that was trained for this
// format, or made of such a file. Some rows of each tensor are read.
Result<bool> AreOnQ40Lattice(const FilePlan& plan);

// Stores these matrices in Q4_0.
void TakeQ40(FilePlan& plan);

}  // namespace cria
