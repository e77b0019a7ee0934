#include "converter/equalize/equalize.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "converter/equalize/product_error.h"

namespace cria {
namespace {

// Rows of each matrix that the estimates rest on.
constexpr size_t kSampledRows = 32;
// A place is changed if its estimated error becomes less than this part of what it was. On
// checkpoints without large channels, evening out makes little difference to the estimate and does
// rather harm, because the gains that were trained fit the weights.
constexpr double kMaxErrorRatio = 0.5;

struct LayerTensors {
  PlannedTensor* input_norm = nullptr;
  PlannedTensor* qkv = nullptr;
  PlannedTensor* qkv_bias = nullptr;
  PlannedTensor* o = nullptr;
  PlannedTensor* post_attention_norm = nullptr;
  PlannedTensor* gate_up = nullptr;
  PlannedTensor* gate_up_bias = nullptr;
  PlannedTensor* down = nullptr;
};

Result<std::vector<float>> ReadVector(const MappedPart& part) {
  std::vector<float> values(part.source->num_elements());
  TensorReader reader;
  CRIA_RETURN_IF_ERROR(reader.Read(*part.source, 0, values));
  return values;
}

std::vector<float> Magnitudes(std::vector<float> values) {
  for (float& value : values) value = std::abs(value);
  return values;
}

// Multiplies what is there by more factors.
void Multiply(std::vector<float>& factors, std::span<const float> more) {
  if (factors.empty()) factors.assign(more.size(), 1.0f);
  for (size_t i = 0; i < more.size(); ++i) factors[i] *= more[i];
}

void MultiplyColumns(SampledRows& rows, std::span<const float> factors) {
  for (size_t i = 0; i < rows.values.size(); ++i) rows.values[i] *= factors[i % rows.columns];
}

// Moves the gain of `norm` into the columns of `reader` if that is better. `gain` is what the norm
// multiplies by, and becomes what it then multiplies by.
Result<bool> FoldGain(PlannedTensor& norm, PlannedTensor& reader, std::vector<float>& gain) {
  // A channel that is as good as absent stays as it is, because the gain has no inverse.
  constexpr float kLeastGain = 1e-30f;
  std::vector<float> factors = gain;
  std::vector<float> inverses(gain.size());
  std::vector<float> left(gain.size());
  for (size_t j = 0; j < gain.size(); ++j) {
    if (std::abs(gain[j]) < kLeastGain) factors[j] = 1.0f;
    inverses[j] = 1.0f / factors[j];
    left[j] = gain[j] * inverses[j];
  }
  double kept = 0.0;
  double folded = 0.0;
  for (const MappedPart& part : reader.parts) {
    CRIA_ASSIGN_OR_RETURN(
        SampledRows rows,
        ReadRows(reader, part, SampleRows(part.source->shape.front(), kSampledRows)));
    kept += RelativeProductError(rows, Magnitudes(gain));
    MultiplyColumns(rows, factors);
    folded += RelativeProductError(rows, Magnitudes(left));
  }
  if (!(folded < kMaxErrorRatio * kept)) return false;
  Multiply(norm.parts.front().column_factors, inverses);
  for (MappedPart& part : reader.parts) Multiply(part.column_factors, factors);
  gain = left;
  return true;
}

// The sizes of a part's outputs, [rows], for inputs of size 1 that a norm with `gain` multiplies.
Result<std::vector<float>> OutputSizes(const PlannedTensor& tensor, const MappedPart& part,
                                       std::span<const float> gain, const MappedPart* bias) {
  std::vector<float> biases;
  if (bias != nullptr) {
    CRIA_ASSIGN_OR_RETURN(biases, ReadVector(*bias));
  }
  const uint64_t num_rows = part.source->shape.front();
  std::vector<float> sizes(num_rows);
  for (uint64_t i = 0; i < num_rows; ++i) {
    CRIA_ASSIGN_OR_RETURN(const SampledRows row, ReadRows(tensor, part, std::span(&i, 1)));
    double sum = biases.empty() ? 0.0 : double{biases[i]} * biases[i];
    for (size_t j = 0; j < row.columns; ++j) {
      const double value = double{row.values[j]} * gain[j];
      sum += value * value;
    }
    sizes[i] = static_cast<float>(std::sqrt(sum));
  }
  return sizes;
}

// The roots of the columns' sums of squares.
std::vector<float> ColumnSizes(const SampledRows& rows) {
  std::vector<double> sums(rows.columns);
  for (size_t i = 0; i < rows.values.size(); ++i) {
    sums[i % rows.columns] += double{rows.values[i]} * rows.values[i];
  }
  std::vector<float> sizes(rows.columns);
  for (size_t j = 0; j < rows.columns; ++j) sizes[j] = static_cast<float>(std::sqrt(sums[j]));
  return sizes;
}

// sqrt(row / column) for each row, divided by about their geometric mean: a power of two, so that
// no logarithm is needed, whose last bits differ between machines. A row or a column of zeros
// has 1.
std::vector<float> BalancingFactors(std::span<const float> rows, std::span<const float> columns) {
  std::vector<float> factors(rows.size(), 1.0f);
  int64_t exponents = 0;
  int64_t count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double ratio = double{rows[i]} / columns[i];
    if (!std::isnormal(rows[i]) || !std::isnormal(columns[i])) continue;
    factors[i] = static_cast<float>(std::sqrt(ratio));
    exponents += std::ilogb(factors[i]);
    ++count;
  }
  if (count == 0) return factors;
  const int mean = static_cast<int>(exponents / count);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::isnormal(rows[i]) && std::isnormal(columns[i])) {
      factors[i] = std::ldexp(factors[i], -mean);
    }
  }
  return factors;
}

