#include "ops/products/tile_kernel.h"

namespace cria::ops {

const TileKernel* FindQb4wKernel() {
#if defined(__x86_64__)
  if (const TileKernel* kernel = Qb4wKernelForAvx512Vnni(); kernel != nullptr) return kernel;
  if (const TileKernel* kernel = Qb4wKernelForAvxVnni(); kernel != nullptr) return kernel;
  return Qb4wKernelForAvx2();
#elif defined(__aarch64__)
  if (const TileKernel* kernel = Qb4wKernelForNeonI8mm(); kernel != nullptr) return kernel;
  if (const TileKernel* kernel = Qb4wKernelForNeonDot(); kernel != nullptr) return kernel;
  return Qb4wKernelForNeon();
#else
  return nullptr;
#endif
}

const TileKernel* FindQc8wKernel() {
#if defined(__x86_64__)
  if (const TileKernel* kernel = Qc8wKernelForAvx512Vnni(); kernel != nullptr) return kernel;
  if (const TileKernel* kernel = Qc8wKernelForAvxVnni(); kernel != nullptr) return kernel;
  return Qc8wKernelForAvx2();
#elif defined(__aarch64__)
  const TileKernel* kernel = Qc8wKernelForNeonI8mm();
  return kernel != nullptr ? kernel : Qc8wKernelForNeonDot();
#else
  return nullptr;
#endif
}

}  // namespace cria::ops
