#pragma once

#include <cstddef>

#include "cria/error.h"

namespace cria::xnn {

// Whether XNNPACK packs kQb4w with these blocks as ops::Qb4wTiles8c8 on this processor, so that
// ops::MultiplyQb4w can read what it packed. Packs a small matrix and looks.
Result<bool> PacksQb4wAsTiles8c8(size_t block_size);

}  // namespace cria::xnn
