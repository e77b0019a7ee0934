#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cria {

// How keys and values are stored.
enum class KvType : uint8_t {
  kF32,
  kF16,   // Magnitudes above 65504 are stored as 65504.
  kInt8,  // With one float scale per position and head: value = scale * int8, scale = absmax / 127.
};
std::string_view KvTypeName(KvType type);
size_t KvElementBytes(KvType type);

namespace ops {

// Maximum head_dim: operators keep one head's row on the stack.
inline constexpr size_t kMaxHeadDim = 1024;

// The keys and values of one layer. The positions of a head are adjacent, so that reading a head's
// context is one sequential pass.
struct KvCacheView {
  KvType type = KvType::kF32;
  size_t num_key_value_heads = 0;
  size_t head_dim = 0;
  size_t capacity_tokens = 0;
  void* keys = nullptr;           // [num_key_value_heads][capacity_tokens][head_dim]
  void* values = nullptr;         // The same shape.
  float* key_scales = nullptr;    // kInt8: [num_key_value_heads][capacity_tokens]
  float* value_scales = nullptr;  // The same shape.
};

// Stores one position's keys and values, each [num_key_value_heads][head_dim]. `position` must be
// below capacity_tokens.
void StoreKeyValue(const KvCacheView& cache, size_t position, const float* keys,
                   const float* values);

}  // namespace ops
}  // namespace cria
