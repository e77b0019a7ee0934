#include "converter/calibrate/layer_steps.h"

#include <algorithm>
#include <cmath>

#include "converter/calibrate/exponential.h"
#include "converter/calibrate/linear_algebra.h"
#include "converter/calibrate/row_functions.h"
#include "core/numeric.h"
#include "model/rope_table.h"

namespace cria {
namespace {

// Rows that a thread takes at once.
constexpr size_t kTaskRows = 16;

template <typename Task>
void ForEachRow(const ThreadPool& threads, size_t rows, const Task& task) {
  threads.ParallelFor(DivideRoundingUp(rows, kTaskRows), [&](size_t index) {
    const size_t end = std::min(rows, (index + 1) * kTaskRows);
    for (size_t row = index * kTaskRows; row < end; ++row) task(row);
  });
}

void Normalize(std::span<const float> input, std::span<const float> weight, float epsilon,
               std::span<float> output) {
  const double mean = SumOfSquares(input) / static_cast<double>(input.size());
  const auto factor = static_cast<float>(1.0 / std::sqrt(mean + double{epsilon}));
  for (size_t i = 0; i < input.size(); ++i) output[i] = input[i] * factor * weight[i];
}

// Computes both kinds of GELU, the exact one and the approximation by tanh.
float Gelu(HiddenAct act, float x) {
  if (act == HiddenAct::kGelu) return x * NormalDistribution(x);
  // (1 + tanh(z)) / 2 = 1 / (1 + e^-2z), with z = sqrt(2 / pi) * (x + 0.044715 * x^3).
  constexpr float kTwiceRoot = 1.59576912f;
  const float twice_z = kTwiceRoot * (x + 0.044715f * x * x * x);
  return x / (1.0f + Exponential(std::min(-twice_z, 88.0f)));
}

// `numbers` are those of a layer.
float Xielu(std::span<const float> numbers, float x) {
  const float linear = numbers[2] * x;
  if (x > 0.0f) return numbers[0] * x * x + linear;
  return numbers[1] * (Exponential(std::min(x, numbers[3])) - 1.0f - x) + linear;
}

void Rotate(std::span<float> head, const float* cosines, const float* sines) {
  const size_t half = head.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const float first = head[i];
    const float second = head[i + half];
    head[i] = first * cosines[i] - second * sines[i];
    head[i + half] = second * cosines[i] + first * sines[i];
  }
}

// Leaves a part of the sum of weights, which are those of scores of which `largest` is the largest,
// to a sink. The largest weight is one divided by the sum of exponentials.
void LeaveToSink(float sink, float largest, std::span<float> weights) {
  const float sum = 1.0f / std::ranges::max(weights);
  const float factor = sum / (sum + Exponential(std::min(sink - largest, 88.0f)));
  for (float& weight : weights) weight *= factor;
}

// Turns the scores of row `query` into weights with a sum of 1, or less if there is a sink: zeros
// for positions after it, and for those that its window has left.
void SoftMax(size_t query, size_t sliding_window, float factor, const float* sink,
             std::span<float> scores) {
  const size_t first =
      sliding_window == 0 || query < sliding_window ? 0 : query + 1 - sliding_window;
  const std::span<float> seen = scores.subspan(first, query + 1 - first);
  const float largest = sink == nullptr ? 0.0f : std::ranges::max(seen) * factor;
  SoftMaxRow(factor, seen);
  if (sink != nullptr) LeaveToSink(*sink, largest, seen);
  std::ranges::fill(scores.first(first), 0.0f);
  std::ranges::fill(scores.subspan(query + 1), 0.0f);
}

}  // namespace

void NormalizeRows(const ThreadPool& threads, ConstMatrixView input, std::span<const float> weight,
                   float epsilon, MatrixView output) {
  ForEachRow(threads, input.rows,
             [&](size_t row) { Normalize(input.row(row), weight, epsilon, output.row(row)); });
}

void AddBias(std::span<const float> bias, MatrixView rows) {
  if (bias.empty()) return;
  for (size_t row = 0; row < rows.rows; ++row) {
    for (size_t i = 0; i < bias.size(); ++i) rows(row, i) += bias[i];
  }
}

