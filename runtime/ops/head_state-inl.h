// Blocks of columns of a head's state, for every instruction set that Highway compiles for.

#if defined(CRIA_OPS_HEAD_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_HEAD_STATE_INL_H_
#undef CRIA_OPS_HEAD_STATE_INL_H_
#else
#define CRIA_OPS_HEAD_STATE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "ops/head_state.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using StateTag = hn::CappedTag<float, kStateColumns>;
using StateVector = hn::VFromD<StateTag>;
inline constexpr size_t kStateLanes = hn::MaxLanes(StateTag());
inline constexpr size_t kStateVectors = kStateColumns / kStateLanes;

// The first `count` of kStateColumns numbers; the others are zeros.
HWY_INLINE void LoadColumns(const float* from, size_t count, StateVector* HWY_RESTRICT vectors) {
  const StateTag d;
  for (size_t i = 0; i < kStateVectors; ++i) {
    const size_t first = i * kStateLanes;
    vectors[i] = first >= count ? hn::Zero(d) : hn::LoadN(d, from + first, count - first);
  }
}

HWY_INLINE void StoreColumns(const StateVector* HWY_RESTRICT vectors, size_t count, float* to) {
  const StateTag d;
  for (size_t i = 0; i < kStateVectors && i * kStateLanes < count; ++i) {
    hn::StoreN(vectors[i], d, to + i * kStateLanes, count - i * kStateLanes);
  }
}

// One token's part of a block of columns.
struct StateToken {
  const float* key;
  float* value;
  float decay;
};

HWY_INLINE StateToken TokenOf(const StateUpdates& updates, size_t row, size_t column) {
  const size_t offset = row * updates.stride;
  return {updates.keys + offset, updates.values + offset + column, updates.decays[offset]};
}

// One pass over a block of columns: `target` becomes `source` after `token`. Of each row i of the
// block, calls `read(i, j, vector)` for its j-th vector in `target`.
template <typename Read>
HWY_INLINE void TakeToken(size_t key_dim, const float* source, float* target,
                          const StateToken& token, size_t count, const Read& read) {
  const StateTag d;
  StateVector value[kStateVectors];
  LoadColumns(token.value, count, value);
  const StateVector decay = hn::Set(d, token.decay);
  for (size_t i = 0; i < key_dim; ++i) {
    for (size_t j = 0; j < kStateVectors; ++j) {
      const size_t place = i * kStateColumns + j * kStateLanes;
      const StateVector before = hn::Mul(hn::LoadU(d, source + place), decay);
      const StateVector state = hn::MulAdd(hn::Set(d, token.key[i]), value[j], before);
      hn::StoreU(state, d, target + place);
      read(i, j, state);
    }
  }
}

HWY_INLINE void TakeToken(size_t key_dim, const float* source, float* target,
                          const StateToken& token, size_t count) {
  TakeToken(key_dim, source, target, token, count, [](size_t, size_t, StateVector) HWY_ATTR {});
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_HEAD_STATE_INL_H_
