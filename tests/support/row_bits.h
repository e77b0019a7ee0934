#pragma once

#include <string>

#include "core/platform.h"
#include "model/tensor_table.h"

namespace cria::support {

// Whether a product of this scheme gives each row the same bits alone and beside other rows, on
// this processor. XNNPACK has other kernels for one row than for several; on x86-64, all of them
// add in the same order. `LinearRowBitsTest` holds this against the kernels.
inline bool RowsAreBitwiseAsAlone(Scheme scheme) {
#if defined(__x86_64__)
  (void)scheme;
  return true;
#else
  const std::string instruction_sets = platform::InstructionSets();
  const bool has_i8mm = instruction_sets.contains("i8mm");
  const bool has_dotprod = instruction_sets.contains("dotprod");
  switch (scheme) {
    case Scheme::kF32:
      return false;
    case Scheme::kQc8w:
      return has_i8mm || !has_dotprod;
    case Scheme::kQb4w:
      return true;
  }
  return false;
#endif
}

}  // namespace cria::support