// Two matrices of which one reads the other's outputs.
struct Pair {
  PlannedTensor* writer;
  size_t part;          // Of the writer: its rows are the channels.
  PlannedTensor* bias;  // The writer's, or null.
  PlannedTensor* reader;
  // Which row of the part column j of the reader reads: heads of `head_dim` columns, and
  // `heads_per_row_head` of them read the same rows.
  size_t head_dim;
  size_t heads_per_row_head;

  size_t RowOf(size_t column) const {
    return column / (head_dim * heads_per_row_head) * head_dim + column % head_dim;
  }
};

// Divides the writer's rows and multiplies the reader's columns if that is better.
Result<bool> Balance(const Pair& pair, std::span<const float> gain) {
  MappedPart& written = pair.writer->parts[pair.part];
  MappedPart* bias = pair.bias == nullptr ? nullptr : &pair.bias->parts[pair.part];
  CRIA_ASSIGN_OR_RETURN(const std::vector<float> row_sizes,
                        OutputSizes(*pair.writer, written, gain, bias));
  MappedPart& read = pair.reader->parts.front();
  CRIA_ASSIGN_OR_RETURN(
      SampledRows rows,
      ReadRows(*pair.reader, read, SampleRows(read.source->shape.front(), kSampledRows)));
  const std::vector<float> column_sizes = ColumnSizes(rows);
  // Of the columns that read one row, the root of their sum of squares.
  std::vector<float> readers(row_sizes.size());
  std::vector<float> input_sizes(rows.columns);
  for (size_t j = 0; j < rows.columns; ++j) {
    float& size = readers[pair.RowOf(j)];
    size = std::sqrt(size * size + column_sizes[j] * column_sizes[j]);
    input_sizes[j] = row_sizes[pair.RowOf(j)];
  }
  const std::vector<float> factors = BalancingFactors(row_sizes, readers);
  const double kept = RelativeProductError(rows, input_sizes);
  std::vector<float> column_factors(rows.columns);
  for (size_t j = 0; j < rows.columns; ++j) {
    column_factors[j] = factors[pair.RowOf(j)];
    input_sizes[j] /= column_factors[j];
  }
  MultiplyColumns(rows, column_factors);
  if (!(RelativeProductError(rows, input_sizes) < kMaxErrorRatio * kept)) return false;
  std::vector<float> inverses(factors.size());
  for (size_t i = 0; i < factors.size(); ++i) inverses[i] = 1.0f / factors[i];
  Multiply(written.row_factors, inverses);
  if (bias != nullptr) Multiply(bias->column_factors, inverses);
  Multiply(read.column_factors, column_factors);
  return true;
}

