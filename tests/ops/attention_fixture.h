#pragma once

// Rows of attention over a cache of random keys and values, and what they are to give.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <ostream>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "ops/attention.h"
#include "ops/kv_cache.h"
#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {

// Floats of another tensor between the rows, as in a fused projection.
inline constexpr size_t kGap = 5;
inline constexpr float kUntouched = 12345.0f;

struct Case {
  AttentionShape shape;
  KvType type = KvType::kF32;
  size_t first_position = 0;
  size_t num_rows = 1;
  float query_deviation = 1.0f;
  KeyShift shift = {};

  size_t row_floats() const { return shape.num_attention_heads * shape.head_dim; }
  size_t num_tokens() const { return first_position + num_rows; }
  // The first position that a row sees.
  size_t BeginOf(size_t row) const {
    const size_t position = first_position + row;
    const size_t window = shape.window_tokens;
    return window != 0 && position >= window ? position - window + 1 : 0;
  }
};

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.shape.num_attention_heads << '/' << c.shape.num_key_value_heads << " heads of "
             << c.shape.head_dim << ", " << KvTypeName(c.type) << ", " << c.num_rows
             << " rows from " << c.first_position << ", window of " << c.shape.window_tokens
             << ", factor " << c.shape.score_factor << ", cap " << c.shape.score_cap
             << (c.shape.sinks == nullptr ? "" : ", sinks");
}

