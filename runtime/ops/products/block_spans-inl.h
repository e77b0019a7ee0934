// Products of int8 rows with a step of codes, and with many steps that were unpacked before,
// compiled once for each instruction set of dot_product_targets.h.

#if defined(CRIA_OPS_BLOCK_SPANS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_BLOCK_SPANS_INL_H_
#undef CRIA_OPS_BLOCK_SPANS_INL_H_
#else
#define CRIA_OPS_BLOCK_SPANS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/products/block_dots-inl.h"
#include "ops/products/tile_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

constexpr size_t kTileOutputs = BlockTiles::kOutputs;
constexpr size_t kStepInputs = BlockTiles::kStepInputs;
constexpr size_t kStepLines = 8;

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

// Few rows do not pay for writing a Span. Products of two to kMaxFewRows rows do without one, and
// multiply kFewRows rows at a time: the sums of so many, and those of a step, fit the registers. If
// kFewRows is 1, all products of several rows have a Span.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
constexpr size_t kFewRows = 4;
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
constexpr size_t kFewRows = 3;
#else
constexpr size_t kFewRows = 1;
#endif
constexpr size_t kMaxFewRows = 3 * kFewRows;

using VF32 = hn::Vec<BlockF32>;
using VI32 = hn::Vec<BlockI32>;

// What codes of a group are multiplied by, and what is then subtracted for each activation, for the
// outputs of a part.
struct Factors {
  VF32 scale;
  VF32 minimum;
};

// The rows of a product from an input on.
struct RowsFrom {
  const int8_t* values;
  const float* scales;     // The scales of steps.
  const float* sums;       // The sums of groups.
  const int32_t* offsets;  // The offsets of steps: BlockOffset.
  size_t stride;           // In bytes.

  HWY_INLINE const int8_t* Values(size_t r, size_t step) const {
    return values + r * stride + step * kStepInputs;
  }
  HWY_INLINE float Scale(size_t r, size_t step) const { return scales[r * stride / 4 + step]; }
  HWY_INLINE float Sum(size_t r, size_t group) const { return sums[r * stride / 4 + group]; }
  HWY_INLINE int32_t Offset(size_t r, size_t step) const { return offsets[r * stride / 4 + step]; }
};

// kRows rows of a product, from their first input on. If the product has fewer, its last row takes
// the place of the others.
template <size_t kRows>
class RowsAt {
 public:
  HWY_INLINE RowsAt(const TileProduct& product, bool has_half_sums) {
    const int8_t* const first = product.Row(0);
    const auto distance = [first](const void* numbers) {
      return static_cast<size_t>(static_cast<const int8_t*>(numbers) - first);
    };
    scales_ = distance(product.Scales(0));
    sums_ = distance(has_half_sums ? product.HalfSums(0) : product.Sums(0));
    for (size_t r = 0; r < kRows; ++r) {
      rows_[r] = product.Row(std::min(r, product.rows.num_rows - 1));
    }
  }

  HWY_INLINE const int8_t* Values(size_t r, size_t step) const {
    return rows_[r] + step * kStepInputs;
  }
  HWY_INLINE float Scale(size_t r, size_t step) const { return Number(r, scales_, step); }
  HWY_INLINE float Sum(size_t r, size_t group) const { return Number(r, sums_, group); }

 private:
  HWY_INLINE float Number(size_t r, size_t distance, size_t index) const {
    return reinterpret_cast<const float*>(rows_[r] + distance)[index];
  }

  const int8_t* rows_[kRows];
  // From a row's values to these numbers of it, in bytes.
  size_t scales_;
  size_t sums_;
};

// The sum of a row's activations in a group of kSteps steps; `rows` is a RowsFrom or a RowsAt.
template <size_t kSteps, class Rows>
HWY_INLINE float SumOfSteps(const Rows& rows, size_t r, size_t step) {
  float sum = rows.Sum(r, step);
  for (size_t i = 1; i < kSteps; ++i) sum += rows.Sum(r, step + i);
  return sum;
}

// Products of rows and codes that Codes::Load reads, in groups of kGroupInputs inputs: of a part of
// a step, or of whole steps. If kSubtracts, there is something to subtract for each activation.
template <class Codes, size_t kGroupInputs, bool kSubtracts>
struct GroupProducts {
  using Dots = BlockDots<Codes>;
  static constexpr size_t kStepGroups = std::max<size_t>(kStepInputs / kGroupInputs, 1);
  static constexpr size_t kGroupSteps = std::max<size_t>(kGroupInputs / kStepInputs, 1);
  static constexpr size_t kGroupLines = kStepLines / kStepGroups;
  // Lines whose sums are widened together.
  static constexpr size_t kRunLines = std::min(kGroupLines, std::min<size_t>(Dots::kMaxLines, 8));
  static_assert(kGroupLines % kRunLines == 0);

