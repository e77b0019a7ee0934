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

void MultiplyColumns(SampledRows& rows, std::span<const float> factors) {
  ApplyFactors({.column_factors = {factors.begin(), factors.end()}}, 0, rows.columns, rows.values);
}

std::vector<float> Inverses(std::span<const float> factors) {
  std::vector<float> inverses(factors.begin(), factors.end());
  for (float& factor : inverses) factor = 1.0f / factor;
  return inverses;
}

// What reads the outputs of a norm: matrices that are quantized, and what stays in f32.
struct NormReaders {
  std::vector<PlannedTensor*> quantized;
  std::vector<PlannedTensor*> in_f32 = {};
};

// Moves the gain of `norm` into the columns of its readers if that is better. `gain` is what the
// norm multiplies by, and becomes what it then multiplies by.
Result<bool> FoldGain(PlannedTensor& norm, const NormReaders& readers, std::vector<float>& gain) {
  // A channel that is as good as absent stays as it is, because the gain has no inverse.
  constexpr float kLeastGain = 1e-30f;
  std::vector<float> factors = gain;
  for (float& factor : factors) {
    if (std::abs(factor) < kLeastGain) factor = 1.0f;
  }
  std::vector<float> inverses = Inverses(factors);
  std::vector<float> left(gain.size());
  for (size_t j = 0; j < gain.size(); ++j) left[j] = gain[j] * inverses[j];
  double kept = 0.0;
  double folded = 0.0;
  for (const PlannedTensor* const reader : readers.quantized) {
    for (const MappedPart& part : reader->parts) {
      CRIA_ASSIGN_OR_RETURN(
          SampledRows rows,
          ReadRows(*reader, part, SampleRows(part.source->shape.front(), kSampledRows)));
      kept += RelativeProductError(rows, Magnitudes(gain));
      MultiplyColumns(rows, factors);
      folded += RelativeProductError(rows, Magnitudes(left));
    }
  }
  if (!(folded < kMaxErrorRatio * kept)) return false;
  norm.parts.front().column_factors = std::move(inverses);
  for (const std::vector<PlannedTensor*>* const tensors : {&readers.quantized, &readers.in_f32}) {
    for (PlannedTensor* const tensor : *tensors) {
      for (MappedPart& part : tensor->parts) part.column_factors = factors;
    }
  }
  gain = std::move(left);
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
// has 1. Empty if a factor would not be a normal number.
std::vector<float> BalancingFactors(std::span<const float> rows, std::span<const float> columns) {
  const auto is_used = [&](size_t i) {
    return std::isnormal(rows[i]) && std::isnormal(columns[i]);
  };
  std::vector<float> factors(rows.size(), 1.0f);
  int64_t exponents = 0;
  int64_t count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_used(i)) continue;
    factors[i] = static_cast<float>(std::sqrt(double{rows[i]} / columns[i]));
    exponents += std::ilogb(factors[i]);
    ++count;
  }
  if (count == 0) return factors;
  const int mean = static_cast<int>(exponents / count);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_used(i)) continue;
    factors[i] = std::ldexp(factors[i], -mean);
    if (!std::isnormal(factors[i])) return {};
  }
  return factors;
}

