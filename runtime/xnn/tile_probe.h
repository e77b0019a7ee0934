#pragma once

#include "cria/error.h"
#include "ops/products/packed_tiles.h"

namespace cria::xnn {

// Whether XNNPACK on this processor packs weights with these blocks as `tiles` says, so that a
// kernel of ours can read them; the number of input channels does not matter. Packs a small matrix
// and compares.
Result<bool> PacksAs(const ops::PackedTiles& tiles);

}  // namespace cria::xnn
