#include "reference/reference_delta_net.h"

#include <algorithm>
#include <cmath>

#include "reference/reference_math.h"

namespace cria::reference {
namespace {

double LogisticOf(double x) { return 1.0 / (1.0 + std::exp(-x)); }

void AppendPart(std::vector<double>& all, const std::vector<double>& from, size_t first,
                size_t count) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
  all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
}

// x / sqrt(sum(x^2) + 1e-6), of `size` numbers from `first` on.
std::vector<double> UnitOf(const std::vector<double>& x, size_t first, size_t size) {
  double sum = 1e-6;
  for (size_t i = 0; i < size; ++i) sum += x[first + i] * x[first + i];
  std::vector<double> unit(size);
  for (size_t i = 0; i < size; ++i) unit[i] = x[first + i] / std::sqrt(sum);
  return unit;
}

}  // namespace

ReferenceDeltaNet::ReferenceDeltaNet(const ReferenceConfig& config, const std::string& prefix,
                                     const FindTensor& find)
    : config_(config),
      sizes_(config.linear),
      keys_(sizes_.num_key_heads * sizes_.key_head_dim),
      values_(sizes_.num_value_heads * sizes_.value_head_dim),
      conv_(find(prefix + "linear_attn.conv1d.weight",
                 {2 * keys_ + values_, 1, sizes_.conv_kernel_dim})),
      dt_bias_(find(prefix + "linear_attn.dt_bias", {sizes_.num_value_heads})),
      a_log_(find(prefix + "linear_attn.A_log", {sizes_.num_value_heads})),
      norm_(find(prefix + "linear_attn.norm.weight", {sizes_.value_head_dim})),
      out_proj_(find(prefix + "linear_attn.out_proj.weight", {config.hidden_size, values_})) {
  const auto matrix = [&](const char* name, size_t rows) {
    return find(prefix + "linear_attn." + name + ".weight", {rows, config.hidden_size});
  };
  if (sizes_.is_fused) {
    qkvz_ = matrix("in_proj_qkvz", 2 * keys_ + 2 * values_);
    ba_ = matrix("in_proj_ba", 2 * sizes_.num_value_heads);
  } else {
    qkv_ = matrix("in_proj_qkv", 2 * keys_ + values_);
    z_ = matrix("in_proj_z", values_);
    b_ = matrix("in_proj_b", sizes_.num_value_heads);
    a_ = matrix("in_proj_a", sizes_.num_value_heads);
  }
  Reset();
}

void ReferenceDeltaNet::Reset() {
  inputs_.clear();
  state_.assign(keys_ / sizes_.num_key_heads * values_, 0.0);
}

ReferenceDeltaNet::Projected ReferenceDeltaNet::Project(const std::vector<double>& normed) const {
  if (sizes_.is_fused) {
    return Separate(MatrixTimesVector(qkvz_, 2 * keys_ + 2 * values_, normed),
                    MatrixTimesVector(ba_, 2 * sizes_.num_value_heads, normed));
  }
  return {.qkv = MatrixTimesVector(qkv_, 2 * keys_ + values_, normed),
          .z = MatrixTimesVector(z_, values_, normed),
          .b = MatrixTimesVector(b_, sizes_.num_value_heads, normed),
          .a = MatrixTimesVector(a_, sizes_.num_value_heads, normed)};
}

// Qwen3NextGatedDeltaNet.fix_query_key_value_ordering: each head of keys has its query, its key,
// the values that belong to it, and their gates.
ReferenceDeltaNet::Projected ReferenceDeltaNet::Separate(const std::vector<double>& qkvz,
                                                         const std::vector<double>& ba) const {
  const size_t groups = sizes_.num_key_heads;
  const size_t of_values = values_ / groups;
  const size_t of_heads = sizes_.num_value_heads / groups;
  const size_t of_all = 2 * sizes_.key_head_dim + 2 * of_values;
  std::vector<double> queries, keys, values;
  Projected projected;
  for (size_t group = 0; group < groups; ++group) {
    const size_t first = group * of_all;
    AppendPart(queries, qkvz, first, sizes_.key_head_dim);
    AppendPart(keys, qkvz, first + sizes_.key_head_dim, sizes_.key_head_dim);
    AppendPart(values, qkvz, first + 2 * sizes_.key_head_dim, of_values);
    AppendPart(projected.z, qkvz, first + 2 * sizes_.key_head_dim + of_values, of_values);
    AppendPart(projected.b, ba, 2 * group * of_heads, of_heads);
    AppendPart(projected.a, ba, (2 * group + 1) * of_heads, of_heads);
  }
  projected.qkv = queries;
  AppendPart(projected.qkv, keys, 0, keys.size());
  AppendPart(projected.qkv, values, 0, values.size());
  return projected;
}

std::vector<double> ReferenceDeltaNet::Convolve(const std::vector<double>& qkv) {
  const size_t taps = sizes_.conv_kernel_dim;
  inputs_.push_back(qkv);
  std::vector<double> convolved(qkv.size());
  for (size_t i = 0; i < qkv.size(); ++i) {
    double sum = 0.0;
    for (size_t tap = 0; tap < taps; ++tap) {
      const size_t back = taps - 1 - tap;
      if (back < inputs_.size()) {
        sum += conv_[i * taps + tap] * inputs_[inputs_.size() - 1 - back][i];
      }
    }
    convolved[i] = sum * LogisticOf(sum);
  }
  return convolved;
}

// torch_recurrent_gated_delta_rule in transformers, for one token, and what is around it in
// Qwen3_5GatedDeltaNet.
std::vector<double> ReferenceDeltaNet::Of(const std::vector<double>& normed) {
  const size_t key_dim = sizes_.key_head_dim;
  const size_t value_dim = sizes_.value_head_dim;
  const Projected projected = Project(normed);
  const std::vector<double> qkv = Convolve(projected.qkv);
  std::vector<double> output(values_);
  for (size_t head = 0; head < sizes_.num_value_heads; ++head) {
    const size_t key_head = head / (sizes_.num_value_heads / sizes_.num_key_heads);
    const std::vector<double> query = UnitOf(qkv, key_head * key_dim, key_dim);
    const std::vector<double> key = UnitOf(qkv, keys_ + key_head * key_dim, key_dim);
    double* const state = state_.data() + head * key_dim * value_dim;
    const double softplus = std::log1p(std::exp(projected.a[head] + dt_bias_[head]));
    const double decay = std::exp(-std::exp(double{a_log_[head]}) * softplus);
    const double beta = LogisticOf(projected.b[head]);
    double* const out = output.data() + head * value_dim;
    double squares = 0.0;
    for (size_t j = 0; j < value_dim; ++j) {
      double seen = 0.0;
      for (size_t i = 0; i < key_dim; ++i) {
        state[i * value_dim + j] *= decay;
        seen += state[i * value_dim + j] * key[i];
      }
      const double delta = beta * (qkv[2 * keys_ + head * value_dim + j] - seen);
      for (size_t i = 0; i < key_dim; ++i) {
        state[i * value_dim + j] += key[i] * delta;
        out[j] += state[i * value_dim + j] * query[i] / std::sqrt(static_cast<double>(key_dim));
      }
      squares += out[j] * out[j];
    }
    const double root = std::sqrt(squares / static_cast<double>(value_dim) + config_.rms_norm_eps);
    for (size_t j = 0; j < value_dim; ++j) {
      const double gate = projected.z[head * value_dim + j];
      out[j] = norm_[j] * out[j] / root * gate * LogisticOf(gate);
    }
  }
  return MatrixTimesVector(out_proj_, config_.hidden_size, output);
}

}  // namespace cria::reference