RopeTable MakeRopeTable(const ModelConfig& config, const LayerKind& kind, size_t positions) {
  if (kind.no_rope) return {};
  const size_t elements = positions * config.rotary_channels(kind) / 2;
  RopeTable table = {std::vector<float>(elements), std::vector<float>(elements)};
  FillRopeTable(RopeInverseFrequencies(config, kind, positions), positions, table.cosines.data(),
                table.sines.data());
  return table;
}

void Attend(const ThreadPool& threads, const ModelConfig& config, const LayerKind& kind,
            const AttentionWeights& weights, const RopeTable& rope, size_t window_tokens,
            MatrixView qkv, MatrixView output) {
  const size_t head_dim = config.head_dim_of(kind);
  const size_t num_heads = config.num_attention_heads;
  const size_t num_kv_heads = config.key_value_heads_of(kind);
  const std::vector<float> ones(head_dim, 1.0f);
  ForEachRow(threads, qkv.rows, [&](size_t row) {
    const size_t rotary_channels = config.rotary_channels(kind);
    const size_t rope_row = row % window_tokens * rotary_channels / 2;
    if (config.joint_qk_norm) {
      const auto queries = qkv.row(row).first(config.query_channels(kind));
      const auto keys = qkv.row(row).subspan(queries.size(), config.key_value_channels(kind));
      Normalize(queries, weights.q_norm, config.rms_norm_eps, queries);
      Normalize(keys, weights.k_norm, config.rms_norm_eps, keys);
    }
    for (size_t i = 0; i < num_heads + num_kv_heads; ++i) {
      const auto head = qkv.row(row).subspan(i * head_dim, head_dim);
      const std::vector<float>& norm = i < num_heads ? weights.q_norm : weights.k_norm;
      if (config.qk_norm && !config.qk_norm_after_rope) {
        Normalize(head, norm, config.rms_norm_eps, head);
      }
      if (!kind.no_rope) {
        Rotate(head.first(rotary_channels), rope.cosines.data() + rope_row,
               rope.sines.data() + rope_row);
      }
      if (config.qk_norm_after_rope) Normalize(head, norm, config.rms_norm_eps, head);
    }
    if (const float factor = config.query_factor(row % window_tokens); factor != 1.0f) {
      for (float& query : qkv.row(row).first(config.query_channels(kind))) query *= factor;
    }
    for (size_t i = 0; config.v_norm && i < num_kv_heads; ++i) {
      const auto head = qkv.row(row).subspan((num_heads + num_kv_heads + i) * head_dim, head_dim);
      Normalize(head, ones, config.rms_norm_eps, head);
    }
  });
  const float factor = kind.score_factor() / std::sqrt(static_cast<float>(head_dim));
  const size_t num_windows = DivideRoundingUp(qkv.rows, window_tokens);
  threads.ParallelFor(num_windows * num_heads, [&](size_t index) {
    const size_t first_row = index / num_heads * window_tokens;
    const size_t head = index % num_heads;
    const size_t kv_head = num_heads + head * num_kv_heads / num_heads;
    const MatrixView rows = qkv.Rows(first_row, std::min(window_tokens, qkv.rows - first_row));
    // Queries by parts, because none sees the keys after it.
    constexpr size_t kQueries = 128;
    for (size_t first = 0; first < rows.rows; first += kQueries) {
      const size_t count = std::min(kQueries, rows.rows - first);
      const MatrixView seen = rows.Rows(0, first + count);
      Matrix scores(count, seen.rows);
      AddProductWithTransposed(rows.Rows(first, count).Columns(head * head_dim, head_dim),
                               seen.Columns(kv_head * head_dim, head_dim), scores.view());
      const float cap = config.attn_logit_softcapping;
      if (cap != 0.0f) {
        for (float& score : scores.values()) score = cap * HyperbolicTangent(score * factor / cap);
      }
      for (size_t row = 0; row < count; ++row) {
        SoftMax(first + row, kind.sliding_window, cap != 0.0f ? 1.0f : factor,
                weights.sinks.empty() ? nullptr : &weights.sinks[head], scores.view().row(row));
      }
      const MatrixView out =
          output.Rows(first_row + first, count).Columns(head * head_dim, head_dim);
      for (size_t row = 0; row < count; ++row) std::ranges::fill(out.row(row), 0.0f);
      AddProduct(scores.view(), seen.Columns((kv_head + num_kv_heads) * head_dim, head_dim), 1.0f,
                 out);
    }
  });
}

