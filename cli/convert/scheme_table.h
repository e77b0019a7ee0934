#pragma once

#include <string>
#include <vector>

#include "converter/convert.h"

namespace cria::cli {

// A line for each matrix: what it costs in int8, in int4 with blocks of 32, and in what was chosen
// for it. `is_measured` says that costs are divergences, and not estimated from the weights.
std::string SchemeTable(const std::vector<SchemeChoice>& choices, bool is_measured);

// A line for each layer, with the divergence that each of its matrices causes, and their sums.
std::string ErrorTable(const std::vector<MatrixError>& errors);

}  // namespace cria::cli
