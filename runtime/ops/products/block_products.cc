// Products of int8 rows and the block formats, the same source for every instruction set. A row's
// results do not depend on the rows beside it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ops/dot_product_targets.h"
#include "ops/products/tile_kernel.h"
#include "weights/block_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/products/block_products.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/products/block_dots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

constexpr size_t kTileOutputs = BlockTiles::kOutputs;
constexpr size_t kStepInputs = BlockTiles::kStepInputs;
constexpr size_t kStepLines = 8;
constexpr size_t kMaxRows = 128;

// Rows, and parts of a tile, that are multiplied together: their sums fill the registers. If that
// is more than one row, a single row has code of its own, without a Span.
struct Together {
  size_t rows;
  size_t parts;
};
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
constexpr Together kTogether = {6, 1};
#elif HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
// Such processors are rare: what they run is small instead of fast.
constexpr Together kTogether = {1, 1};
#elif CRIA_OPS_IS_ARM_DOT_TARGET
constexpr Together kTogether = {4, 2};
#else
constexpr Together kTogether = {3, 2};
#endif
static_assert(kBlockParts % kTogether.parts == 0);

using VF32 = hn::Vec<BlockF32>;
using VI32 = hn::Vec<BlockI32>;

// Where there is no instruction for it, this is much code.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
HWY_NOINLINE
#else
HWY_INLINE
#endif
VF32 LoadHalves(const uint16_t* halves) {
  const hn::Rebind<hwy::float16_t, BlockF32> df16;
  return hn::PromoteTo(BlockF32(),
                       hn::LoadU(df16, reinterpret_cast<const hwy::float16_t*>(halves)));
}

// What codes of a group are multiplied by, and what is then subtracted for each activation, for the
// outputs of a part.
struct Factors {
  VF32 scale;
  VF32 minimum;
};

// The factors of a stored block for kBlockParts parts of a tile. In a format without minimums, the
// scale times kSubtracted takes their place.
template <const BlockFormat& kFormat, int kSubtracted>
class BlockFactors {
 public:
  HWY_INLINE explicit BlockFactors(const std::byte* block)
      : bytes_(reinterpret_cast<const uint8_t*>(block) + kHalves * sizeof(uint16_t)) {
    const auto* halves = reinterpret_cast<const uint16_t*>(block);
    HWY_UNROLL(4)
    for (size_t p = 0; p < kBlockParts; ++p, halves += kBlockLanes) {
      scales_[p] = LoadHalves(halves);
      if constexpr (kFormat.has_minimum) minimums_[p] = LoadHalves(halves + kTileOutputs);
    }
  }

  HWY_INLINE VF32 Scale(size_t group, size_t p) const {
    if constexpr (kFormat.group_scales == GroupScales::kNone) {
      return scales_[p];
    } else if constexpr (kFormat.group_scales == GroupScales::kNibbles) {
      const auto both = hn::PromoteTo(BlockI32(), Bytes(group, p));
      return Times(scales_[p], hn::And(both, hn::Set(BlockI32(), 15)));
    } else {
      const auto bytes = hn::BitCast(hn::Rebind<int8_t, BlockF32>(), Bytes(group, p));
      return Times(scales_[p], hn::PromoteTo(BlockI32(), bytes));
    }
  }
  // `scale` is what Scale returns.
  HWY_INLINE VF32 Minimum(size_t group, size_t p, VF32 scale) const {
    if constexpr (!kFormat.has_minimum) {
      return hn::Mul(scale, hn::Set(BlockF32(), static_cast<float>(kSubtracted)));
    } else if constexpr (kFormat.group_scales == GroupScales::kNone) {
      return minimums_[p];
    } else if constexpr (kFormat.group_scales == GroupScales::kNibbles) {
      const auto both = hn::PromoteTo(BlockI32(), Bytes(group, p));
      return Times(minimums_[p], hn::ShiftRight<4>(both));
    } else {
      return Times(minimums_[p], hn::PromoteTo(BlockI32(), Bytes(kFormat.groups() + group, p)));
    }
  }

 private:
  static constexpr size_t kHalves = (kFormat.has_minimum ? 2 : 1) * kTileOutputs;

  HWY_INLINE auto Bytes(size_t group, size_t p) const {
    return hn::LoadU(hn::Rebind<uint8_t, BlockF32>(),
                     bytes_ + group * kTileOutputs + p * kBlockLanes);
  }
  static HWY_INLINE VF32 Times(VF32 factor, VI32 integer) {
    return hn::Mul(factor, hn::ConvertTo(BlockF32(), integer));
  }

  const uint8_t* bytes_;
  VF32 scales_[kBlockParts];
  VF32 minimums_[kBlockParts];
};