  static HWY_INLINE RowsFrom Rows(const TileProduct& product, size_t r, size_t input) {
    const size_t step = input / kStepInputs;
    return {.values = product.Row(r) + input,
            .scales = product.Scales(r) + step,
            .sums = kStepGroups == 1 ? product.Sums(r) + step : product.HalfSums(r) + 2 * step,
            .offsets = product.Offsets(r) + step,
            .stride = product.rows.stride};
  }

  // The exact dot products of a group's codes, from line kFirstLine on, and the rows' activations
  // of a step.
  template <size_t kFirstLine, class Rows, size_t kRows, size_t kParts>
  static HWY_INLINE void DotGroup(const uint8_t* codes, const Rows& rows, size_t step,
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
              sums[r][p] = Dots::template First<kLine>(weights, rows.Values(r, step));
            } else {
              Dots::template Add<kLine>(weights, rows.Values(r, step), sums[r][p]);
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

  // Adds the products of a step, or of the steps of a larger group, to the rows' sums; the codes of
  // consecutive steps are `step_bytes` apart. `factors_of(group, p)` returns the Factors of a
  // part's group of the step; `before_step(i)` is called before step i of a larger group, or 0.
  template <class Rows, size_t kRows, size_t kParts, class FactorsOf, class BeforeStep>
  static HWY_INLINE void AddGroups(const uint8_t* codes, size_t step_bytes, const Rows& rows,
                                   size_t step, const FactorsOf& factors_of,
                                   const BeforeStep& before_step, VF32 (&sums)[kRows][kParts]) {
    ForEachConstant<kStepGroups>([&]<size_t kGroup>() CRIA_OPS_INLINE_LAMBDA {
      size_t steps = kGroupSteps;
      // So that the loop is not unrolled for one row on Arm: GCC would load the codes of all steps
      // first, and have too few registers.
      if constexpr (kGroupSteps > 1 && kRows == 1 && HWY_ARCH_ARM) asm("" : "+r"(steps));
      for (size_t i = 0; i < steps; ++i) {
        if constexpr (kGroup == 0) before_step(i);
        VI32 dots[kRows][kParts];
        DotGroup<kGroup * kGroupLines>(codes + i * step_bytes, rows, step + i, dots);
        HWY_UNROLL(4)
        for (size_t p = 0; p < kParts; ++p) {
          const VF32 scale = factors_of(kGroup, p).scale;
          HWY_UNROLL(8)
          for (size_t r = 0; r < kRows; ++r) {
            const auto row_scale = hn::Set(BlockF32(), rows.Scale(r, step + i));
            const auto products = hn::ConvertTo(BlockF32(), dots[r][p]);
            sums[r][p] = hn::MulAdd(products, hn::Mul(scale, row_scale), sums[r][p]);
          }
        }
      }
      if constexpr (kSubtracts) {
        HWY_UNROLL(4)
        for (size_t p = 0; p < kParts; ++p) {
          const VF32 minimum = factors_of(kGroup, p).minimum;
          HWY_UNROLL(8)
          for (size_t r = 0; r < kRows; ++r) {
            const float row_sum = SumOfSteps<kGroupSteps>(rows, r, step * kStepGroups + kGroup);
            sums[r][p] = hn::NegMulAdd(minimum, hn::Set(BlockF32(), row_sum), sums[r][p]);
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
  static constexpr size_t kGroupSteps = Products::kGroupSteps;
  static constexpr uint8_t kCenter = 0;  // What a span's codes are less than the stored ones.

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
      for (size_t step = 0; step < steps; step += kGroupSteps) {
        const auto factors = [&](size_t group, size_t p) CRIA_OPS_INLINE_LAMBDA {
          const size_t index = step * kStepGroups + group;
          const size_t first = output + p * kBlockLanes;
          return Factors{hn::Load(d, span.scales[index] + first),
                         hn::Load(d, span.minimums[index] + first)};
        };
        Products::AddGroups(
            span.codes[step] + 4 * output, sizeof(span.codes[step]), rows, step, factors,
            [](size_t /*i*/) {}, row_sums);
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

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_BLOCK_SPANS_INL_H_
