#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/kv_cache_view.h"

namespace cria::ops {

// Memory for a KvCacheView, exactly as large as needed. Floats and scales begin as NaN, so that a
// read of a position that was never stored shows in the result; bytes begin as 101.
class TestKvCache {
 public:
  TestKvCache(KvType type, size_t num_heads, size_t head_dim, size_t capacity_tokens) {
    const size_t rows = num_heads * capacity_tokens;
    const size_t elements = rows * head_dim;
    view_ = {.type = type,
             .num_key_value_heads = num_heads,
             .head_dim = head_dim,
             .capacity_tokens = capacity_tokens};
    if (type == KvType::kF32) {
      view_.keys = NewFloats(keys_, elements);
      view_.values = NewFloats(values_, elements);
    } else {
      view_.keys = NewBytes(int8_keys_, elements);
      view_.values = NewBytes(int8_values_, elements);
      view_.key_scales = NewFloats(key_scales_, rows);
      view_.value_scales = NewFloats(value_scales_, rows);
    }
  }

  const KvCacheView& view() const { return view_; }

  // What is stored, as a float.
  float Key(size_t head, size_t token, size_t j) const {
    return Element(view_.keys, view_.key_scales, head, token, j);
  }
  float Value(size_t head, size_t token, size_t j) const {
    return Element(view_.values, view_.value_scales, head, token, j);
  }

 private:
  static float* NewFloats(std::unique_ptr<float[]>& owner, size_t count) {
    owner = std::make_unique<float[]>(count);
    for (size_t i = 0; i < count; ++i) owner[i] = NAN;
    return owner.get();
  }
  static int8_t* NewBytes(std::unique_ptr<int8_t[]>& owner, size_t count) {
    owner = std::make_unique<int8_t[]>(count);
    for (size_t i = 0; i < count; ++i) owner[i] = 101;
    return owner.get();
  }
  float Element(const void* data, const float* scales, size_t head, size_t token, size_t j) const {
    const size_t row = head * view_.capacity_tokens + token;
    const size_t at = row * view_.head_dim + j;
    if (view_.type == KvType::kF32) return static_cast<const float*>(data)[at];
    return scales[row] * static_cast<float>(static_cast<const int8_t*>(data)[at]);
  }

  KvCacheView view_;
  std::unique_ptr<float[]> keys_, values_, key_scales_, value_scales_;
  std::unique_ptr<int8_t[]> int8_keys_, int8_values_;
};

}  // namespace cria::ops
