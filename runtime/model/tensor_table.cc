#include "model/tensor_table.h"

#include <format>

namespace cria {

std::string_view SchemeName(Scheme scheme) {
  switch (scheme) {
    case Scheme::kF32:
      return "f32";
    case Scheme::kQc8w:
      return "qc8w";
    case Scheme::kQb4w:
      return "qb4w";
  }
  return "unknown";
}

std::string_view TensorRoleName(TensorRole role) {
  switch (role) {
    case TensorRole::kEmbedTokens:
      return "embed_tokens";
    case TensorRole::kInputLayernorm:
      return "input_layernorm";
    case TensorRole::kQkvProj:
      return "qkv_proj";
    case TensorRole::kOProj:
      return "o_proj";
    case TensorRole::kPostAttentionLayernorm:
      return "post_attention_layernorm";
    case TensorRole::kGateUpProj:
      return "gate_up_proj";
    case TensorRole::kDownProj:
      return "down_proj";
    case TensorRole::kNorm:
      return "norm";
    case TensorRole::kLmHead:
      return "lm_head";
  }
  return "unknown";
}

std::string TensorSpec::Name() const {
  if (layer == kNoLayer) return std::string(TensorRoleName(role));
  return std::format("layers.{}.{}", layer, TensorRoleName(role));
}

bool TensorSpec::is_vector() const {
  return role == TensorRole::kNorm || role == TensorRole::kInputLayernorm ||
         role == TensorRole::kPostAttentionLayernorm;
}

std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config) {
  const size_t hidden = config.hidden_size;
  std::vector<TensorSpec> specs;
  specs.push_back({TensorRole::kEmbedTokens, kNoLayer, config.vocab_size, hidden});
  for (int layer = 0; layer < static_cast<int>(config.num_hidden_layers); ++layer) {
    specs.push_back({TensorRole::kInputLayernorm, layer, 1, hidden});
    specs.push_back({TensorRole::kQkvProj, layer, config.qkv_channels(), hidden});
    specs.push_back({TensorRole::kOProj, layer, hidden, config.query_channels()});
    specs.push_back({TensorRole::kPostAttentionLayernorm, layer, 1, hidden});
    specs.push_back({TensorRole::kGateUpProj, layer, 2 * size_t{config.intermediate_size}, hidden});
    specs.push_back({TensorRole::kDownProj, layer, hidden, config.intermediate_size});
  }
  specs.push_back({TensorRole::kNorm, kNoLayer, 1, hidden});
  specs.push_back({TensorRole::kLmHead, kNoLayer, config.vocab_size, hidden});
  return specs;
}

size_t TensorLayout::row_bytes() const {
  switch (scheme) {
    case Scheme::kF32:
      return padded_input_channels * sizeof(float);
    case Scheme::kQc8w:
      return padded_input_channels;
    case Scheme::kQb4w:
      return padded_input_channels / 2;
  }
  return 0;
}

size_t TensorLayout::scales_per_row() const {
  switch (scheme) {
    case Scheme::kF32:
      return 0;
    case Scheme::kQc8w:
      return 1;
    case Scheme::kQb4w:
      return padded_input_channels / block_size;
  }
  return 0;
}

size_t TensorLayout::row_scale_bytes() const {
  return scales_per_row() * (scheme == Scheme::kQb4w ? sizeof(uint16_t) : sizeof(float));
}

TensorLayout MakeTensorLayout(const TensorSpec& spec, Scheme scheme, size_t block_size) {
  TensorLayout layout = {.scheme = scheme,
                         .output_channels = spec.output_channels,
                         .input_channels = spec.input_channels,
                         .padded_input_channels = spec.input_channels,
                         .block_size = 0};
  if (scheme != Scheme::kQb4w) return layout;
  while (block_size > kBlockSizes.front() && spec.input_channels % block_size != 0) block_size /= 2;
  layout.block_size = block_size;
  layout.padded_input_channels = (spec.input_channels + block_size - 1) / block_size * block_size;
  return layout;
}

}  // namespace cria
