#include "decode/key_offsets.h"

#include <algorithm>
#include <cstddef>

namespace cria {
namespace {

std::vector<float> MeanRow(std::span<const float> table, size_t columns) {
  std::vector<double> sums(columns);
  for (size_t i = 0; i < table.size(); ++i) sums[i % columns] += table[i];
  const double rows = static_cast<double>(table.size()) / static_cast<double>(columns);
  std::vector<float> means(columns);
  for (size_t i = 0; i < columns; ++i) means[i] = static_cast<float>(sums[i] / rows);
  return means;
}

}  // namespace

bool HasKeyOffsets(const ModelConfig& config, KvType type) {
  // A norm behind the bias makes another key of it for each token. A soft cap changes scores that
  // became smaller by the same number by different ones.
  return type == KvType::kInt8 && config.qkv_bias && !config.qk_norm && !config.joint_qk_norm &&
         config.attn_logit_softcapping == 0.0f;
}

MeanRotation MeanRotationOf(std::span<const float> cosines, std::span<const float> sines,
                            size_t pairs) {
  return {.cosines = MeanRow(cosines, pairs), .sines = MeanRow(sines, pairs)};
}

void FillKeyOffsets(const MeanRotation& rotation, size_t head_dim, std::span<const float> bias,
                    std::span<float> offsets) {
  const size_t pairs = rotation.cosines.size();
  std::ranges::copy(bias, offsets.begin());
  for (size_t head = 0; head < bias.size(); head += head_dim) {
    for (size_t i = 0; i < pairs; ++i) {
      const double a = bias[head + i];
      const double b = bias[head + pairs + i];
      const double cosine = rotation.cosines[i];
      const double sine = rotation.sines[i];
      offsets[head + i] = static_cast<float>(a * cosine - b * sine);
      offsets[head + pairs + i] = static_cast<float>(a * sine + b * cosine);
    }
  }
}

}  // namespace cria