// The rows of a product from an input on.
struct RowsFrom {
  const int8_t* values;
  const float* scales;  // Of steps.
  const float* sums;    // Of groups.
  size_t stride;        // In bytes.

  HWY_INLINE float Scale(size_t r, size_t step) const { return scales[r * stride / 4 + step]; }
  HWY_INLINE float Sum(size_t r, size_t group) const { return sums[r * stride / 4 + group]; }
};

// Products of rows and codes that Codes::Load reads, in groups of kGroupInputs inputs. If
// kSubtracts, there is something to subtract for each activation.
template <class Codes, size_t kGroupInputs, bool kSubtracts>
struct GroupProducts {
  using Dots = BlockDots<Codes>;
  static constexpr size_t kStepGroups = kStepInputs / kGroupInputs;
  static constexpr size_t kGroupLines = kStepLines / kStepGroups;
  // Lines whose sums are widened together.
  static constexpr size_t kRunLines = std::min(kGroupLines, std::min<size_t>(Dots::kMaxLines, 8));
  static_assert(kGroupLines % kRunLines == 0);

  static HWY_INLINE RowsFrom Rows(const TileProduct& product, size_t r, size_t input) {
    const size_t step = input / kStepInputs;
    return {.values = product.Row(r) + input,
            .scales = product.Scales(r) + step,
            .sums = kStepGroups == 1 ? product.Sums(r) + step : product.HalfSums(r) + 2 * step,
            .stride = product.rows.stride};
  }

  // The exact dot products of a group's codes, `kFirstLine` being its first line.
  template <size_t kFirstLine, size_t kRows, size_t kParts>
  static HWY_INLINE void DotGroup(const uint8_t* codes, const int8_t* values, size_t stride,
                                  VI32 (&dots)[kRows][kParts]) {
    typename Dots::Total totals[kRows][kParts];
    ForEachConstant<kGroupLines / kRunLines>([&]<size_t kRun>() CRIA_OPS_INLINE_LAMBDA {
      typename Dots::Sum sums[kRows][kParts];
      ForEachConstant<kRunLines>([&]<size_t kIndex>() CRIA_OPS_INLINE_LAMBDA {
        constexpr size_t kLine = kFirstLine + kRun * kRunLines + kIndex;
        HWY_UNROLL(4)
        for (size_t p = 0; p < kParts; ++p) {
          const auto weights = Codes::template Load<kLine>(codes + p * hn::MaxLanes(BlockU8()));
          HWY_UNROLL(8)
          for (size_t r = 0; r < kRows; ++r) {
            if constexpr (kIndex == 0) {
              sums[r][p] = Dots::template First<kLine>(weights, values + r * stride);
            } else {
              Dots::template Add<kLine>(weights, values + r * stride, sums[r][p]);
            }
          }
        }
      });
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t p = 0; p < kParts; ++p) {
          if constexpr (kRun == 0) {
            totals[r][p] = Dots::Begin(sums[r][p]);
          } else {
            Dots::AddTo(totals[r][p], sums[r][p]);
          }
        }
      }
    });
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t p = 0; p < kParts; ++p) dots[r][p] = Dots::Result(totals[r][p]);
    }
  }

  // Adds the products of a step to the rows' sums. `factors_of(group, p)` returns the Factors of
  // a part's group of the step.
  template <size_t kRows, size_t kParts, class FactorsOf>
  static HWY_INLINE void AddStep(const uint8_t* codes, const RowsFrom& rows, size_t step,
                                 const FactorsOf& factors_of, VF32 (&sums)[kRows][kParts]) {
    ForEachConstant<kStepGroups>([&]<size_t kGroup>() CRIA_OPS_INLINE_LAMBDA {
      VI32 dots[kRows][kParts];
      DotGroup<kGroup * kGroupLines>(codes, rows.values + step * kStepInputs, rows.stride, dots);
      HWY_UNROLL(4)
      for (size_t p = 0; p < kParts; ++p) {
        const auto [scale, minimum] = factors_of(kGroup, p);
        HWY_UNROLL(8)
        for (size_t r = 0; r < kRows; ++r) {
          const auto row_scale = hn::Set(BlockF32(), rows.Scale(r, step));
          const auto products = hn::ConvertTo(BlockF32(), dots[r][p]);
          sums[r][p] = hn::MulAdd(products, hn::Mul(scale, row_scale), sums[r][p]);
          if constexpr (kSubtracts) {
            const auto row_sum = hn::Set(BlockF32(), rows.Sum(r, step * kStepGroups + kGroup));
            sums[r][p] = hn::NegMulAdd(minimum, row_sum, sums[r][p]);
          }
        }
      }
    });
  }
};

