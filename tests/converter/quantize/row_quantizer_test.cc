#include "converter/quantize/row_quantizer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "weights/block_reference.h"

namespace cria {
namespace {

TensorLayout LayoutOf(Scheme scheme, size_t input_channels, size_t block_size = 32) {
  return MakeTensorLayout({TensorRole::kOProj, 0, 1, input_channels}, scheme, block_size);
}

struct StoredRow {
  std::vector<std::byte> data;
  std::vector<std::byte> scales;
  QuantizationError error;
};

StoredRow Store(const TensorLayout& layout, std::vector<float> row) {
  row.resize(layout.padded_input_channels, 0.0f);
  StoredRow stored = {std::vector<std::byte>(layout.row_bytes()),
                      std::vector<std::byte>(layout.row_scale_bytes()),
                      {}};
  stored.error = RowQuantizer(layout).Quantize(row, stored.data, stored.scales);
  return stored;
}

// The value of a stored weight, by the format's definition.
float Value(const TensorLayout& layout, const StoredRow& stored, size_t i) {
  if (layout.scheme == Scheme::kF32) {
    float value = 0.0f;
    std::memcpy(&value, stored.data.data() + i * sizeof value, sizeof value);
    return value;
  }
  if (layout.scheme == Scheme::kQc8w) {
    float scale = 0.0f;
    std::memcpy(&scale, stored.scales.data(), sizeof scale);
    return scale * static_cast<float>(static_cast<int8_t>(stored.data[i]));
  }
  if (const BlockFormat* const format = layout.block_format()) {
    const std::string block(
        reinterpret_cast<const char*>(stored.data.data()) + i / format->inputs * format->bytes,
        format->bytes);
    return support::NaiveBlock(*format, block)[i % format->inputs];
  }
  uint16_t bits = 0;
  std::memcpy(&bits, stored.scales.data() + i / layout.block_size * sizeof bits, sizeof bits);
  const int byte = std::to_integer<int>(stored.data[i / 2]);
  const int code = (i % 2 == 0 ? byte & 15 : byte >> 4) - 8;
  return std::bit_cast<float>(uint32_t{bits} << 16) * static_cast<float>(code);
}

std::vector<float> NormalRow(size_t size) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<float> row(size);
  for (float& value : row) value = normal(generator);
  return row;
}

TEST(RowQuantizerTest, DequantizesWhatIsStored) {
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w, Scheme::kW2G64,
                              Scheme::kW3G64, Scheme::kW4G64, Scheme::kW5G64, Scheme::kW6G64}) {
    const TensorLayout layout = LayoutOf(scheme, 192, 64);
    const StoredRow stored = Store(layout, NormalRow(192));
    std::vector<float> row(layout.padded_input_channels);
    RowQuantizer(layout).Dequantize(stored.data, stored.scales, row);
    for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(row[i], Value(layout, stored, i)) << i;
  }
}

TEST(RowQuantizerTest, F32IsKeptAsItIs) {
  const auto row = NormalRow(20);
  const TensorLayout layout = LayoutOf(Scheme::kF32, row.size());
  const StoredRow stored = Store(layout, row);
  for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(Value(layout, stored, i), row[i]);
  EXPECT_EQ(stored.error.squared_error, 0.0);
}

TEST(RowQuantizerTest, ReportsTheErrorOfWhatIsStored) {
  const struct {
    Scheme scheme;
    double largest_error;
  } schemes[] = {{Scheme::kQc8w, 0.01},  {Scheme::kQb4w, 0.15}, {Scheme::kW2G64, 0.4},
                 {Scheme::kW3G64, 0.2},  {Scheme::kW4G64, 0.1}, {Scheme::kW5G64, 0.05},
                 {Scheme::kW6G64, 0.025}};
  for (const auto& [scheme, largest_error] : schemes) {
    for (const size_t size : {32, 80, 172, 512}) {
      const auto row = NormalRow(size);
      const TensorLayout layout = LayoutOf(scheme, size);
      const StoredRow stored = Store(layout, row);
      double squared_error = 0.0;
      double squared_weights = 0.0;
      for (size_t i = 0; i < size; ++i) {
        squared_error += std::pow(double{Value(layout, stored, i)} - double{row[i]}, 2);
        squared_weights += double{row[i]} * double{row[i]};
      }
      EXPECT_NEAR(stored.error.squared_error, squared_error, 1e-4 * squared_error);
      EXPECT_NEAR(stored.error.squared_weights, squared_weights, 1e-9 * squared_weights);
      const double relative = std::sqrt(squared_error / squared_weights);
      EXPECT_LT(relative, largest_error) << SchemeName(scheme) << " " << size;
    }
  }
}

TEST(RowQuantizerTest, NibblesBeginWithTheLowOne) {
  std::vector<float> row(32);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 16) - 8.0f;
  const StoredRow stored = Store(LayoutOf(Scheme::kQb4w, 32), row);
  EXPECT_EQ(stored.data[0], std::byte{0x10});
  EXPECT_EQ(stored.data[7], std::byte{0xfe});
  EXPECT_EQ(stored.scales, (std::vector<std::byte>{std::byte{0x80}, std::byte{0x3f}}));
  EXPECT_EQ(stored.error.squared_error, 0.0);
}

TEST(RowQuantizerTest, PaddingIsExactlyZero) {
  const TensorLayout layout = LayoutOf(Scheme::kQb4w, 172, 256);
  ASSERT_EQ(layout.padded_input_channels, 192u);
  const StoredRow stored = Store(layout, NormalRow(172));
  for (size_t i = 172; i < 192; ++i) EXPECT_EQ(Value(layout, stored, i), 0.0f);
  EXPECT_EQ(stored.data.back(), std::byte{0x88});
}

TEST(RowQuantizerTest, ABlockOfZerosHasScaleOneAndTheZeroPoint) {
  const StoredRow stored = Store(LayoutOf(Scheme::kQb4w, 32), std::vector<float>(32));
  EXPECT_EQ(stored.scales, (std::vector<std::byte>{std::byte{0x80}, std::byte{0x3f}}));
  for (const std::byte byte : stored.data) EXPECT_EQ(byte, std::byte{0x88});
}

TEST(RowQuantizerTest, Int8UsesNoCodeBelowMinus127) {
  std::vector<float> row = NormalRow(64);
  row[3] = -50.0f;
  const StoredRow stored = Store(LayoutOf(Scheme::kQc8w, 64), row);
  EXPECT_EQ(static_cast<int8_t>(stored.data[3]), -127);
}

}  // namespace
}  // namespace cria
