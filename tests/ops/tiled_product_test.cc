#include "ops/products/tiled_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "core/numeric.h"
#include "core/platform.h"
#include "ops/evex_dot_products.h"
#include "ops/simd_target_name.h"
#include "support/emulation.h"

namespace cria::ops {
namespace {

struct Shape {
  size_t outputs;
  size_t inputs;
  size_t block_size;  // 0 for int8.
  // Chooses the kernel, if it is not to be the one for this processor.
  const TileKernel* (*find_kernel)() = nullptr;

  bool is_int8() const { return block_size == 0; }
  int min_weight() const { return is_int8() ? -128 : -8; }
  int max_weight() const { return is_int8() ? 127 : 7; }
};

// Random weights with a scale a block or output, and the same in tiles, byte by byte as the layout
// is described.
class TiledWeights {
 public:
  TiledWeights(const TileKernel& kernel, const Shape& shape, unsigned seed)
      : shape_(shape), tiles_(TilesOf(kernel, shape.inputs, shape.block_size)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(0.01f, 0.2f);
    weights_.resize(shape.outputs * shape.inputs);
    std::uniform_int_distribution<int> codes(shape.min_weight(), shape.max_weight());
    for (int& weight : weights_) weight = codes(random);
    scales_.resize(shape.outputs * shape.inputs / scale_inputs());
    for (float& scale : scales_) scale = Bf16ToFloat(FloatToBf16(uniform(random)));
    Pack();
  }

  void SetAll(int weight) {
    std::ranges::fill(weights_, weight);
    Pack();
  }

  const Shape& shape() const { return shape_; }
  const PackedTiles& tiles() const { return tiles_; }
  const std::byte* packed() const { return packed_.data(); }
  int weight(size_t output, size_t input) const { return weights_[output * shape_.inputs + input]; }
  double scale(size_t output, size_t input) const {
    return scales_[(output * shape_.inputs + input) / scale_inputs()];
  }

 private:
  size_t scale_inputs() const { return shape_.is_int8() ? shape_.inputs : shape_.block_size; }

  template <typename T>
  void Write(size_t offset, T value) {
    std::memcpy(&packed_[offset], &value, sizeof value);
  }

  void Pack() {
    const size_t num_tiles = DivideRoundingUp(shape_.outputs, tiles_.outputs);
    packed_.assign(num_tiles * tiles_.tile_bytes(), std::byte{0});
    for (size_t output = 0; output < shape_.outputs; ++output) {
      const size_t tile = output / tiles_.outputs * tiles_.tile_bytes();
      const size_t column = output % tiles_.outputs;
      shape_.is_int8() ? PackInt8(tile, output, column) : PackInt4(tile, output, column);
    }
  }

  void PackInt4(size_t tile, size_t output, size_t column) {
    const size_t k = tiles_.group_inputs;
    double sum = 0.0;
    for (size_t input = 0; input < shape_.inputs; ++input) {
      const size_t block =
          tile + tiles_.blocks_offset() + input / shape_.block_size * tiles_.block_bytes();
      const size_t pair = input % shape_.block_size / (2 * k);
      const auto nibble = static_cast<unsigned>(weight(output, input)) & 15u;
      packed_[block + (pair * tiles_.outputs + column) * k + input % k] |=
          static_cast<std::byte>(nibble << (input % (2 * k) < k ? 0 : 4));
      Write(block + tiles_.scales_offset() + column * sizeof(uint16_t),
            FloatToBf16(static_cast<float>(scale(output, input) / 16)));
      sum += scale(output, input) * weight(output, input);
    }
    Write(tile + column * sizeof(float), static_cast<float>(-sum));
  }

  void PackInt8(size_t tile, size_t output, size_t column) {
    const size_t k = tiles_.group_inputs;
    const size_t weights = tile + tiles_.blocks_offset();
    int32_t sum = 0;
    for (size_t input = 0; input < shape_.inputs; ++input) {
      packed_[weights + (input / k * tiles_.outputs + column) * k + input % k] =
          static_cast<std::byte>(weight(output, input));
      sum += weight(output, input);
    }
    Write(tile + column * sizeof(int32_t), -sum);
    Write(weights + tiles_.int8_bytes() + column * sizeof(float),
          static_cast<float>(scale(output, 0)));
  }