// Two matrices of which one reads the other's outputs.
struct Pair {
  PlannedTensor* writer;
  size_t part;          // The writer's part, as in MapTensors: its rows are the channels.
  PlannedTensor* bias;  // The writer's, or null.
  PlannedTensor* reader;
  size_t reader_part;
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
  MappedPart& read = pair.reader->parts[pair.reader_part];
  CRIA_ASSIGN_OR_RETURN(
      SampledRows rows,
      ReadRows(*pair.reader, read, SampleRows(read.source->shape.front(), kSampledRows)));
  const std::vector<float> column_sizes = ColumnSizes(rows);
  // The root of the sum of squares of the columns that read one row.
  std::vector<float> readers(row_sizes.size());
  std::vector<float> input_sizes(rows.columns);
  for (size_t j = 0; j < rows.columns; ++j) {
    float& size = readers[pair.RowOf(j)];
    size = std::sqrt(size * size + column_sizes[j] * column_sizes[j]);
    input_sizes[j] = row_sizes[pair.RowOf(j)];
  }
  const std::vector<float> factors = BalancingFactors(row_sizes, readers);
  if (factors.empty()) return false;
  const double kept = RelativeProductError(rows, input_sizes);
  std::vector<float> column_factors(rows.columns);
  for (size_t j = 0; j < rows.columns; ++j) {
    column_factors[j] = factors[pair.RowOf(j)];
    input_sizes[j] /= column_factors[j];
  }
  MultiplyColumns(rows, column_factors);
  if (!(RelativeProductError(rows, input_sizes) < kMaxErrorRatio * kept)) return false;
  written.row_factors = Inverses(factors);
  if (bias != nullptr) bias->column_factors = written.row_factors;
  read.column_factors = std::move(column_factors);
  return true;
}

// A layer's attention or its feed-forward: a norm, what reads it, and the pairs of which the writer
// is among these.
struct Half {
  PlannedTensor* norm;
  NormReaders readers;
  std::vector<Pair> pairs;
};

// Or of what a layer has in its place.
Half AttentionOf(FilePlan& plan, const ModelConfig& config, int layer) {
  const auto find = [&](TensorRole role) { return FindTensor(plan, role, layer); };
  // What out_proj reads of a short convolution is a product of three rows of in_proj.
  if (PlannedTensor* const in_proj = find(TensorRole::kConvInProj)) {
    return {.norm = find(TensorRole::kInputLayernorm), .readers = {{in_proj}}, .pairs = {}};
  }
  // The norm of heads and the gates are between the matrices of linear attention.
  if (PlannedTensor* const in_proj = find(TensorRole::kLinearInProj)) {
    return {.norm = find(TensorRole::kInputLayernorm),
            .readers = {.quantized = {in_proj}, .in_f32 = {find(TensorRole::kLinearBaProj)}},
            .pairs = {}};
  }
  // The states, the gates and the norm are between those of Mamba.
  if (PlannedTensor* const in_proj = find(TensorRole::kMambaInProj)) {
    return {.norm = find(TensorRole::kInputLayernorm),
            .readers = {.quantized = {in_proj}, .in_f32 = {find(TensorRole::kMambaDtProj)}},
            .pairs = {}};
  }
  PlannedTensor* const qkv = find(TensorRole::kQkvProj);
  NormReaders readers = {{qkv}};
  if (PlannedTensor* const gate = find(TensorRole::kAttentionGate)) readers.in_f32 = {gate};
  Half half = {.norm = find(TensorRole::kInputLayernorm), .readers = std::move(readers)};
  const LayerKind& kind = config.layer_kind(static_cast<size_t>(layer));
  // A norm of values would undo what is changed, and there may be none of the layer's own.
  if (config.v_norm || !kind.stores_tokens()) return half;
  half.pairs = {
      {.writer = qkv,
       .part = 2,
       .bias = find(TensorRole::kQkvBias),
       .reader = find(TensorRole::kOProj),
       .reader_part = 0,
       .head_dim = config.head_dim_of(kind),
       .heads_per_row_head = config.num_attention_heads / config.key_value_heads_of(kind)}};
  return half;
}