// Up to kMaxBlockInputs inputs of a tile, with codes of any number of bits as bytes.
struct Span {
  static constexpr size_t kSteps = kMaxBlockInputs / kStepInputs;
  alignas(64) uint8_t codes[kSteps][kStepLines * BlockTiles::kLineBytes];
  alignas(64) float scales[kMaxBlockGroups][kTileOutputs];
  alignas(64) float minimums[kMaxBlockGroups][kTileOutputs];
};

// The product of many rows and a span. Formats whose sums can grow alike share it.
template <class Codes, size_t kGroupInputs, bool kSubtracts>
struct SpanProduct {
  using Products = GroupProducts<Codes, kGroupInputs, kSubtracts>;
  static constexpr size_t kStepGroups = Products::kStepGroups;

  // Adds the products of kRows rows to their sums.
  template <size_t kRows>
  static HWY_NOINLINE void AddRows(const Span& span, size_t steps, const RowsFrom& rows,
                                   float (*sums)[kTileOutputs]) {
    constexpr size_t kParts = kTogether.parts;
    const BlockF32 d;
    for (size_t output = 0; output < kTileOutputs; output += kParts * kBlockLanes) {
      VF32 row_sums[kRows][kParts];
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t p = 0; p < kParts; ++p) {
          row_sums[r][p] = hn::Load(d, sums[r] + output + p * kBlockLanes);
        }
      }
      for (size_t step = 0; step < steps; ++step) {
        const auto factors = [&](size_t group, size_t p) CRIA_OPS_INLINE_LAMBDA {
          const size_t index = step * kStepGroups + group;
          const size_t first = output + p * kBlockLanes;
          return Factors{hn::Load(d, span.scales[index] + first),
                         hn::Load(d, span.minimums[index] + first)};
        };
        Products::AddStep(span.codes[step] + 4 * output, rows, step, factors, row_sums);
      }
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t p = 0; p < kParts; ++p) {
          hn::Store(row_sums[r][p], d, sums[r] + output + p * kBlockLanes);
        }
      }
    }
  }

  // Adds the products of all rows, from `input` on.
  static void Add(const TileProduct& product, const Span& span, size_t input, size_t steps,
                  float (*sums)[kTileOutputs]) {
    const size_t num_rows = product.rows.num_rows;
    size_t r = 0;
    for (; num_rows - r >= kTogether.rows; r += kTogether.rows) {
      AddRows<kTogether.rows>(span, steps, Products::Rows(product, r, input), sums + r);
    }
    ForEachConstant<kTogether.rows - 1>([&]<size_t kIndex>() CRIA_OPS_INLINE_LAMBDA {
      if (num_rows - r != kIndex + 1) return;
      AddRows<kIndex + 1>(span, steps, Products::Rows(product, r, input), sums + r);
    });
  }
};

HWY_INLINE void StoreResults(const TileProduct& product, size_t r, size_t p, VF32 sums) {
  const size_t first = p * kBlockLanes;
  if (first >= product.num_outputs) return;
  const auto results = hn::Mul(sums, hn::Set(BlockF32(), product.tiles.factor));
  hn::StoreN(results, BlockF32(), product.output + r * product.output_stride + first,
             std::min(kBlockLanes, product.num_outputs - first));
}

// Products of rows and the tiles of a format.
template <const BlockFormat& kFormat>
struct BlockProduct {
  using Codes = BlockCodes<kFormat.code_bits, kFormat.has_codebook>;
  static constexpr int kSubtracted = kFormat.zero_point + BlockDots<Codes>::kBias;
  static constexpr bool kSubtracts = kFormat.has_minimum || kSubtracted != 0;
  using OneRow = GroupProducts<Codes, kFormat.group_inputs, kSubtracts>;
  // If sums have 32 bits anyway, the size of codes does not matter.
  static constexpr int kLargest = BlockDots<Codes>::kMaxLines >= 8 ? 15 : Codes::kLargest;
  using Bytes = UnpackedCodes<Codes::kIsSigned, kLargest>;
  using ManyRows = SpanProduct<Bytes, kFormat.group_inputs, kSubtracts>;
  using Stored = BlockFactors<kFormat, kSubtracted>;
  static constexpr size_t kBlockBytes = BlockTiles::BlockBytes(kFormat);
  static constexpr size_t kBlockSteps = kFormat.inputs / kStepInputs;
  static constexpr size_t kStepGroups = OneRow::kStepGroups;

  static HWY_INLINE const uint8_t* CodesOf(const std::byte* block, size_t step) {
    return reinterpret_cast<const uint8_t*>(block) + BlockTiles::CodesOffset(kFormat) +
           step * BlockTiles::StepBytes(kFormat);
  }

  // Prefetches what a step reads a few kilobytes later: beyond the next page boundary, where the
  // processor's own prefetching ends.
  static HWY_INLINE void PrefetchFrom(const std::byte* block, size_t step) {
    constexpr size_t kDistance = 3072;
    constexpr size_t kStepBytes = kBlockBytes / kBlockSteps;
    const std::byte* const later = block + kDistance + step * kStepBytes;
    HWY_UNROLL(8)
    for (size_t i = 0; i < kStepBytes; i += 64) hwy::Prefetch(later + i);
  }

