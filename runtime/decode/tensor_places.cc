#include "decode/tensor_places.h"

#include <algorithm>

namespace cria {

void TensorPlaces::Add(const TensorPlace& place) { entries_.push_back({layer_, place}); }

void TensorPlaces::AddVector(TensorRole role, const float*& vector, size_t size) {
  Add({.role = role, .vector = &vector, .outputs = 1, .inputs = size});
}

const TensorPlace* TensorPlaces::Find(TensorRole role, int layer) const {
  for (const Entry& entry : std::ranges::equal_range(entries_, layer, {}, &Entry::layer)) {
    if (entry.place.role == role) return &entry.place;
  }
  return nullptr;
}

}  // namespace cria
