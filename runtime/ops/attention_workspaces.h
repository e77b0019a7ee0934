#pragma once

// Working memory of the inner functions of Attention; only its sources include this.

#include <cstddef>
#include <cstdint>

#include "ops/attention_kernels.h"

namespace cria::ops::attention {

// Places arrays one after another from `base` on, or only adds up their sizes if `base` is null.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  template <typename T>
  T* Take(size_t count) {
    T* array = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + bytes_);
    bytes_ += RoundUp(count * sizeof(T), 64);
    return array;
  }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  size_t bytes_ = 0;
};

// Rows of int8 queries are padded with zeros to the widest vector of bytes.
inline constexpr size_t kPaddingBytes = 64;

// The working memory of GatherSpan.
struct SpanWorkspace {
  SpanWorkspace(std::byte* base, size_t num_queries, size_t head_dim)
      : padded_floats(RoundUp(head_dim, kPaddingFloats)),
        padded_bytes(RoundUp(head_dim, kPaddingBytes)) {
    Carver carver(base);
    queries = carver.Take<float>(num_queries * padded_floats);
    int8_queries = carver.Take<int8_t>(num_queries * padded_bytes);
    query_scales = carver.Take<float>(num_queries);
    query_biases = carver.Take<int32_t>(num_queries);
    scores = carver.Take<float>(num_queries * kBlockTokens);
    rescales = carver.Take<float>(num_queries);
    code_scales = carver.Take<float>(num_queries);
    bytes = carver.bytes();
  }

  size_t padded_floats;
  size_t padded_bytes;
  size_t bytes;
  float* queries;         // kF32, kF16: [num_queries][padded_floats], times score_scale.
  int8_t* int8_queries;   // kInt8: [num_queries][padded_bytes]
  float* query_scales;    // kInt8: [num_queries], times score_scale.
  int32_t* query_biases;  // kInt8: [num_queries], subtracted from the dot products.
  float* scores;          // [num_queries][kBlockTokens]; later the weights exp(score - largest).
  float* rescales;        // [num_queries]: factors of earlier sums.
  float* code_scales;     // kInt8: [num_queries], if weights are integers.
};

// Keys, or dimensions of values, that are processed together.
inline constexpr size_t kTileRows = 4;

// What has been added up for each query of a tile.
struct TileSums {
  float* values = nullptr;  // [head_dim, rounded up to kTileRows][num_lanes]: values times weights.
  float* largest = nullptr;  // [num_lanes]: the largest score.
  float* weights = nullptr;  // [num_lanes]: exp(score - largest).
};

// The working memory of AttendTile. num_lanes is the number of queries rounded up to
// kPaddingFloats.
struct TileWorkspace {
  TileWorkspace(std::byte* base, size_t num_queries, size_t head_dim)
      : num_lanes(RoundUp(num_queries, kPaddingFloats)) {
    Carver carver(base);
    queries = carver.Take<float>(head_dim * num_lanes);
    int8_queries = carver.Take<int8_t>(RoundUp(head_dim, 4) * num_lanes);
    scores = carver.Take<float>(kBlockTokens * num_lanes);
    for (TileSums* const sums : {&span, &merged}) {
      sums->values = carver.Take<float>(RoundUp(head_dim, kTileRows) * num_lanes);
      sums->largest = carver.Take<float>(num_lanes);
      sums->weights = carver.Take<float>(num_lanes);
    }
    floats = carver.Take<float>(kBlockTokens * head_dim);
    query_scales = carver.Take<float>(num_lanes);
    query_biases = carver.Take<int32_t>(num_lanes);
    end_positions = carver.Take<int32_t>(num_lanes);
    rescales = carver.Take<float>(num_lanes);
    code_scales = carver.Take<float>(num_lanes);
    offset_middles = carver.Take<float>(num_lanes);
    offset_slopes = carver.Take<float>(num_lanes);
    bytes = carver.bytes();
  }

  size_t num_lanes;
  size_t bytes;
  float* queries;          // kF32, kF16: [head_dim][num_lanes], times score_scale.
  int8_t* int8_queries;    // kInt8: [head_dim / 4, rounded up][num_lanes][4]
  float* scores;           // [kBlockTokens][num_lanes]; later the weights exp(score - largest).
  TileSums span;           // Sums over this span's positions.
  TileSums merged;         // Sums over all spans before it.
  float* floats;           // A block's keys or values: [kBlockTokens][head_dim] as floats, or int8
                           // values as InterleaveValues orders them.
  float* query_scales;     // kInt8: [num_lanes], times score_scale.
  int32_t* query_biases;   // kInt8: [num_lanes], subtracted from the dot products.
  int32_t* end_positions;  // [num_lanes]: the first position that the query does not attend to.
  float* rescales;         // [num_lanes]: factors of the span's earlier sums.
  float* code_scales;      // kInt8: [num_lanes], if weights are integers.
  float* offset_middles;   // kInt8: [num_lanes], OffsetScore of a page, if keys have offsets.
  float* offset_slopes;    // The same.
};

}  // namespace cria::ops::attention
