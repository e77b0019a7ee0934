// Speed of our own products with quantized weights: few rows are bound by reading the weights
// (GB/s), many by arithmetic (multiplications/s).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "core/platform.h"
#include "core/thread_pool.h"
#include "ops/evex_dot_products.h"
#include "ops/products/tiled_product.h"
#include "weights/block_format.h"
#include "weights/block_tiles.h"

namespace cria::ops {
namespace {

// gate_up_proj of Llama 3.2 1B, and so many layers of it that the weights come from memory.
constexpr size_t kInputs = 2048;
constexpr size_t kOutputs = 16384;
constexpr size_t kLayers = 16;

void Run(benchmark::State& state, const TileKernel& kernel, const PackedTiles& tiles) {
  const auto num_rows = static_cast<size_t>(state.range(0));
  const auto num_threads = static_cast<size_t>(state.range(1));
  const size_t bytes = DivideRoundingUp(kOutputs, tiles.outputs) * tiles.tile_bytes();
  Result<platform::PageBlock> weights = platform::PageBlock::Allocate(kLayers * bytes);
  if (!weights) return state.SkipWithError("no memory");
  // Every byte is sound as a code, and as a part of a scale and a sum.
  std::ranges::fill(weights->bytes(), std::byte{0x3c});
  // Zeros, also as scales and offsets.
  const size_t stride = QuantizedBlocks::Bytes(kInputs) + 64;
  const std::vector<int8_t> values(num_rows * stride);
  std::vector<float> output(num_rows * kOutputs);
  const Result<ThreadPool> pool = ThreadPool::Create(num_threads);
  size_t layer = 0;
  for ([[maybe_unused]] auto _ : state) {
    MultiplyTiled(kernel, tiles, weights->bytes().data() + layer * bytes, kOutputs,
                  {values.data(), stride, num_rows}, {output.data(), kOutputs}, *pool);
    layer = (layer + 1) % kLayers;
    benchmark::ClobberMemory();
  }
  const auto per_second = [&](size_t amount) {
    return benchmark::Counter(static_cast<double>(amount) * static_cast<double>(state.iterations()),
                              benchmark::Counter::kIsRate);
  };
  state.counters["bytes/s"] = per_second(bytes);
  state.counters["multiplications/s"] = per_second(num_rows * kInputs * kOutputs);
}

// `kernel` may be null.
void RunXnnpackLayout(benchmark::State& state, const TileKernel* kernel, size_t block_size) {
  if (kernel == nullptr) return state.SkipWithError("XNNPACK computes these on this processor");
  Run(state, *kernel, TilesOf(*kernel, kInputs, block_size));
}

void BM_Int4Product(benchmark::State& state) { RunXnnpackLayout(state, FindQb4wKernel(), 32); }
void BM_Int8Product(benchmark::State& state) { RunXnnpackLayout(state, FindQc8wKernel(), 0); }
const std::vector<std::vector<int64_t>> kRowsAndThreads = {{1, 2, 3, 4, 6, 8, 12, 16, 32, 128},
                                                           {1, 2}};
BENCHMARK(BM_Int4Product)->ArgsProduct(kRowsAndThreads)->UseRealTime();
BENCHMARK(BM_Int8Product)->ArgsProduct(kRowsAndThreads)->UseRealTime();

// The third argument is a format's place in kBlockFormats.
void BM_BlockProduct(benchmark::State& state) {
  const BlockFormat& format = kBlockFormats[static_cast<size_t>(state.range(2))];
  state.SetLabel(std::string(format.name));
  Run(state, *FindBlockKernel(format), TilesOf(format, kInputs, 1.0f));
}
BENCHMARK(BM_BlockProduct)
    ->ArgsProduct({kRowsAndThreads[0], kRowsAndThreads[1],
                   benchmark::CreateDenseRange(0, kBlockFormats.size() - 1, 1)})
    ->UseRealTime();

// Packs 2048 rows of a format, which a first start does with all weights. The argument is the
// format's place in kBlockFormats.
void BM_PackTiles(benchmark::State& state) {
  constexpr size_t kRows = 2048;
  const BlockFormat& format = kBlockFormats[static_cast<size_t>(state.range(0))];
  state.SetLabel(std::string(format.name));
  const std::vector<std::byte> stored(kRows * kInputs / format.inputs * format.bytes,
                                      std::byte{0x3c});
  std::vector<std::byte> tiles(TiledBytes(format, kRows, kInputs));
  for ([[maybe_unused]] auto _ : state) {
    PackTiles(format, stored.data(), kRows, kInputs, tiles);
    benchmark::ClobberMemory();
  }
  state.counters["weights/s"] = benchmark::Counter(
      static_cast<double>(kRows * kInputs) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(BM_PackTiles)->DenseRange(0, kBlockFormats.size() - 1);

#if defined(__x86_64__)
// Where the processor has AVX-512 instead, with libavx2_processor.so before it.
void BM_Int4ProductAvxVnni(benchmark::State& state) {
  const TileKernel* const kernel = Qb4wKernelForAvxVnni();
  RunXnnpackLayout(state, kernel != nullptr ? kernel : Qb4wKernelWithEvexDotProducts(), 32);
}
BENCHMARK(BM_Int4ProductAvxVnni)->ArgsProduct(kRowsAndThreads)->UseRealTime();
#endif

}  // namespace
}  // namespace cria::ops

BENCHMARK_MAIN();