  Shape shape_;
  PackedTiles tiles_;
  std::vector<int> weights_;
  std::vector<float> scales_;
  std::vector<std::byte> packed_;
};

// Rows whose stride is larger than it must be.
class Rows {
 public:
  Rows(size_t num_rows, size_t inputs, unsigned seed)
      : inputs_(inputs),
        num_rows_(num_rows),
        stride_(QuantizedBlocks::Bytes(inputs) + 24),
        bytes_(num_rows * stride_) {
    std::mt19937 random(seed);
    for (int8_t& byte : bytes_) byte = static_cast<int8_t>(random());
    for (size_t r = 0; r < num_rows; ++r) {
      int8_t* const row = bytes_.data() + r * stride_;
      std::fill(row + inputs, row + Blocks() * kActivationBlock, int8_t{0});
      for (size_t i = 0; i < inputs; ++i) {
        row[i] = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
      }
      for (size_t b = 0; b < Blocks(); ++b) {
        SetScale(r, b, 0.001f * static_cast<float>(random() % 100 + 1));
      }
      SetOffsets(r);
    }
  }

  void SetAll(int8_t value) {
    for (size_t r = 0; r < num_rows_; ++r) {
      std::fill_n(bytes_.begin() + static_cast<ptrdiff_t>(r * stride_), inputs_, value);
      SetOffsets(r);
    }
  }
  void SetScale(size_t r, size_t block, float scale) {
    const_cast<float*>(QuantizedBlocks::Scales(Row(r), inputs_))[block] = scale;
  }
  QuantizedMatrix First(size_t num_rows) const { return {bytes_.data(), stride_, num_rows}; }

  // Row r × weightsᵀ's output o, and what its rounding errors are in proportion to.
  struct Exact {
    double value;
    double magnitude;
  };
  Exact Product(const TiledWeights& weights, size_t r, size_t output) const {
    const float* const scales = QuantizedBlocks::Scales(Row(r), inputs_);
    Exact exact = {};
    for (size_t i = 0; i < inputs_; ++i) {
      const double scale = double{scales[i / kActivationBlock]} * weights.scale(output, i);
      exact.value += scale * weights.weight(output, i) * Row(r)[i];
      exact.magnitude += scale * std::abs(weights.weight(output, i)) * 127;
    }
    return exact;
  }

 private:
  size_t Blocks() const { return QuantizedBlocks::Blocks(inputs_); }
  const int8_t* Row(size_t r) const { return bytes_.data() + r * stride_; }

  void SetOffsets(size_t r) {
    auto* const offsets = const_cast<int32_t*>(QuantizedBlocks::Offsets(Row(r), inputs_));
    for (size_t b = 0; b < Blocks(); ++b) {
      const int8_t* const block = Row(r) + b * kActivationBlock;
      offsets[b] = BlockOffset(std::accumulate(block, block + kActivationBlock, 0));
    }
  }

  size_t inputs_;
  size_t num_rows_;
  size_t stride_;
  std::vector<int8_t> bytes_;
};

class TiledProductTest : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (kernel_ == nullptr) GTEST_SKIP() << "there is no kernel for " << SimdTargetName();
  }

  TiledWeights Weights(unsigned seed) const { return {*kernel_, GetParam(), seed}; }

  std::vector<float> Multiply(const TiledWeights& weights, const QuantizedMatrix& rows,
                              size_t num_threads) const {
    std::vector<float> output(rows.num_rows * weights.shape().outputs);
    MultiplyTiled(*kernel_, weights.tiles(), weights.packed(), weights.shape().outputs, rows,
                  {output.data(), weights.shape().outputs}, *ThreadPool::Create(num_threads));
    return output;
  }

  // The products of the first `num_rows` rows with every output, in double.
  static std::vector<Rows::Exact> Products(const TiledWeights& weights, const Rows& rows,
                                           size_t num_rows) {
    std::vector<Rows::Exact> products;
    for (size_t r = 0; r < num_rows; ++r) {
      for (size_t output = 0; output < weights.shape().outputs; ++output) {
        products.push_back(rows.Product(weights, r, output));
      }
    }
    return products;
  }

