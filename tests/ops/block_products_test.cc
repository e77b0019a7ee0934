#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "ops/products/tile_kernel.h"
#include "ops/products/tiled_product.h"
#include "ops/quantized_blocks.h"
#include "weights/block_format.h"
#include "weights/block_numbers.h"
#include "weights/block_tiles.h"
#include "weights/random_blocks.h"

namespace cria::ops {
namespace {

// Rows of quantized activations.
class Activations {
 public:
  // All values of a block are equal and as large as int8 allows if `is_extreme`.
  Activations(size_t rows, size_t inputs, bool is_extreme, unsigned seed)
      : inputs_(inputs),
        stride_(QuantizedBlocks::Bytes(inputs) + 12),
        bytes_(rows * stride_ + 16),
        rows_(rows) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> row(inputs);
    for (size_t r = 0; r < rows; ++r) {
      for (float& value : row) value = is_extreme ? (r % 2 == 0 ? 1.0f : -1.0f) : normal(random);
      QuantizeBlocks(row.data(), inputs, inputs, {0, QuantizedBlocks::Blocks(inputs)},
                     bytes_.data() + r * stride_);
    }
  }

  QuantizedMatrix matrix() const { return {bytes_.data(), stride_, rows_}; }
  QuantizedMatrix row(size_t r) const { return {bytes_.data() + r * stride_, stride_, 1}; }
  double value(size_t r, size_t i) const {
    const int8_t* const row = bytes_.data() + r * stride_;
    return static_cast<double>(row[i]) *
           static_cast<double>(QuantizedBlocks::Scales(row, inputs_)[i / kActivationBlock]);
  }

 private:
  size_t inputs_;
  size_t stride_;
  std::vector<int8_t> bytes_;
  size_t rows_;
};

struct Matrix {
  const BlockFormat& format;
  size_t outputs;
  size_t inputs;
  std::mt19937 random;
  std::vector<std::byte> stored;
  std::vector<std::byte> tiles;
  std::vector<float> weights;

  Matrix(const BlockFormat& block_format, size_t num_outputs, size_t num_inputs, unsigned seed)
      : format(block_format),
        outputs(num_outputs),
        inputs(num_inputs),
        random(seed),
        stored(support::RandomBlocks(format, outputs * inputs / format.inputs, random)) {
    Pack();
  }

  void Pack() {
    tiles.assign(TiledBytes(format, outputs, inputs), std::byte{0});
    PackTiles(format, stored.data(), outputs, inputs, tiles);
    weights.resize(outputs * inputs);
    DequantizeBlocks(format, stored.data(), weights);
  }

  std::vector<float> Multiply(const QuantizedMatrix& rows, float factor = 1.0f) const {
    const TileKernel* const kernel = FindBlockKernel(format);
    const PackedTiles layout = TilesOf(format, inputs, factor);
    std::vector<float> output(rows.num_rows * outputs, NAN);
    const auto pool = ThreadPool::Create(1);
    MultiplyTiled(*kernel, layout, tiles.data(), outputs, rows, {output.data(), outputs}, *pool);
    return output;
  }
};

void ExpectProduct(const Matrix& matrix, const Activations& rows, std::span<const float> output,
                   double factor = 1.0) {
  for (size_t r = 0; r < rows.matrix().num_rows; ++r) {
    for (size_t o = 0; o < matrix.outputs; ++o) {
      double sum = 0.0;
      double magnitude = 0.0;
      for (size_t i = 0; i < matrix.inputs; ++i) {
        const double product =
            static_cast<double>(matrix.weights[o * matrix.inputs + i]) * rows.value(r, i);
        sum += product;
        magnitude += std::abs(product);
      }
      const float result = output[r * matrix.outputs + o];
      // A NaN is not less.
      ASSERT_TRUE(std::abs(result - sum * factor) <= 2e-5 * magnitude * factor)
          << matrix.format.name << " row " << r << " output " << o << ": " << result << " and "
          << sum * factor;
    }
  }
}

TEST(BlockProductsTest, MatchesSumsInDoubles) {
  for (const BlockFormat& format : kBlockFormats) {
    for (const size_t outputs : {size_t{16}, size_t{7}, size_t{41}}) {
      for (const size_t blocks : {1, 3}) {
        const Matrix matrix(format, outputs, blocks * format.inputs, 7);
        for (const size_t num_rows : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13}) {
          const Activations rows(num_rows, matrix.inputs, false, 11);
          ExpectProduct(matrix, rows, matrix.Multiply(rows.matrix()));
        }
      }
    }
  }
}

TEST(BlockProductsTest, MoreRowsThanAKernelTakesAreSplit) {
  const Matrix matrix(*FindBlockFormat(Scheme::kQ5_0), 16, 64, 7);
  const Activations rows(300, matrix.inputs, false, 11);
  ExpectProduct(matrix, rows, matrix.Multiply(rows.matrix()));
}

TEST(BlockProductsTest, TheLargestCodesDoNotOverflow) {
  for (const BlockFormat& format : kBlockFormats) {
    // Bytes of ones are the largest codes, and those of 8 bits are then -1; so 0x80 as well.
    for (const unsigned byte : {0xffu, 0x80u, 0x7fu}) {
      Matrix matrix(format, 16, format.inputs, 7);
      std::ranges::fill(matrix.stored, static_cast<std::byte>(byte));
      support::SetScales(format, matrix.random, support::ModerateHalf, matrix.stored);
      matrix.Pack();
      const Activations rows(4, matrix.inputs, true, 11);
      ExpectProduct(matrix, rows, matrix.Multiply(rows.matrix()));
    }
  }
}

TEST(BlockProductsTest, MultipliesResultsByTheFactor) {
  const Matrix matrix(*FindBlockFormat(Scheme::kQ4K), 20, 512, 7);
  const Activations rows(3, matrix.inputs, false, 11);
  ExpectProduct(matrix, rows, matrix.Multiply(rows.matrix(), 25.25f), 25.25);
}

TEST(BlockProductsTest, ARowIsTheSameBesideOthers) {
  for (const BlockFormat& format : kBlockFormats) {
    const Matrix matrix(format, 24, 2 * format.inputs, 7);
    // The kernels multiply six rows, or fewer, together.
    const Activations all(11, matrix.inputs, false, 11);
    const std::vector<float> together = matrix.Multiply(all.matrix());
    for (size_t r = 0; r < 11; ++r) {
      const std::vector<float> alone = matrix.Multiply(all.row(r));
      EXPECT_TRUE(std::ranges::equal(
          alone, std::span(together).subspan(r * matrix.outputs, matrix.outputs)))
          << format.name << ", row " << r;
    }
  }
}

}  // namespace
}  // namespace cria::ops
