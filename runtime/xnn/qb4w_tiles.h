#pragma once

#include <cstddef>

#include "cria/error.h"

namespace cria::xnn {

// Whether XNNPACK on this processor packs kQb4w with these blocks as ops::Qb4wTiles8c8, so that
// ops::MultiplyQb4w can read the result. Packs a small matrix and compares.
Result<bool> PacksQb4wAsTiles8c8(size_t block_size);

}  // namespace cria::xnn