  // A result that is not a number is not near.
  static void ExpectNear(std::span<const float> actual, std::span<const Rows::Exact> products,
                         double tolerance = 3e-7) {
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_NEAR(actual[i], products[i].value, tolerance * products[i].magnitude)
          << "row " << i / GetParam().outputs << " output " << i % GetParam().outputs;
    }
  }

 private:
  static const TileKernel* FindKernel() {
    if (GetParam().find_kernel != nullptr) return GetParam().find_kernel();
    return GetParam().is_int8() ? FindQc8wKernel() : FindQb4wKernel();
  }

  const TileKernel* kernel_ = FindKernel();
};

TEST(FindQb4wKernelTest, ThereIsOneForEachTargetOfX86ButTheBaselineAndForArmOf64Bits) {
#ifdef __arm__
  EXPECT_EQ(FindQb4wKernel(), nullptr);
#else
  const std::string_view target = SimdTargetName();
  EXPECT_EQ(FindQb4wKernel() != nullptr,
            target == "AVX2" || target == "AVX3_DL" || target.starts_with("NEON"));
#endif
}

TEST(FindQc8wKernelTest, ThereIsOneForTheSameOfX86AndForDotProductsOfArm) {
  const std::string_view target = SimdTargetName();
  EXPECT_EQ(FindQc8wKernel() != nullptr,
            target == "AVX2" || target == "AVX3_DL" || platform::HasArmDotProducts());
}

constexpr size_t kManyRows = 131;

// So many that each is alone or beside others in every way: kernels for Arm have at most 8 rows.
std::vector<size_t> RowCounts() {
  if (support::IsEmulated()) return {1, 2, 3, 4, 5, 6, 7, 8, 13, 33};
  std::vector<size_t> counts(33);
  std::iota(counts.begin(), counts.end(), size_t{1});
  counts.push_back(kManyRows);
  return counts;
}

TEST_P(TiledProductTest, IsTheSumOfProductsForAnyNumberOfRows) {
  const TiledWeights weights = Weights(1);
  Rows rows(kManyRows, GetParam().inputs, 2);
  const std::vector<Rows::Exact> products = Products(weights, rows, kManyRows);
  for (const size_t num_rows : RowCounts()) {
    SCOPED_TRACE(num_rows);
    ExpectNear(Multiply(weights, rows.First(num_rows), 2), products);
    if (HasFatalFailure()) return;
  }
}

TEST_P(TiledProductTest, IsBitwiseTheSameBesideOtherRowsAndOnOtherThreads) {
  const TiledWeights weights = Weights(3);
  Rows rows(kManyRows, GetParam().inputs, 4);
  const std::vector<float> all = Multiply(weights, rows.First(kManyRows), 1);
  for (const size_t num_rows : RowCounts()) {
    for (const size_t num_threads : {1, 2, 3}) {
      const std::vector<float> some = Multiply(weights, rows.First(num_rows), num_threads);
      ASSERT_TRUE(std::ranges::equal(some, std::span(all).first(some.size())))
          << num_rows << " rows, " << num_threads << " threads";
    }
  }
}

