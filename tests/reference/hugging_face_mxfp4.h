#pragma once

#include "reference/reference_model.h"

namespace cria::reference {

// Replaces NAME_blocks and NAME_scales, bytes of MXFP4 as gpt-oss's checkpoints have them for all
// experts, by the matrices NAME that they stand for, [experts, inputs, outputs]. Throws
// std::out_of_range if the scales are missing.
void DequantizeMxfp4(ReferenceModel& model);

}  // namespace cria::reference
