#include "converter/calibrate/channel_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "converter/calibrate/block.h"
#include "converter/equalize/product_error.h"

namespace cria {
namespace {

// Rows of each part of a matrix that stand for all.
constexpr size_t kSampledRows = 32;
// An estimate that is lower by less than this is as good as equal.
constexpr double kMaxErrorRatio = 0.97;

// Exponents in fourths, so that square roots are enough.
struct Exponents {
  int input;
  int column;
};
constexpr std::array<Exponents, 6> kExponents = {{{2, 2}, {1, 1}, {4, 4}, {2, 0}, {1, 0}, {3, 1}}};

float Fourths(float value, int exponent) {
  const float root = std::sqrt(value);
  const float fourth_root = std::sqrt(root);
  switch (exponent) {
    case 0:
      return 1.0f;
    case 1:
      return fourth_root;
    case 2:
      return root;
    case 3:
      return root * fourth_root;
    default:
      return value;
  }
}

// Some rows of a part, as they are stored.
Result<SampledRows> Sample(const PlannedTensor& tensor, const MappedPart& part) {
  const size_t columns = tensor.stored.spec.input_channels;
  const std::vector<uint64_t> rows =
      SampleRows(part.source->num_elements() / columns, kSampledRows);
  if (!tensor.rotates_outputs) return ReadRows(tensor, part, rows);
  // Each output is a sum over many rows of the checkpoint.
  CRIA_ASSIGN_OR_RETURN(const Matrix matrix, ReadMatrix(tensor));
  SampledRows sampled = {.columns = columns, .layout = tensor.stored.layout};
  for (const uint64_t row : rows) {
    const std::span<const float> values = matrix.view().row(row);
    sampled.values.insert(sampled.values.end(), values.begin(), values.end());
  }
  return sampled;
}

}  // namespace

Result<bool> ScaleChannels(const InputWriter& writer, std::span<const float> input_rms,
                           const InputReaders& readers) {
  const size_t columns = input_rms.size();
  std::vector<SampledRows> samples;
  const size_t num_channels = writer.ChannelOf(columns - 1) + 1;
  std::vector<double> input_squares(num_channels);
  std::vector<double> column_squares(num_channels);
  for (const PlannedTensor* const reader : readers.quantized) {
    for (const MappedPart& part : reader->parts) {
      CRIA_ASSIGN_OR_RETURN(samples.emplace_back(), Sample(*reader, part));
      const std::vector<float>& values = samples.back().values;
      for (size_t i = 0; i < values.size(); ++i) {
        column_squares[writer.ChannelOf(i % columns)] += double{values[i]} * values[i];
      }
    }
  }
  for (size_t j = 0; j < columns; ++j) {
    input_squares[writer.ChannelOf(j)] += double{input_rms[j]} * input_rms[j];
  }

  const auto error_of = [&](std::span<const float> scales) {
    std::vector<float> column_scales(columns);
    std::vector<float> scaled_rms(columns);
    for (size_t j = 0; j < columns; ++j) {
      column_scales[j] = scales[writer.ChannelOf(j)];
      scaled_rms[j] = input_rms[j] / column_scales[j];
    }
    double error = 0.0;
    for (SampledRows rows : samples) {
      ApplyFactors({.column_factors = column_scales}, 0, columns, rows.values);
      error += RelativeProductError(rows, scaled_rms);
    }
    return error;
  };
  std::vector<float> best;
  double least = kMaxErrorRatio * error_of(std::vector<float>(num_channels, 1.0f));
  for (const Exponents& exponents : kExponents) {
    std::vector<float> scales(num_channels);
    bool is_normal = true;
    for (size_t i = 0; i < num_channels; ++i) {
      const auto input = static_cast<float>(std::sqrt(input_squares[i]));
      const auto column = static_cast<float>(std::sqrt(column_squares[i]));
      // A channel that is as good as absent stays as it is.
      const bool is_used = std::isnormal(input) && std::isnormal(column);
      scales[i] =
          is_used ? Fourths(input, exponents.input) / Fourths(column, exponents.column) : 1.0f;
      is_normal = is_normal && std::isnormal(scales[i]) && std::isnormal(1.0f / scales[i]);
    }
    if (!is_normal) continue;
    const double error = error_of(scales);
    if (!(error < least)) continue;
    least = error;
    best = std::move(scales);
  }
  if (best.empty()) return false;

  std::vector<float> column_scales(columns);
  for (size_t j = 0; j < columns; ++j) column_scales[j] = best[writer.ChannelOf(j)];
  for (const std::vector<PlannedTensor*>* const tensors : {&readers.quantized, &readers.in_f32}) {
    for (PlannedTensor* const tensor : *tensors) {
      for (MappedPart& part : tensor->parts) MultiplyColumns(column_scales, part);
    }
  }
  for (float& scale : best) scale = 1.0f / scale;
  MappedPart& written = writer.tensor->parts[writer.part];
  if (writer.tensor->stored.spec.is_vector()) {
    MultiplyColumns(best, written);
  } else {
    MultiplyRows(best, written);
  }
  if (writer.bias != nullptr) MultiplyColumns(best, writer.bias->parts[writer.part]);
  return true;
}

}  // namespace cria