TEST_P(TiledProductTest, ARowThatIsNoNumberLeavesTheOthersAlone) {
  const TiledWeights weights = Weights(9);
  Rows rows(3, GetParam().inputs, 10);
  const std::vector<float> before = Multiply(weights, rows.First(3), 1);
  rows.SetScale(1, 0, std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> after = Multiply(weights, rows.First(3), 1);
  const size_t outputs = GetParam().outputs;
  for (size_t i = 0; i < after.size(); ++i) {
    if (i / outputs == 1) {
      ASSERT_TRUE(std::isnan(after[i])) << "output " << i % outputs;
    } else {
      ASSERT_EQ(after[i], before[i]) << "row " << i / outputs << " output " << i % outputs;
    }
  }
}

TEST_P(TiledProductTest, TheLargestNumbersDoNotOverflow) {
  TiledWeights weights = Weights(7);
  Rows rows(5, GetParam().inputs, 8);
  for (const int weight : {GetParam().min_weight(), GetParam().max_weight()}) {
    weights.SetAll(weight);
    for (const int value : {-127, 127}) {
      rows.SetAll(static_cast<int8_t>(value));
      const std::vector<Rows::Exact> products = Products(weights, rows, 5);
      for (const size_t num_rows : {1, 5}) {
        SCOPED_TRACE(Format("{} times {}, {} rows", weight, value, num_rows));
        // Sums of equal numbers round in one direction.
        ExpectNear(Multiply(weights, rows.First(num_rows), 1), products, 1e-5);
        if (HasFatalFailure()) return;
      }
    }
  }
}

std::string ShapeName(const testing::TestParamInfo<Shape>& shape) {
  return Format("{}x{}_blocks_{}", shape.param.outputs, shape.param.inputs, shape.param.block_size);
}

INSTANTIATE_TEST_SUITE_P(Shapes, TiledProductTest,
                         testing::Values(Shape{1, 32, 32}, Shape{8, 64, 32}, Shape{12, 192, 64},
                                         Shape{17, 512, 256}, Shape{40, 1024, 32},
                                         Shape{100, 1088, 32}, Shape{30, 2176, 128}, Shape{1, 1, 0},
                                         Shape{33, 17, 0}, Shape{16, 64, 0}, Shape{100, 1090, 0},
                                         Shape{30, 2176, 0}),
                         ShapeName);

#if defined(__x86_64__)
INSTANTIATE_TEST_SUITE_P(AvxVnni, TiledProductTest,
                         testing::Values(Shape{12, 192, 64, Qb4wKernelForAvxVnni},
                                         Shape{100, 1088, 32, Qb4wKernelForAvxVnni},
                                         Shape{30, 2176, 128, Qb4wKernelForAvxVnni}),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(AvxVnniByEvex, TiledProductTest,
                         testing::Values(Shape{1, 32, 32, Qb4wKernelWithEvexDotProducts},
                                         Shape{12, 192, 64, Qb4wKernelWithEvexDotProducts},
                                         Shape{17, 512, 256, Qb4wKernelWithEvexDotProducts},
                                         Shape{100, 1088, 32, Qb4wKernelWithEvexDotProducts},
                                         Shape{30, 2176, 128, Qb4wKernelWithEvexDotProducts}),
                         ShapeName);

TEST(AvxVnniTest, GivesWhatAvx2Gives) {
  const TileKernel* const avx2 = Qb4wKernelForAvx2();
  const TileKernel* const vnni = Qb4wKernelWithEvexDotProducts();
  if (avx2 == nullptr || vnni == nullptr) GTEST_SKIP() << "this processor cannot run both kernels";
  const TiledWeights weights(*avx2, {40, 1024, 64}, 1);
  Rows rows(kManyRows, 1024, 2);
  const Result<ThreadPool> pool = ThreadPool::Create(1);
  std::vector<float> of_avx2(kManyRows * 40), of_vnni(kManyRows * 40);
  MultiplyTiled(*avx2, weights.tiles(), weights.packed(), 40, rows.First(kManyRows),
                {of_avx2.data(), 40}, *pool);
  MultiplyTiled(*vnni, weights.tiles(), weights.packed(), 40, rows.First(kManyRows),
                {of_vnni.data(), 40}, *pool);
  EXPECT_EQ(of_vnni, of_avx2);
}
#elif defined(__aarch64__)
// Processors with dot products can run this one, too.
INSTANTIATE_TEST_SUITE_P(WithoutDotProducts, TiledProductTest,
                         testing::Values(Shape{1, 32, 32, Qb4wKernelForNeon},
                                         Shape{12, 192, 64, Qb4wKernelForNeon},
                                         Shape{17, 512, 256, Qb4wKernelForNeon},
                                         Shape{100, 1088, 32, Qb4wKernelForNeon},
                                         Shape{30, 2176, 128, Qb4wKernelForNeon}),
                         ShapeName);
#endif

}  // namespace
}  // namespace cria::ops
