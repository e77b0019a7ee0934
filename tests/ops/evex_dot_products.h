#pragma once

#include "ops/products/tile_kernel.h"

namespace cria::ops {

// The kernel for AVX-VNNI with the same instruction as AVX-512 encodes it, so that it also runs on
// processors with AVX-512 that do not have AVX-VNNI; null on others.
const TileKernel* Qb4wKernelWithEvexDotProducts();

}  // namespace cria::ops
