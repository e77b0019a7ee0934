#include "ops/products/tile_kernel.h"

namespace cria::ops {

const TileKernel* FindQb4wKernel() {
#if defined(__x86_64__)
  const TileKernel* kernel = Qb4wKernelForAvx512Vnni();
  return kernel != nullptr ? kernel : Qb4wKernelForAvx2();
#else
  return nullptr;
#endif
}

const TileKernel* FindQc8wKernel() {
#if defined(__x86_64__)
  return Qc8wKernelForAvx512Vnni();
#else
  return nullptr;
#endif
}

}  // namespace cria::ops