// Exactly the bytes asked for, on the boundary asked for.
class Scratch {
 public:
  explicit Scratch(size_t bytes)
      : bytes_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64})), bytes) {
    std::memset(bytes_.data(), 0xff, bytes);  // NaN.
  }
  ~Scratch() { ::operator delete(bytes_.data(), std::align_val_t{64}); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Random keys and values for every position that the case's rows may see; NaN, for int8 as scales,
// before and after them.
inline TestKvCache FilledCache(const Case& c, size_t capacity_tokens,
                               PageOrder order = PageOrder::kShuffled) {
  TestKvCache cache(c.type, c.shape.num_key_value_heads, c.shape.head_dim, capacity_tokens, order);
  const size_t floats = c.shape.num_key_value_heads * c.shape.head_dim;
  for (size_t token = c.BeginOf(0); token < c.num_tokens(); ++token) {
    cache.Store(token, RandomRow(floats, 2 * token + 1).data(),
                RandomRow(floats, 2 * token + 2).data());
  }
  return cache;
}

inline std::vector<float> Queries(const Case& c) {
  std::vector<float> queries = RandomRow(c.num_rows * c.row_floats(), 77);
  for (float& x : queries) x *= c.query_deviation;
  return queries;
}

// Rows [begin, end) of the case's queries, in one call. Returns them densely.
inline std::vector<float> RunRows(const Case& c, const KvCacheView& cache, const KvPageTable& table,
                                  const std::vector<float>& dense, size_t begin, size_t end,
                                  size_t num_threads) {
  const size_t row_floats = c.row_floats();
  const size_t stride = row_floats + kGap;
  const size_t num_rows = end - begin;
  std::vector<float> queries(num_rows * stride - kGap, NAN);
  std::vector<float> output(num_rows * stride - kGap, kUntouched);
  for (size_t r = 0; r < num_rows; ++r) {
    std::copy_n(dense.begin() + static_cast<ptrdiff_t>((begin + r) * row_floats), row_floats,
                queries.begin() + static_cast<ptrdiff_t>(r * stride));
  }
  const AttentionRows rows = {.table = table,
                              .shift = c.shift,
                              .first_position = c.first_position + begin,
                              .num_rows = num_rows,
                              .queries = queries.data(),
                              .query_stride = stride,
                              .output = output.data(),
                              .output_stride = stride};
  const Scratch scratch(
      AttentionScratchBytes(c.shape, {num_rows, 1, c.first_position + end}, num_threads));
  Result<ThreadPool> pool = ThreadPool::Create(num_threads);
  Attention(c.shape, cache, std::span(&rows, 1), scratch.bytes(), *pool);

  std::vector<float> result;
  for (size_t i = 0; i < output.size(); ++i) {
    if (i % stride < row_floats) {
      result.push_back(output[i]);
    } else {
      EXPECT_EQ(output[i], kUntouched) << "between rows, at " << i;
    }
  }
  return result;
}

inline std::vector<float> RunRows(const Case& c, const TestKvCache& cache,
                                  const std::vector<float>& dense, size_t begin, size_t end,
                                  size_t num_threads) {
  return RunRows(c, cache.view(), cache.table(), dense, begin, end, num_threads);
}

inline std::vector<float> RunAll(const Case& c, const TestKvCache& cache, size_t num_threads = 1) {
  return RunRows(c, cache, Queries(c), 0, c.num_rows, num_threads);
}

// All rows, in calls with `part_rows` of them each.
inline std::vector<float> RunParts(const Case& c, const TestKvCache& cache, size_t part_rows) {
  const std::vector<float> queries = Queries(c);
  std::vector<float> parts;
  for (size_t begin = 0; begin < c.num_rows; begin += part_rows) {
    const std::vector<float> part =
        RunRows(c, cache, queries, begin, std::min(c.num_rows, begin + part_rows), 1);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  return parts;
}

// Whether both have the same bits.
inline bool AreSame(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A row of int8 with one scale, as double.
inline std::vector<double> Quantized(std::vector<double> row) {
  double absmax = 0;
  for (const double x : row) absmax = std::max(absmax, std::abs(x));
  const double scale = absmax / 127;
  for (double& x : row) x = scale * std::nearbyint(x / scale);
  return row;
}

// A query in the basis of keys in int8.
inline std::vector<double> Spread(const std::vector<double>& query) {
  return reference::HadamardTransform({query.begin(), query.end()});
}

inline std::vector<double> Expected(const Case& c, const TestKvCache& cache,
                                    bool quantize_queries) {
  const AttentionShape& shape = c.shape;
  std::vector<reference::Head> heads(shape.num_key_value_heads);
  for (size_t h = 0; h < heads.size(); ++h) {
    for (size_t t = 0; t < c.num_tokens(); ++t) {
      std::vector<double>& key = heads[h].keys.emplace_back();
      std::vector<double>& value = heads[h].values.emplace_back();
      for (size_t j = 0; j < shape.head_dim; ++j) {
        key.push_back(cache.Key(h, t, j));
        value.push_back(cache.Value(h, t, j));
      }
    }
  }
  const std::vector<float> queries = Queries(c);
  std::vector<double> result;
  for (size_t i = 0; i < c.num_rows * shape.num_attention_heads; ++i) {
    const auto begin = queries.begin() + static_cast<ptrdiff_t>(i * shape.head_dim);
    std::vector<double> query(begin, begin + static_cast<ptrdiff_t>(shape.head_dim));
    if (c.type == KvType::kInt8) query = Spread(query);
    if (quantize_queries) query = Quantized(query);
    const size_t row = i / shape.num_attention_heads;
    const size_t head = i % shape.num_attention_heads * heads.size() / shape.num_attention_heads;
    const double sink =
        shape.sinks == nullptr ? -INFINITY : shape.sinks[i % shape.num_attention_heads];
    const std::vector<double> attended =
        reference::Attend(query, heads[head], c.BeginOf(row), c.first_position + row + 1,
                          shape.score_factor, shape.score_cap, sink);
    result.insert(result.end(), attended.begin(), attended.end());
  }
  return result;
}

inline double MaxDifference(const std::vector<float>& actual, const std::vector<double>& expected) {
  double result = actual.size() == expected.size() ? 0.0 : INFINITY;
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const double difference = std::abs(actual[i] - expected[i]);
    if (!(difference <= result)) result = difference;  // NaN stays.
  }
  return result;
}

}  // namespace cria::ops
