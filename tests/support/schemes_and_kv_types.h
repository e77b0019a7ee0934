#pragma once

#include <utility>
#include <vector>

#include "model/tensor_table.h"
#include "ops/kv_cache_view.h"
#include "support/emulation.h"

namespace cria::support {

// Every scheme of weights with every KV type; under emulation, fewer pairs in which each scheme and
// each type occurs once.
inline std::vector<std::pair<Scheme, KvType>> SchemesAndKvTypes() {
  constexpr Scheme kSchemes[] = {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w};
  constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kInt8};
  std::vector<std::pair<Scheme, KvType>> pairs;
  for (size_t i = 0; i < std::size(kSchemes); ++i) {
    for (size_t j = 0; j < std::size(kKvTypes); ++j) {
      if (i == j || !IsEmulated()) pairs.emplace_back(kSchemes[i], kKvTypes[j]);
    }
  }
  return pairs;
}

}  // namespace cria::support
