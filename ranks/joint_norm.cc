#include "ranks/joint_norm.h"

#include <cmath>

#include "ops/vector.h"

namespace cria::ranks {
namespace {

float SumOfSquares(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += double{value} * value;
  return static_cast<float>(sum);
}

void Scale(std::span<float> values, float factor, const float* weight) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = values[i] * factor * weight[i];
}

}  // namespace

JointNorm::JointNorm(const ModelConfig& part, std::span<const RankShare> shares, size_t rank,
                     std::span<float> sums)
    : own_{part.query_channels(), part.key_value_channels(), part.qkv_channels()},
      whole_{shares.back().query_heads.end * part.head_dim,
             shares.back().key_value_heads.end * part.head_dim},
      // Ranks that have the same heads of keys have only one, and are neighbours.
      counts_keys_(rank == 0 ||
                   shares[rank].key_value_heads.begin >= shares[rank - 1].key_value_heads.end),
      epsilon_(part.rms_norm_eps),
      sums_(sums) {}

Status JointNorm::Normalize(std::span<float> qkv, const float* bias, const float* q_norm,
                            const float* k_norm, Collective& collective) const {
  const size_t rows = qkv.size() / own_.row;
  const std::span<float> sums = sums_.first(NumSums(rows));
  for (size_t row = 0; row < rows; ++row) {
    const std::span<float> channels = qkv.subspan(row * own_.row, own_.row);
    if (bias != nullptr) ops::Add(bias, own_.row, channels.data());
    sums[2 * row] = SumOfSquares(channels.first(own_.queries));
    sums[2 * row + 1] =
        counts_keys_ ? SumOfSquares(channels.subspan(own_.queries, own_.keys)) : 0.0f;
  }
  CRIA_RETURN_IF_ERROR(collective.Sum(sums, WireType::kF32));
  const auto factor = [this](float sum, size_t num_channels) {
    return 1.0f / std::sqrt(sum / static_cast<float>(num_channels) + epsilon_);
  };
  for (size_t row = 0; row < rows; ++row) {
    const std::span<float> channels = qkv.subspan(row * own_.row, own_.row);
    Scale(channels.first(own_.queries), factor(sums[2 * row], whole_.queries), q_norm);
    Scale(channels.subspan(own_.queries, own_.keys), factor(sums[2 * row + 1], whole_.keys),
          k_norm);
  }
  return {};
}

}  // namespace cria::ranks
