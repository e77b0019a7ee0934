#pragma once

#include <span>
#include <vector>

#include "converter/write/file_plan.h"

namespace cria {

// A matrix of all experts as one tensor for each expert, with its part of the sources, of the
// factors and, if there are codes, of these. A matrix that belongs to no experts is returned alone.
std::vector<PlannedTensor> SplitExperts(const PlannedTensor& tensor);

// Takes back what was changed in the tensors that SplitExperts made: their factors, and the sum of
// their errors if there are codes.
void JoinExperts(std::span<PlannedTensor> experts, PlannedTensor& tensor);

}  // namespace cria
