#include "converter/quantize/row_quantizer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "converter/quantize/quantize_blocks.h"
#include "converter/quantize/quantize_q4_0.h"
#include "converter/quantize/quantize_qb4w.h"
#include "converter/quantize/quantize_qc8w.h"
#include "core/numeric.h"
#include "weights/block_numbers.h"

namespace cria {
namespace {

double SumOfSquares(std::span<const float> values) {
  constexpr size_t kLanes = 4;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  double sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  for (; i < values.size(); ++i) sum += double{values[i]} * double{values[i]};
  return sum;
}

}  // namespace

QuantizationError ErrorOfKept(std::span<const float> weights) {
  return {.squared_weights = SumOfSquares(weights)};
}

ScaleRule ScaleRuleOf(Scheme scheme) {
  if (const BlockFormat* const format = FindBlockFormat(scheme)) return BlockRule(*format);
  return scheme == Scheme::kQc8w ? kQc8wRule : kQb4wRule;
}

size_t WeightsOfScale(const TensorLayout& layout) {
  if (const BlockFormat* const format = layout.block_format()) return format->inputs;
  return layout.scheme == Scheme::kQb4w ? layout.block_size : layout.padded_input_channels;
}

CodedRow CodedRow::Empty(const TensorLayout& layout) {
  const size_t num_scales = layout.padded_input_channels / WeightsOfScale(layout);
  return {.codes = std::vector<float>(layout.padded_input_channels),
          .scales = std::vector<float>(num_scales, 1.0f),
          .minimums = std::vector<float>(num_scales)};
}

RowQuantizer::RowQuantizer(const TensorLayout& layout)
    : layout_(layout), scratch_(ScaleSearchScratch(layout.padded_input_channels)) {}

QuantizationError RowQuantizer::Quantize(std::span<const float> row, std::span<std::byte> data,
                                         std::span<std::byte> scales) {
  QuantizationError error = {.squared_weights = SumOfSquares(row)};
  if (const BlockFormat* const format = layout_.block_format()) {
    error.squared_error = format->scheme == Scheme::kQ4_0
                              ? QuantizeQ40Row(row, data)
                              : QuantizeBlocksOfRow(*format, row, layout_.input_channels, data);
    return error;
  }
  switch (layout_.scheme) {
    case Scheme::kF32:
      std::memcpy(data.data(), row.data(), data.size());
      break;
    case Scheme::kQc8w: {
      const ScaleFit fit =
          QuantizeQc8wRow(row, scratch_, {reinterpret_cast<int8_t*>(data.data()), data.size()});
      std::memcpy(scales.data(), &fit.scale, sizeof fit.scale);
      error.squared_error = fit.squared_error;
      break;
    }
    case Scheme::kQb4w:
      error.squared_error = QuantizeQb4wRow(
          row, layout_.block_size, scratch_, {reinterpret_cast<uint8_t*>(data.data()), data.size()},
          {reinterpret_cast<uint16_t*>(scales.data()), scales.size() / sizeof(uint16_t)});
      break;
    default:
      break;
  }
  return error;
}

void RowQuantizer::Store(const CodedRow& row, std::span<std::byte> data,
                         std::span<std::byte> scales) const {
  const std::span<const float> codes = row.codes;
  if (const BlockFormat* const format = layout_.block_format()) {
    for (size_t block = 0; block < row.scales.size(); ++block) {
      StoreBlock(*format, codes.subspan(block * format->inputs, format->inputs), row.scales[block],
                 row.minimums[block], data.data() + block * format->bytes);
    }
    return;
  }
  switch (layout_.scheme) {
    case Scheme::kF32:
      return;  // There are no codes.
    case Scheme::kQc8w:
      for (size_t i = 0; i < codes.size(); ++i) {
        data[i] = static_cast<std::byte>(static_cast<int8_t>(codes[i]));
      }
      std::memcpy(scales.data(), row.scales.data(), sizeof(float));
      return;
    case Scheme::kQb4w:
      for (size_t i = 0; i < codes.size(); i += 2) {
        const int low = static_cast<int>(codes[i]) + kQb4wZeroPoint;
        const int high = static_cast<int>(codes[i + 1]) + kQb4wZeroPoint;
        data[i / 2] = static_cast<std::byte>(low | high << 4);
      }
      for (size_t i = 0; i < row.scales.size(); ++i) {
        const uint16_t scale = FloatToBf16(row.scales[i]);
        std::memcpy(scales.data() + i * sizeof scale, &scale, sizeof scale);
      }
      return;
    default:
      return;
  }
}

void RowQuantizer::Dequantize(std::span<const std::byte> data, std::span<const std::byte> scales,
                              std::span<float> row) const {
  if (const BlockFormat* const format = layout_.block_format()) {
    return DequantizeBlocks(*format, data.data(), row);
  }
  switch (layout_.scheme) {
    case Scheme::kF32:
      std::memcpy(row.data(), data.data(), data.size());
      return;
    case Scheme::kQc8w: {
      float scale = 0.0f;
      std::memcpy(&scale, scales.data(), sizeof scale);
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = static_cast<float>(static_cast<int8_t>(data[i])) * scale;
      }
      return;
    }
    case Scheme::kQb4w:
      for (size_t i = 0; i < row.size(); ++i) {
        uint16_t scale = 0;
        std::memcpy(&scale, scales.data() + i / layout_.block_size * sizeof scale, sizeof scale);
        const int code = static_cast<int>(data[i / 2]) >> (i % 2 * 4) & 15;
        row[i] = static_cast<float>(code - kQb4wZeroPoint) * Bf16ToFloat(scale);
      }
      return;
    default:
      return;
  }
}

void RowQuantizer::Round(std::span<float> row) {
  padded_.assign(layout_.padded_input_channels, 0.0f);
  data_.resize(layout_.row_bytes());
  scales_.resize(layout_.row_scale_bytes());
  std::ranges::copy(row, padded_.begin());
  Quantize(padded_, data_, scales_);
  Dequantize(data_, scales_, padded_);
  std::copy_n(padded_.begin(), row.size(), row.begin());
}

}  // namespace cria
