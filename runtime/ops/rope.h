#pragma once

#include <cstddef>

namespace cria::ops {

// Rotates the first `rotary_dim` floats of each of `num_heads` consecutive heads of `head_dim`
// floats in place: element i of the first half of these and element i of the second half are a
// pair, rotated by the angle whose cosine and sine are `cosines[i]` and `sines[i]` (Su et al. 2021,
// in the half-split order of Hugging Face). `cosines` and `sines` are [rotary_dim / 2], those of
// the row's position.
void ApplyRope(float* heads, size_t num_heads, size_t head_dim, size_t rotary_dim,
               const float* cosines, const float* sines);

// ApplyRope of one head with the negative angles: turns a query or a key to an earlier position.
void TurnBack(float* head, size_t rotary_dim, const float* cosines, const float* sines);

}  // namespace cria::ops
