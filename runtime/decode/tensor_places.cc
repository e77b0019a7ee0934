#include "decode/tensor_places.h"

#include <algorithm>

namespace cria {

const TensorPlace* TensorPlaces::Find(TensorRole role, int layer) const {
  for (const Entry& entry : std::ranges::equal_range(entries_, layer, {}, &Entry::layer)) {
    if (entry.place.role == role) return &entry.place;
  }
  return nullptr;
}

}  // namespace cria
