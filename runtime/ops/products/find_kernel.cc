#include "ops/products/tile_kernel.h"

namespace cria::ops {

const TileKernel* FindQb4wKernel() {
#if defined(__x86_64__)
  return Qb4wKernelForAvx2();
#else
  return nullptr;
#endif
}

}  // namespace cria::ops