void MultiplyByGates(const ThreadPool& threads, ConstMatrixView gates, MatrixView output) {
  if (gates.columns == 0) return;
  const size_t channels = output.columns / gates.columns;
  ForEachRow(threads, output.rows, [&](size_t row) {
    const std::span<float> out = output.row(row);
    const std::span<const float> scores = gates.row(row);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] /= 1.0f + Exponential(std::min(-scores[i / channels], 88.0f));
    }
  });
}

void Convolve(const ThreadPool& threads, std::span<const float> taps, std::span<const float> bias,
              size_t window_tokens, ConstMatrixView bcx, MatrixView output) {
  const size_t hidden = output.columns;
  const size_t num_taps = taps.size() / hidden;
  ForEachRow(threads, output.rows, [&](size_t row) {
    const std::span<float> out = output.row(row);
    std::ranges::fill(out, 0.0f);
    if (!bias.empty()) std::ranges::copy(bias, out.begin());
    const size_t num_seen = std::min(num_taps, row % window_tokens + 1);
    for (size_t back = 0; back < num_seen; ++back) {
      const std::span<const float> tap = taps.subspan((num_taps - 1 - back) * hidden, hidden);
      const std::span<const float> seen = bcx.row(row - back);
      for (size_t i = 0; i < hidden; ++i) out[i] += tap[i] * (seen[i] * seen[2 * hidden + i]);
    }
    for (size_t i = 0; i < hidden; ++i) out[i] *= bcx.row(row)[hidden + i];
  });
}

void Activate(const ThreadPool& threads, HiddenAct act, ConstMatrixView gate_up,
              MatrixView output) {
  const size_t size = output.columns;
  ForEachRow(threads, output.rows, [&](size_t row) {
    const std::span<const float> gate = gate_up.row(row).first(size);
    const std::span<const float> up = gate_up.row(row).subspan(size);
    if (act == HiddenAct::kSilu) {
      SiluRow(gate, up, output.row(row));
      return;
    }
    for (size_t i = 0; i < size; ++i) output(row, i) = up[i] * Gelu(act, gate[i]);
  });
}

void ActivateClamped(const ThreadPool& threads, float alpha, float limit, ConstMatrixView gate_up,
                     MatrixView output) {
  const size_t size = output.columns;
  ForEachRow(threads, output.rows, [&](size_t row) {
    for (size_t i = 0; i < size; ++i) {
      const float gate = std::min(gate_up(row, i), limit);
      const float up = std::clamp(gate_up(row, size + i), -limit, limit);
      output(row, i) = (up + 1.0f) * gate * Sigmoid(alpha * gate);
    }
  });
}

void ActivateUngated(const ThreadPool& threads, HiddenAct act, std::span<const float> xielu,
                     ConstMatrixView up, MatrixView output) {
  ForEachRow(threads, output.rows, [&](size_t row) {
    for (size_t i = 0; i < output.columns; ++i) {
      const float x = up(row, i);
      output(row, i) = act == HiddenAct::kXielu ? Xielu(xielu, x) : x > 0.0f ? x * x : 0.0f;
    }
  });
}

void RoundInputs(const ThreadPool& threads, MatrixView rows) {
  // As in runtime/ops/quantized_blocks.
  constexpr size_t kBlock = 32;
  constexpr float kHighest = 127.0f;
  ForEachRow(threads, rows.rows, [&](size_t row) {
    for (std::span<float> left = rows.row(row); !left.empty();) {
      const std::span<float> block = left.first(std::min(kBlock, left.size()));
      left = left.subspan(block.size());
      float largest = 0.0f;
      for (const float value : block) largest = std::max(largest, std::abs(value));
      if (largest == 0.0f) continue;
      const float scale = largest / kHighest;
      const float inverse = kHighest / largest;
      for (float& value : block) value = RoundToInteger(value * inverse) * scale;
    }
  });
}

}  // namespace cria
