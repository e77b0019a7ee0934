#pragma once

#include <cstddef>

#include "core/arena.h"
#include "decode/batch_placement.h"
#include "decode/decoder_options.h"
#include "decode/gated_delta_net.h"
#include "decode/hidden_state.h"
#include "decode/kv_cache.h"
#include "decode/mamba2.h"
#include "decode/mixture.h"
#include "decode/mtp_layer.h"
#include "decode/per_layer_inputs.h"
#include "decode/rope_tables.h"
#include "decode/self_attention.h"
#include "decode/sequences.h"
#include "decode/short_convolution.h"
#include "decode/state_cache.h"
#include "model/config.h"

namespace cria {

// The buffers of recurrent layers.
struct RecurrentRegions {
  ShortConvolution::Regions convolution;
  GatedDeltaNet::Regions delta_net;
  Mamba2::Regions mamba;
};

struct FeedForwardRegions {
  ArenaLayout::RegionId gate_up;  // DenseFeedForward's region.
  MixtureOfExperts::Regions mixture;
  ArenaLayout::RegionId moe_outputs;  // MoeBlock's.
};

// The layout of a decoder's working memory: each part of the decoder plans its own regions. It
// follows from configuration, options and number of threads alone, so that it can be computed
// before a model is loaded.
struct DecoderMemory {
  ArenaLayout layout;
  ArenaLayout::RegionId vectors;        // f32 [VectorElements]: norms and biases.
  ArenaLayout::RegionId embedding_row;  // The buffer of the embedding table's EmbeddingReader.
  ArenaLayout::RegionId sequences;      // The arrays of Sequences.
  KvCache::Regions kv;
  RopeTables::Regions ropes;
  BatchPlacement::Regions placement;
  HiddenState::Regions hidden;
  SelfAttention::Regions attention;
  StateCache::Regions states;
  RecurrentRegions recurrent;
  FeedForwardRegions feed_forward;
  PerLayerInputs::Regions per_layer;
  MtpLayer::Regions mtp;
  ArenaLayout::RegionId logits;
};

DecoderMemory PlanDecoderMemory(const ModelConfig& config, const DecoderOptions& options,
                                size_t num_threads);

}  // namespace cria
