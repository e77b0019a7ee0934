#pragma once

#include "model/tensor_table.h"

namespace cria::xnn {

// Whether a product of this scheme gives each row the same bits alone and beside other rows, on
// this processor. Our own products always do. XNNPACK has other kernels for one row than for
// several; those for f32 on Arm add in other orders. `LinearRowBitsTest` holds this against the
// kernels.
inline bool RowsAreBitwiseAsAlone(Scheme scheme) {
#if defined(__x86_64__)
  (void)scheme;
  return true;
#else
  return scheme != Scheme::kF32;
#endif
}

}  // namespace cria::xnn
