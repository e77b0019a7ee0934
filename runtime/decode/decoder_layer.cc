#include "decode/decoder_layer.h"

namespace cria {

void DecoderLayer::AddPlaces(TensorPlaces& places, size_t hidden_size) {
  places.AddVector(TensorRole::kInputLayernorm, input_layernorm, hidden_size);
  places.AddVector(TensorRole::kAttentionOutputNorm, attention_output_norm, hidden_size);
  places.AddVector(TensorRole::kPostAttentionLayernorm, post_attention_layernorm, hidden_size);
  places.AddVector(TensorRole::kMlpOutputNorm, mlp_output_norm, hidden_size);
  mixer->AddPlaces(places);
  feed_forward->AddPlaces(places);
  if (per_layer != nullptr) per_layer->AddPlaces(places);
  places.AddVector(TensorRole::kPerLayerOutputNorm, per_layer_output_norm, hidden_size);
  places.AddVector(TensorRole::kLayerScalar, layer_scalar, 1);
}

}  // namespace cria
