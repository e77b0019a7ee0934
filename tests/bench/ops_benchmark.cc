// Speed of the operators beside the matrix products. Decoding is bound by reading the cache (GB/s),
// prefill by arithmetic (GFLOP/s).

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/numeric.h"
#include "core/thread_pool.h"
#include "ops/attention.h"
#include "ops/hadamard.h"
#include "ops/kv_cache_shift.h"
#include "ops/kv_cache_view.h"
#include "ops/quantize_row.h"
#include "ops/quantized_blocks.h"
#include "ops/read_memory.h"
#include "ops/rms_norm.h"
#include "ops/swiglu.h"

namespace cria::ops {
namespace {

// Llama 3.2 1B.
constexpr AttentionShape kShape = {
    .num_attention_heads = 32, .num_key_value_heads = 8, .head_dim = 64};
constexpr AttentionShape kSmallShape = {
    .num_attention_heads = 6, .num_key_value_heads = 6, .head_dim = 48};
constexpr size_t kHiddenSize = 2048;
constexpr size_t kContextTokens = 2048;
constexpr size_t kLayers = 16;  // So that decoding reads from memory and not from a cache.

struct alignas(64) Line {
  std::byte bytes[64];
};

// The caches of all layers.
class Caches {
 public:
  Caches(const AttentionShape& shape, KvType type, size_t capacity_tokens)
      : pages_(DivideRoundingUp(capacity_tokens, kKvPageTokens)) {
    std::ranges::iota(pages_, uint32_t{0});
    const size_t heads = shape.num_key_value_heads;
    const size_t num_rows = heads * pages_.size() * kKvPageTokens;
    const size_t elements = num_rows * shape.head_dim;
    const size_t element_bytes = KvElementBytes(type);
    data_.resize(kLayers * 2 * elements * element_bytes / sizeof(Line));
    scales_.resize(kLayers * 2 * num_rows);
    auto* next_data = reinterpret_cast<std::byte*>(data_.data());
    float* next_scales = scales_.data();
    std::vector<float> row(heads * shape.head_dim);
    for (size_t layer = 0; layer < kLayers; ++layer) {
      KvCacheView& view = views_[layer];
      view = {.type = type,
              .num_key_value_heads = heads,
              .head_dim = shape.head_dim,
              .num_pages = pages_.size(),
              .keys = next_data,
              .values = next_data + elements * element_bytes,
              .key_scales = next_scales,
              .value_scales = next_scales + num_rows};
      next_data += 2 * elements * element_bytes;
      next_scales += 2 * num_rows;
      for (size_t token = 0; token < capacity_tokens; ++token) {
        for (size_t i = 0; i < row.size(); ++i) {
          row[i] = static_cast<float>((i * 31 + token * 17) % 64) / 32.0f - 1.0f;
        }
        StoreKeyValue(view, token, token, row.data(), row.data());
      }
    }
  }
  const KvCacheView& layer(size_t i) const { return views_[i]; }
  // Its pages are in order, so that a position's row is the position.
  KvPageTable table() const { return {pages_}; }

