#include "llm/pooled_hidden.h"

#include <algorithm>
#include <cmath>

#include "ops/vector.h"

namespace cria {

PooledHidden::PooledHidden(Pooling pooling, std::span<float> vector)
    : pooling_(pooling), vector_(vector) {
  std::ranges::fill(vector_, 0.0f);
}

size_t PooledHidden::NumRows(size_t num_tokens, bool ends_text) const {
  if (pooling_ == Pooling::kMean) return num_tokens;
  return ends_text ? 1 : 0;
}

void PooledHidden::Add(std::span<const float> hidden) {
  ops::Add(hidden.data(), hidden.size(), vector_.data());
  ++num_rows_;
}

void PooledHidden::Finish() {
  if (num_rows_ < 2) return;
  const float scale = 1.0f / static_cast<float>(num_rows_);
  for (float& value : vector_) value *= scale;
}

void PooledHidden::Normalize(std::span<float> vector) {
  double square = 0.0;
  for (const float value : vector) square += static_cast<double>(value) * value;
  if (square == 0.0) return;
  const double scale = 1.0 / std::sqrt(square);
  for (float& value : vector) value = static_cast<float>(value * scale);
}

}  // namespace cria