// A dense one, or a mixture of experts, each with a pair. What down_proj reads without a gate is
// not a multiple of what up_proj writes.
Half FeedForwardOf(FilePlan& plan, const ModelConfig& config, int layer) {
  const auto find = [&](TensorRole role) { return FindTensor(plan, role, layer); };
  struct Roles {
    TensorRole writer;
    TensorRole reader;
  };
  constexpr Roles kRoles[] = {
      {TensorRole::kGateUpProj, TensorRole::kDownProj},
      {TensorRole::kExpertsGateUpProj, TensorRole::kExpertsDownProj},
      {TensorRole::kSharedExpertGateUpProj, TensorRole::kSharedExpertDownProj}};
  Half half = {.norm = find(TensorRole::kPostAttentionLayernorm)};
  const bool is_beside = config.enable_moe_block && find(TensorRole::kRouter) != nullptr;
  for (const Roles& roles : kRoles) {
    PlannedTensor* const writer = find(roles.writer);
    if (writer == nullptr) continue;
    // Experts beside a dense feed-forward have a norm of their own.
    const bool reads_norm = !is_beside || roles.writer == TensorRole::kGateUpProj;
    if (reads_norm) half.readers.quantized.push_back(writer);
    // What a limit, or a bias, changes is no multiple either.
    if (config.ungated_mlp || config.swiglu_limit != 0.0f || config.experts_bias) continue;
    PlannedTensor* const reader = find(roles.reader);
    for (size_t i = 0; i < reader->parts.size(); ++i) {
      half.pairs.push_back({.writer = writer,
                            .part = 2 * i + 1,  // Behind each gate.
                            .bias = find(TensorRole::kGateUpBias),
                            .reader = reader,
                            .reader_part = i,
                            .head_dim = reader->stored.spec.input_channels,
                            .heads_per_row_head = 1});
    }
  }
  for (const TensorRole role : {TensorRole::kRouter, TensorRole::kSharedExpertGate}) {
    PlannedTensor* const tensor = find(role);
    if (tensor != nullptr && !is_beside) half.readers.in_f32.push_back(tensor);
  }
  return half;
}

Result<EqualizeReport> EqualizeLayer(FilePlan& plan, const ModelConfig& config, int layer) {
  EqualizeReport report;
  for (const Half& half : {AttentionOf(plan, config, layer), FeedForwardOf(plan, config, layer)}) {
    // Without a norm, the inputs are the hidden state, whose sizes are not known.
    std::vector<float> gain(config.hidden_size, 1.0f);
    if (half.norm != nullptr) {
      CRIA_ASSIGN_OR_RETURN(gain, ReadVector(half.norm->parts.front()));
      CRIA_ASSIGN_OR_RETURN(const bool is_folded, FoldGain(*half.norm, half.readers, gain));
      report.num_equalized += is_folded;
      ++report.num_places;
    }
    for (const Pair& pair : half.pairs) {
      CRIA_ASSIGN_OR_RETURN(const bool is_balanced, Balance(pair, gain));
      report.num_equalized += is_balanced;
      ++report.num_places;
    }
  }
  return report;
}

}  // namespace

Result<EqualizeReport> Equalize(FilePlan& plan, const ModelConfig& config,
                                const ThreadPool& threads, bool keeps_last_norm) {
  std::vector<std::optional<Result<EqualizeReport>>> results(config.num_hidden_layers);
  threads.ParallelFor(results.size(), [&](size_t layer) {
    results[layer] = EqualizeLayer(plan, config, static_cast<int>(layer));
  });
  EqualizeReport report;
  for (const auto& result : results) {
    CRIA_RETURN_IF_ERROR(*result);
    report.num_places += (*result)->num_places;
    report.num_equalized += (*result)->num_equalized;
  }
  if (keeps_last_norm) return report;
  // A head that is the embedding table cannot take the gain.
  PlannedTensor* norm = FindTensor(plan, TensorRole::kNorm, kNoLayer);
  PlannedTensor* head = FindTensor(plan, TensorRole::kLmHead, kNoLayer);
  if (norm != nullptr && head != nullptr) {
    ++report.num_places;
    CRIA_ASSIGN_OR_RETURN(std::vector<float> gain, ReadVector(norm->parts.front()));
    CRIA_ASSIGN_OR_RETURN(const bool is_folded, FoldGain(*norm, {{head}}, gain));
    report.num_equalized += is_folded;
  }
  return report;
}

}  // namespace cria
