#include "converter/equalize/product_error.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "converter/quantize/row_quantizer.h"

namespace cria {
namespace {

double Square(double value) { return value * value; }

// About the largest of inputs of these sizes: the eighth root of the sum of their eighth moments,
// because the maximum has no simple formula. It is up to 1.5 times too large, for few inputs and
// for many. The eighth moment of a normal distribution is 7 * 5 * 3.
double ExpectedPeak(std::span<const float> input_rms) {
  constexpr double kMoment = 105.0;
  const double largest = *std::ranges::max_element(input_rms);
  if (largest == 0.0) return 0.0;
  double sum = 0.0;
  for (const float rms : input_rms) sum += Square(Square(Square(rms / largest)));
  return largest * std::sqrt(std::sqrt(std::sqrt(sum * kMoment)));
}

}  // namespace

std::vector<uint64_t> SampleRows(uint64_t num_rows, size_t count) {
  const uint64_t taken = std::min<uint64_t>(num_rows, count);
  std::vector<uint64_t> rows(taken);
  for (uint64_t i = 0; i < taken; ++i) rows[i] = i * num_rows / taken;
  return rows;
}

Result<SampledRows> ReadRows(const PlannedTensor& tensor, const MappedPart& part,
                             std::span<const uint64_t> rows) {
  const size_t columns = tensor.stored.spec.input_channels;
  SampledRows read = {.values = std::vector<float>(rows.size() * columns),
                      .columns = columns,
                      .layout = tensor.stored.layout};
  TensorReader reader;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = std::span(read.values).subspan(i * columns, columns);
    CRIA_RETURN_IF_ERROR(reader.Read(*part.source, rows[i] * columns, row));
    ApplyFactors(part, rows[i], columns, row);
  }
  return read;
}

double RelativeProductError(const SampledRows& rows, std::span<const float> input_rms) {
  const TensorLayout& layout = rows.layout;
  RowQuantizer quantizer(layout);
  std::vector<float> row(layout.padded_input_channels);
  std::vector<float> stored(layout.padded_input_channels);
  std::vector<std::byte> data(layout.row_bytes());
  std::vector<std::byte> scales(layout.row_scale_bytes());
  // The variance of rounding to steps of peak / 127.
  const double input_error = Square(ExpectedPeak(input_rms) / 127.0) / 12.0;
  double error = 0.0;
  double product = 0.0;
  for (size_t first = 0; first < rows.values.size(); first += rows.columns) {
    std::copy_n(rows.values.begin() + static_cast<ptrdiff_t>(first), rows.columns, row.begin());
    quantizer.Quantize(row, data, scales);
    quantizer.Dequantize(data, scales, stored);
    for (size_t j = 0; j < rows.columns; ++j) {
      const double input = Square(input_rms[j]);
      const double weight = Square(row[j]);
      error += Square(double{row[j]} - stored[j]) * input + weight * input_error;
      product += weight * input;
    }
  }
  return product == 0.0 ? 0.0 : error / product;
}

}  // namespace cria
