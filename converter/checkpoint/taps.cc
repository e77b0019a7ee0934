#include "converter/checkpoint/taps.h"

#include <string_view>
#include <vector>

namespace cria {
namespace {

struct Convolution {
  std::string_view name;  // The end of the tensor's name.
  uint64_t channels;
  uint64_t taps;
};

Status TransposeOne(const Convolution& convolution, const Checkpoint& checkpoint,
                    TensorSource& source) {
  const auto [name, channels, taps] = convolution;
  const std::vector<uint64_t> with_group = {channels, 1, taps};
  const std::vector<uint64_t> without = {channels, taps};
  if (source.shape != with_group && source.shape != without) {
    return WrongShape(source, with_group, checkpoint);
  }
  source.shape = {taps, channels};
  source.is_transposed = true;
  return {};
}

}  // namespace

Status TransposeTaps(Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  const Convolution convolutions[] = {
      {".conv.conv.weight", config.hidden_size, config.conv_L_cache},
      {".linear_attn.conv1d.weight", config.linear_conv_channels(), config.linear_conv_kernel_dim},
      {".mamba.conv1d.weight", config.mamba_conv_channels(), config.mamba_d_conv}};
  for (auto& [name, source] : checkpoint.tensors) {
    for (const Convolution& convolution : convolutions) {
      if (convolution.taps == 0 || !name.ends_with(convolution.name)) continue;
      CRIA_RETURN_IF_ERROR(TransposeOne(convolution, checkpoint, source));
    }
  }
  return {};
}

}  // namespace cria