Result<size_t> EqualizeLayer(const LayerTensors& layer, const ModelConfig& config) {
  size_t equalized = 0;
  CRIA_ASSIGN_OR_RETURN(std::vector<float> gain, ReadVector(layer.input_norm->parts.front()));
  CRIA_ASSIGN_OR_RETURN(bool is_better, FoldGain(*layer.input_norm, *layer.qkv, gain));
  equalized += is_better;
  const Pair values = {
      .writer = layer.qkv,
      .part = 2,
      .bias = layer.qkv_bias,
      .reader = layer.o,
      .head_dim = config.head_dim,
      .heads_per_row_head = config.num_attention_heads / config.num_key_value_heads};
  CRIA_ASSIGN_OR_RETURN(is_better, Balance(values, gain));
  equalized += is_better;
  CRIA_ASSIGN_OR_RETURN(gain, ReadVector(layer.post_attention_norm->parts.front()));
  CRIA_ASSIGN_OR_RETURN(is_better, FoldGain(*layer.post_attention_norm, *layer.gate_up, gain));
  equalized += is_better;
  const Pair feed_forward = {.writer = layer.gate_up,
                             .part = 1,
                             .bias = layer.gate_up_bias,
                             .reader = layer.down,
                             .head_dim = config.intermediate_size,
                             .heads_per_row_head = 1};
  CRIA_ASSIGN_OR_RETURN(is_better, Balance(feed_forward, gain));
  return equalized + is_better;
}

}  // namespace

Result<EqualizeReport> Equalize(FilePlan& plan, const ModelConfig& config,
                                const ThreadPool& threads) {
  std::vector<LayerTensors> layers(config.num_hidden_layers);
  PlannedTensor* last_norm = nullptr;
  PlannedTensor* head = nullptr;
  for (PlannedTensor& tensor : plan.tensors) {
    const TensorSpec& spec = tensor.stored.spec;
    switch (spec.role) {
      case TensorRole::kInputLayernorm:
        layers[spec.layer].input_norm = &tensor;
        break;
      case TensorRole::kQkvProj:
        layers[spec.layer].qkv = &tensor;
        break;
      case TensorRole::kQkvBias:
        layers[spec.layer].qkv_bias = &tensor;
        break;
      case TensorRole::kOProj:
        layers[spec.layer].o = &tensor;
        break;
      case TensorRole::kPostAttentionLayernorm:
        layers[spec.layer].post_attention_norm = &tensor;
        break;
      case TensorRole::kGateUpProj:
        layers[spec.layer].gate_up = &tensor;
        break;
      case TensorRole::kGateUpBias:
        layers[spec.layer].gate_up_bias = &tensor;
        break;
      case TensorRole::kDownProj:
        layers[spec.layer].down = &tensor;
        break;
      case TensorRole::kNorm:
        last_norm = &tensor;
        break;
      case TensorRole::kLmHead:
        head = &tensor;
        break;
      case TensorRole::kEmbedTokens:
      case TensorRole::kQNorm:
      case TensorRole::kKNorm:
      case TensorRole::kOBias:
      case TensorRole::kDownBias:
        break;
    }
  }
  std::vector<std::optional<Result<size_t>>> results(layers.size());
  threads.ParallelFor(layers.size(),
                      [&](size_t i) { results[i] = EqualizeLayer(layers[i], config); });
  EqualizeReport report = {.num_places = 4 * layers.size()};
  for (const auto& result : results) {
    CRIA_RETURN_IF_ERROR(*result);
    report.num_equalized += **result;
  }
  // A head that is the embedding table cannot take the gain.
  if (head != nullptr && last_norm != nullptr) {
    ++report.num_places;
    CRIA_ASSIGN_OR_RETURN(std::vector<float> gain, ReadVector(last_norm->parts.front()));
    CRIA_ASSIGN_OR_RETURN(const bool is_better, FoldGain(*last_norm, *head, gain));
    report.num_equalized += is_better;
  }
  return report;
}

}  // namespace cria
