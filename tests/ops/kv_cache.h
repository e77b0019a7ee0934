#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/numeric.h"
#include "ops/kv_cache_view.h"
#include "ops/reference_ops.h"

namespace cria::ops {

inline constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kInt8};

enum class PageOrder : uint8_t {
  kInOrder,
  kShuffled,  // With a page that the table does not have.
};

// Memory for a KvCacheView. Floats, halves and scales begin as NaN, so that a read of a position
// that was never stored shows in the result; bytes begin as 101.
class TestKvCache {
 public:
  TestKvCache(KvType type, size_t num_heads, size_t head_dim, size_t capacity_tokens,
              PageOrder order = PageOrder::kShuffled) {
    const size_t num_blocks = DivideRoundingUp(capacity_tokens, kKvPageTokens);
    pages_.resize(num_blocks + (order == PageOrder::kShuffled ? 1 : 0));
    std::ranges::iota(pages_, uint32_t{0});
    if (order == PageOrder::kShuffled) {
      std::ranges::shuffle(pages_, std::minstd_rand(static_cast<unsigned>(num_blocks)));
    }
    const size_t rows = num_heads * pages_.size() * kKvPageTokens;
    const size_t elements = rows * head_dim;
    view_ = {.type = type,
             .num_key_value_heads = num_heads,
             .head_dim = head_dim,
             .num_pages = pages_.size()};
    table_ = {std::span(pages_).first(num_blocks)};
    switch (type) {
      case KvType::kF32:
        view_.keys = New(keys_, elements, NAN);
        view_.values = New(values_, elements, NAN);
        break;
      case KvType::kF16:
        view_.keys = New(f16_keys_, elements, uint16_t{0x7e00});
        view_.values = New(f16_values_, elements, uint16_t{0x7e00});
        break;
      case KvType::kInt8:
        view_.keys = New(int8_keys_, elements, int8_t{101});
        view_.values = New(int8_values_, elements, int8_t{101});
        view_.key_scales = New(key_scales_, rows, NAN);
        view_.value_scales = New(value_scales_, rows, NAN);
        break;
    }
  }

  const KvCacheView& view() const { return view_; }
  const KvPageTable& table() const { return table_; }
  void set_key_offsets(const KeyOffsets& offsets, size_t rotary_dim = 0) {
    view_.key_offsets = offsets;
    view_.rotary_dim = rotary_dim;
  }

  void Store(size_t token, const float* keys, const float* values,
             const KeyShift& shift = {}) const {
    StoreKeyValue(view_, table_.Row(token), token, keys, values, shift);
  }
  // The row of a position among the rows of all heads.
  size_t Row(size_t head, size_t token) const {
    return head * view_.num_rows() + table_.Row(token);
  }
  // The stored element as a float. In int8, keys are stored times Hadamard's matrix.
  float Key(size_t head, size_t token, size_t j) const {
    return Element(view_.keys, view_.key_scales, head, token, j);
  }
  // The key without Hadamard's matrix: what was given, but for its offset and rounding.
  std::vector<double> KeyRow(size_t head, size_t token) const {
    std::vector<float> row(view_.head_dim);
    for (size_t j = 0; j < row.size(); ++j) row[j] = Key(head, token, j);
    if (view_.type != KvType::kInt8) return {row.begin(), row.end()};
    return reference::HadamardTransform(row);
  }
  float Value(size_t head, size_t token, size_t j) const {
    return Element(view_.values, view_.value_scales, head, token, j);
  }

 private:
  template <typename T>
  static T* New(std::unique_ptr<T[]>& owner, size_t count, T value) {
    owner = std::make_unique<T[]>(count);
    std::fill_n(owner.get(), count, value);
    return owner.get();
  }
  float Element(const void* data, const float* scales, size_t head, size_t token, size_t j) const {
    const size_t row = Row(head, token);
    const size_t at = row * view_.head_dim + j;
    switch (view_.type) {
      case KvType::kF32:
        return static_cast<const float*>(data)[at];
      case KvType::kF16:
        return F16ToFloat(static_cast<const uint16_t*>(data)[at]);
      case KvType::kInt8:
        return scales[row] * static_cast<float>(static_cast<const int8_t*>(data)[at]);
    }
    return NAN;
  }

  std::vector<uint32_t> pages_;
  KvCacheView view_;
  KvPageTable table_;
  std::unique_ptr<float[]> keys_, values_, key_scales_, value_scales_;
  std::unique_ptr<uint16_t[]> f16_keys_, f16_values_;
  std::unique_ptr<int8_t[]> int8_keys_, int8_values_;
};

}  // namespace cria::ops
