// The queries by which the keys of a block are multiplied, compiled once per instruction set.

#if defined(CRIA_OPS_BLOCK_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_BLOCK_QUERIES_INL_H_
#undef CRIA_OPS_BLOCK_QUERIES_INL_H_
#else
#define CRIA_OPS_BLOCK_QUERIES_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "ops/attention_kernels.h"
#include "ops/rope.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

// The queries as they are, or turned back for keys before those that a KeyShift says.
class BlockQueries {
 public:
  // For the block that begins at `position`.
  BlockQueries(const attention::HeadQueries& queries, const attention::HeadCache& cache,
               size_t position)
      : queries_(queries),
        rotary_dim_(cache.rotary_dim),
        shift_(cache.shift),
        is_turned_(shift_.distance != 0 && !shift_.IsShifted(position)) {}
  BlockQueries(const BlockQueries&) = delete;
  BlockQueries& operator=(const BlockQueries&) = delete;

  // [head_dim], until the next call.
  const float* Query(size_t q) {
    const float* const query = queries_.Query(q);
    if (!is_turned_) return query;
    std::copy_n(query, queries_.head_dim, turned_);
    TurnBack(turned_, rotary_dim_, shift_.cosines, shift_.sines);
    return turned_;
  }

 private:
  const attention::HeadQueries& queries_;
  const size_t rotary_dim_;
  const KeyShift& shift_;
  const bool is_turned_;
  float turned_[kMaxHeadDim];
};

// Whether the queries of the block that begins at `position` are others than those of the block
// before it.
inline bool HaveQueriesChanged(const attention::HeadCache& cache, size_t position) {
  return cache.shift.distance != 0 && position == cache.shift.first;
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_BLOCK_QUERIES_INL_H_
