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
#include "ops/products/block_spans_neon-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

template <typename Half>
HWY_INLINE VF32 LoadAs(const uint16_t* halves) {
  const hn::Rebind<Half, BlockF32> d;
  return hn::PromoteTo(BlockF32(), hn::LoadU(d, reinterpret_cast<const Half*>(halves)));
}

// Where there is no instruction for it, this is much code.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
HWY_NOINLINE
#else
HWY_INLINE
#endif
VF32 LoadF16(const uint16_t* halves) { return LoadAs<hwy::float16_t>(halves); }

// The factors of a stored block for kBlockParts parts of a tile. In a format without minimums, the
// scale times kSubtracted takes their place.
template <const BlockFormat& kFormat, int kSubtracted>
class BlockFactors {
 public:
  HWY_INLINE explicit BlockFactors(const std::byte* block)
      : bytes_(reinterpret_cast<const uint8_t*>(block) + kArrays * kArrayBytes) {
    const auto* scales = reinterpret_cast<const uint8_t*>(block);
    HWY_UNROLL(4)
    for (size_t p = 0; p < kBlockParts; ++p, scales += kBlockLanes * kFormat.scale_bytes()) {
      scales_[p] = Load(scales);
      if constexpr (kFormat.has_minimum) minimums_[p] = Load(scales + kArrayBytes);
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
  static constexpr size_t kArrays = kFormat.has_minimum ? 2 : 1;
  static constexpr size_t kArrayBytes = kTileOutputs * kFormat.scale_bytes();

  static HWY_INLINE VF32 Load(const uint8_t* scales) {
    if constexpr (kFormat.scale_type == BlockScaleType::kE8m0) {
      const auto exponents = hn::LoadU(hn::Rebind<uint8_t, BlockF32>(), scales);
      return hn::BitCast(BlockF32(), hn::ShiftLeft<23>(hn::PromoteTo(BlockI32(), exponents)));
    } else {
      const auto* const halves = reinterpret_cast<const uint16_t*>(scales);
      return kFormat.scale_type == BlockScaleType::kBf16 ? LoadAs<hwy::bfloat16_t>(halves)
                                                         : LoadF16(halves);
    }
  }
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
  using Codes = BlockCodes<kFormat.code_bits, kFormat.codebook>;
  static constexpr int kSubtracted = kFormat.zero_point + BlockDots<Codes>::kBias;
  static constexpr bool kSubtracts = kFormat.has_minimum || kSubtracted != 0;
  using FewRows = GroupProducts<Codes, kFormat.group_inputs, kSubtracts>;
  // If sums have 32 bits anyway, the size of codes does not matter.
  static constexpr int kLargest = BlockDots<Codes>::kMaxLines >= 8 ? 15 : Codes::kLargest;
  using Bytes = UnpackedCodes<Codes::kIsSigned, kLargest>;
  using ManyRows =
      ManyRowsProduct<kFormat, SpanProduct<Bytes, kFormat.group_inputs, kSubtracts>, kSubtracts>;
  using Stored = BlockFactors<kFormat, kSubtracted>;
  // Formats that most files have: few rows of them have code of their own, of up to 3 kB.
  static constexpr bool kIsCommon = kFormat.code_bits >= 4;
  static constexpr size_t kBlockBytes = BlockTiles::BlockBytes(kFormat);
  static constexpr size_t kBlockSteps = kFormat.inputs / kStepInputs;
  static constexpr size_t kStepGroups = FewRows::kStepGroups;
  static constexpr size_t kGroupSteps = FewRows::kGroupSteps;

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

  // Multiplies up to kRows rows without a span.
  template <size_t kRows>
  static HWY_INLINE void MultiplyFewRows(const TileProduct& product) {
    const RowsAt<kRows> rows(product, kStepGroups > 1);
    const std::byte* block = product.tile;
    const size_t blocks = product.tiles.input_channels / kFormat.inputs;
    VF32 sums[kRows][kBlockParts];
    HWY_UNROLL(8)
    for (auto& row : sums) {
      HWY_UNROLL(4)
      for (auto& sum : row) sum = hn::Zero(BlockF32());
    }
    for (size_t b = 0; b < blocks; ++b, block += kBlockBytes) {
      const Stored stored(block);
      for (size_t step = 0; step < kBlockSteps; step += kGroupSteps) {
        const auto factors = [&](size_t group, size_t p) CRIA_OPS_INLINE_LAMBDA {
          const size_t index = step * kStepGroups + group;
          const VF32 scale = stored.Scale(index, p);
          return Factors{scale, stored.Minimum(index, p, scale)};
        };
        const auto prefetch = [&](size_t i)
                                  CRIA_OPS_INLINE_LAMBDA { PrefetchFrom(block, step + i); };
        FewRows::AddGroups(CodesOf(block, step), BlockTiles::StepBytes(kFormat), rows,
                           b * kBlockSteps + step, factors, prefetch, sums);
      }
    }
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      if (r == product.rows.num_rows) break;
      HWY_UNROLL(4)
      for (size_t p = 0; p < kBlockParts; ++p) StoreResults(product, r, p, sums[r][p]);
    }
  }

  // Writes a block to a span, from step `first` on.
  static HWY_INLINE void Unpack(const std::byte* block, size_t first, Span& span) {
    const Stored stored(block);
    for (size_t group = 0; group < kBlockSteps * kStepGroups; ++group) {
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
          const auto codes = Codes::template Load<kLine>(CodesOf(block, step) + offset);
          hn::Store(hn::Sub(codes, hn::Set(BlockU8(), ManyRows::kCenter)), BlockU8(),
                    span.codes[first + step] + kLine * BlockTiles::kLineBytes + offset);
        }
      });
    }
  }

  static HWY_NOINLINE void MultiplyManyRows(const TileProduct& product) {
    const size_t num_rows = product.rows.num_rows;
#if defined(__aarch64__)
    PublishActivations();
#endif
    alignas(64) float sums[kMaxManyRows][kTileOutputs];
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

  // Multiplies the tile, which stays in the processor's cache, by kFewRows rows at a time.
  static HWY_NOINLINE void MultiplyFewRowsByGroups(const TileProduct& product) {
    TileProduct group = product;
    for (size_t r = 0; r < product.rows.num_rows; r += kFewRows) {
      group.rows.values = product.Row(r);
      group.rows.num_rows = std::min(kFewRows, product.rows.num_rows - r);
      group.output = product.output + r * product.output_stride;
      group.rows.num_rows == 1 ? MultiplyFewRows<1>(group) : MultiplyFewRows<kFewRows>(group);
    }
  }

  static void Multiply(const TileProduct& product) {
    if constexpr (kFewRows > 1 && kIsCommon) {
      if (product.rows.num_rows <= kMaxFewRows) return MultiplyFewRowsByGroups(product);
    } else if constexpr (kTogether.rows > 1) {
      if (product.rows.num_rows == 1) return MultiplyFewRows<1>(product);
    }
    MultiplyManyRows(product);
  }

  static constexpr TileKernel kKernel = {.tile_outputs = kTileOutputs,
                                         .group_inputs = 4,
                                         .max_rows = kMaxManyRows,
                                         .multiply = Multiply};
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