 private:
  std::vector<uint32_t> pages_;
  std::vector<Line> data_;
  std::vector<float> scales_;
  KvCacheView views_[kLayers];
};

void RunAttention(benchmark::State& state, const AttentionShape& shape, KvType type,
                  size_t context_tokens, size_t num_rows) {
  const auto num_threads = static_cast<size_t>(state.range(0));
  const Caches caches(shape, type, context_tokens + num_rows);
  Result<ThreadPool> pool = ThreadPool::Create(num_threads);
  const size_t row_floats = shape.num_attention_heads * shape.head_dim;
  std::vector<float> queries(num_rows * row_floats, 0.5f);
  std::vector<float> output(num_rows * row_floats);
  std::vector<Line> scratch(
      AttentionScratchBytes(shape, {num_rows, 1, context_tokens + num_rows}, num_threads) /
          sizeof(Line) +
      1);
  const AttentionRows rows = {.table = caches.table(),
                              .first_position = context_tokens - 1,
                              .num_rows = num_rows,
                              .queries = queries.data(),
                              .query_stride = row_floats,
                              .output = output.data(),
                              .output_stride = row_floats};
  size_t layer = 0;
  for ([[maybe_unused]] auto _ : state) {
    Attention(shape, caches.layer(layer), std::span(&rows, 1),
              {reinterpret_cast<std::byte*>(scratch.data()), scratch.size() * sizeof(Line)}, *pool);
    layer = (layer + 1) % kLayers;
    benchmark::ClobberMemory();
  }
  const auto tokens = static_cast<double>(context_tokens);
  const double head_bytes = static_cast<double>(shape.head_dim * KvElementBytes(type)) +
                            (type == KvType::kInt8 ? sizeof(float) : 0);
  const double bytes = 2 * tokens * static_cast<double>(shape.num_key_value_heads) * head_bytes;
  const double flops = 4 * tokens * static_cast<double>(num_rows * row_floats);
  const auto rate = [&](double amount) {
    return benchmark::Counter(amount * 1e-9 * static_cast<double>(state.iterations()),
                              benchmark::Counter::kIsRate);
  };
  if (num_rows == 1) state.counters["GB/s"] = rate(bytes);
  state.counters["GFLOP/s"] = rate(flops);
}

void BM_Decode(benchmark::State& state, KvType type) {
  RunAttention(state, kShape, type, kContextTokens, 1);
}
BENCHMARK_CAPTURE(BM_Decode, f32, KvType::kF32)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(BM_Decode, f16, KvType::kF16)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(BM_Decode, int8, KvType::kInt8)->Arg(1)->Arg(2)->UseRealTime();

void BM_Prefill128(benchmark::State& state, KvType type) {
  RunAttention(state, kShape, type, kContextTokens, 128);
}
BENCHMARK_CAPTURE(BM_Prefill128, f32, KvType::kF32)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(BM_Prefill128, f16, KvType::kF16)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(BM_Prefill128, int8, KvType::kInt8)->Arg(1)->Arg(2)->UseRealTime();

// What a layer costs where there is next to nothing to read: of a model of 15 million parameters,
// in the beginning.
void BM_DecodeFirst(benchmark::State& state, KvType type) {
  RunAttention(state, kSmallShape, type, static_cast<size_t>(state.range(1)), 1);
}
BENCHMARK_CAPTURE(BM_DecodeFirst, f32, KvType::kF32)->Args({1, 4})->Args({1, 64});
BENCHMARK_CAPTURE(BM_DecodeFirst, int8, KvType::kInt8)->Args({1, 4})->Args({1, 64});

// One layer's half of a full context, page by page.
void BM_MoveRows(benchmark::State& state, KvType type) {
  const Caches caches(kShape, type, kContextTokens);
  const std::vector<float> cosines(kShape.head_dim / 2, 0.8f), sines(kShape.head_dim / 2, 0.6f);
  for ([[maybe_unused]] auto _ : state) {
    for (size_t row = 0; row < kContextTokens / 2; row += kKvPageTokens) {
      MoveRows(
          caches.layer(0),
          {.source_row = row + kContextTokens / 2, .target_row = row, .num_rows = kKvPageTokens},
          cosines.data(), sines.data());
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kContextTokens / 2));
}
BENCHMARK_CAPTURE(BM_MoveRows, f32, KvType::kF32);
BENCHMARK_CAPTURE(BM_MoveRows, f16, KvType::kF16);
BENCHMARK_CAPTURE(BM_MoveRows, int8, KvType::kInt8);

void BM_StoreKeyValue(benchmark::State& state, KvType type) {
  const Caches caches(kShape, type, kContextTokens);
  const std::vector<float> row(kShape.num_key_value_heads * kShape.head_dim, 0.5f);
  size_t position = 0;
  for ([[maybe_unused]] auto _ : state) {
    StoreKeyValue(caches.layer(0), position, position, row.data(), row.data());
    position = (position + 1) % kContextTokens;
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(BM_StoreKeyValue, f32, KvType::kF32);
BENCHMARK_CAPTURE(BM_StoreKeyValue, f16, KvType::kF16);
BENCHMARK_CAPTURE(BM_StoreKeyValue, int8, KvType::kInt8);

void BM_RmsNorm(benchmark::State& state) {
  const std::vector<float> input(kHiddenSize, 0.5f), weight(kHiddenSize, 1.0f);
  std::vector<float> output(kHiddenSize);
  for ([[maybe_unused]] auto _ : state) {
    RmsNorm(input.data(), weight.data(), kHiddenSize, 1e-5f, output.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kHiddenSize));
}
BENCHMARK(BM_RmsNorm);

void BM_HadamardTransform(benchmark::State& state) {
  std::vector<float> row(static_cast<size_t>(state.range(0)), 0.5f);
  for ([[maybe_unused]] auto _ : state) {
    HadamardTransform(row.data(), row.size());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_HadamardTransform)->Arg(256)->Arg(2048);

void BM_SwiGlu(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  const std::vector<float> gate(size, 0.5f), up(size, 1.0f);
  std::vector<float> output(size);
  for ([[maybe_unused]] auto _ : state) {
    SwiGlu(gate.data(), up.data(), size, output.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_SwiGlu)->Arg(768)->Arg(8192);

void BM_QuantizeRow(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  const std::vector<float> row(size, 0.5f);
  std::vector<int8_t> output(size);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(QuantizeRow(row.data(), size, output.data()));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_QuantizeRow)->Arg(768)->Arg(8192);

void BM_QuantizeBlocks(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  const std::vector<float> row(size, 0.5f);
  std::vector<int8_t> output(QuantizedBlocks::Bytes(size));
  for ([[maybe_unused]] auto _ : state) {
    QuantizeBlocks(row.data(), size, size, {0, QuantizedBlocks::Blocks(size)}, output.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_QuantizeBlocks)->Arg(768)->Arg(8192);

// The roofs: the rates of plain reading and of multiply-adds from registers are those of the
// machine; reading is measured here because it varies between virtual machines.
void BM_ReadMemory(benchmark::State& state) {
  const auto num_threads = static_cast<size_t>(state.range(0));
  Result<ThreadPool> pool = ThreadPool::Create(num_threads);
  const std::vector<std::byte> bytes(size_t{256} << 20, std::byte{1});
  const size_t part = bytes.size() / num_threads;
  std::vector<uint64_t> sums(num_threads);
  for ([[maybe_unused]] auto _ : state) {
    pool->ParallelFor(num_threads, [&](size_t thread) {
      sums[thread] = SumOfWords(std::span(bytes).subspan(thread * part, part));
    });
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(part * num_threads) * 1e-9 * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(BM_ReadMemory)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace cria::ops

BENCHMARK_MAIN();