  static HWY_INLINE void MultiplyRow(const TileProduct& product) {
    const RowsFrom rows = OneRow::Rows(product, 0, 0);
    const std::byte* block = product.tile;
    const size_t blocks = product.tiles.input_channels / kFormat.inputs;
    VF32 sums[1][kBlockParts];
    HWY_UNROLL(4)
    for (auto& sum : sums[0]) sum = hn::Zero(BlockF32());
    for (size_t b = 0; b < blocks; ++b, block += kBlockBytes) {
      const Stored stored(block);
      for (size_t step = 0; step < kBlockSteps; ++step) {
        PrefetchFrom(block, step);
        const auto factors = [&](size_t group, size_t p) CRIA_OPS_INLINE_LAMBDA {
          const size_t index = step * kStepGroups + group;
          const VF32 scale = stored.Scale(index, p);
          return Factors{scale, stored.Minimum(index, p, scale)};
        };
        OneRow::AddStep(CodesOf(block, step), rows, b * kBlockSteps + step, factors, sums);
      }
    }
    HWY_UNROLL(4)
    for (size_t p = 0; p < kBlockParts; ++p) StoreResults(product, 0, p, sums[0][p]);
  }

  // Writes a block to a span, from step `first` on.
  static HWY_INLINE void Unpack(const std::byte* block, size_t first, Span& span) {
    const Stored stored(block);
    for (size_t group = 0; group < kFormat.groups(); ++group) {
      const size_t index = first * kStepGroups + group;
      for (size_t p = 0; p < kBlockParts; ++p) {
        const VF32 scale = stored.Scale(group, p);
        hn::Store(scale, BlockF32(), span.scales[index] + p * kBlockLanes);
        hn::Store(stored.Minimum(group, p, scale), BlockF32(),
                  span.minimums[index] + p * kBlockLanes);
      }
    }
    for (size_t step = 0; step < kBlockSteps; ++step) {
      PrefetchFrom(block, step);
      ForEachConstant<kStepLines>([&]<size_t kLine>() CRIA_OPS_INLINE_LAMBDA {
        for (size_t p = 0; p < kBlockParts; ++p) {
          const size_t offset = p * hn::MaxLanes(BlockU8());
          hn::Store(Codes::template Load<kLine>(CodesOf(block, step) + offset), BlockU8(),
                    span.codes[first + step] + kLine * BlockTiles::kLineBytes + offset);
        }
      });
    }
  }

  static HWY_NOINLINE void MultiplyManyRows(const TileProduct& product) {
    const size_t num_rows = product.rows.num_rows;
    alignas(64) float sums[kMaxRows][kTileOutputs];
    std::fill_n(sums[0], num_rows * kTileOutputs, 0.0f);
    Span span;
    const std::byte* block = product.tile;
    for (size_t input = 0; input < product.tiles.input_channels;) {
      const size_t steps_left = (product.tiles.input_channels - input) / kStepInputs;
      const size_t steps = std::min(Span::kSteps, steps_left);
      for (size_t step = 0; step < steps; step += kBlockSteps, block += kBlockBytes) {
        Unpack(block, step, span);
      }
      ManyRows::Add(product, span, input, steps, sums);
      input += steps * kStepInputs;
    }
    for (size_t r = 0; r < num_rows; ++r) {
      for (size_t p = 0; p < kBlockParts; ++p) {
        StoreResults(product, r, p, hn::Load(BlockF32(), sums[r] + p * kBlockLanes));
      }
    }
  }

  static void Multiply(const TileProduct& product) {
    if constexpr (kTogether.rows > 1) {
      if (product.rows.num_rows == 1) return MultiplyRow(product);
    }
    MultiplyManyRows(product);
  }

  static constexpr TileKernel kKernel = {
      .tile_outputs = kTileOutputs, .group_inputs = 4, .max_rows = kMaxRows, .multiply = Multiply};
};

const TileKernel* BlockKernel(size_t format) {
  static constexpr auto kKernels = []<size_t... kFormats>(std::index_sequence<kFormats...>) {
    return std::array{&BlockProduct<kBlockFormats[kFormats]>::kKernel...};
  }(std::make_index_sequence<kBlockFormats.size()>());
  return kKernels[format];
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

CRIA_OPS_EXPORT(BlockKernel);

const TileKernel* FindBlockKernel(const BlockFormat& format) {
  return CRIA_OPS_DISPATCH(true, BlockKernel)(static_cast<size_t>(&format - kBlockFormats.data()));
}

}  // namespace cria::ops
#endif  // HWY_ONCE
