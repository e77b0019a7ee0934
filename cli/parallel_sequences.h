#pragma once

#include <cstddef>
#include <functional>

#include "cria/error.h"

namespace cria::cli {

// Calls `run` once for each sequence at the same time: for the first one in this thread, and for
// each other in a thread of its own. Returns the first error.
Status RunSequences(size_t num_sequences, const std::function<Status(size_t sequence)>& run);

}  // namespace cria::cli
