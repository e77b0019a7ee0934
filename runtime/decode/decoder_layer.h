#pragma once

#include <memory>

#include "decode/layer_block.h"
#include "decode/tensor_places.h"

namespace cria {

// One layer: a token mixer and a feed-forward, each between its norms, and in some models a block
// for per-layer inputs. What the model does not have is null.
struct DecoderLayer {
  // Places of the layer's norms and of both blocks.
  void AddPlaces(TensorPlaces& places, size_t hidden_size);

  // No later layer stores anything, so rows without logits end after this one has stored them.
  bool is_last_to_store = false;
  const float* input_layernorm = nullptr;           // [hidden_size]
  const float* attention_output_norm = nullptr;     // [hidden_size]
  const float* post_attention_layernorm = nullptr;  // [hidden_size]
  const float* mlp_output_norm = nullptr;           // [hidden_size]
  std::unique_ptr<TokenMixer> mixer;
  std::unique_ptr<FeedForward> feed_forward;
  std::unique_ptr<FeedForward> per_layer;
  const float* per_layer_output_norm = nullptr;  // [hidden_size]
  const float* layer_scalar = nullptr;           // [1]
};

}  // namespace cria
