#include "decode/tensor_places.h"

#include <algorithm>

namespace cria {

void TensorPlaces::Add(const TensorPlace& place) { entries_.push_back({layer_, place}); }

void TensorPlaces::AddVector(TensorRole role, const float*& vector, size_t size) {
  Add({.role = role, .vector = &vector, .outputs = 1, .inputs = size});
}

std::vector<TensorPlace> TensorPlaces::Find(TensorRole role, int layer) const {
  std::vector<TensorPlace> places;
  for (const Entry& entry : std::ranges::equal_range(entries_, layer, {}, &Entry::layer)) {
    if (entry.place.role == role) places.push_back(entry.place);
  }
  return places;
}

}  // namespace cria
