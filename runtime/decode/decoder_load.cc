// How a Decoder is created. decoder.cc has how it runs.

#include <utility>
#include <vector>

#include "decode/decoder.h"
#include "decode/feed_forward.h"
#include "decode/gated_delta_net.h"
#include "decode/key_offsets.h"
#include "decode/load_weights.h"
#include "decode/mamba2.h"
#include "decode/mixture.h"
#include "decode/moe_block.h"
#include "decode/self_attention.h"
#include "decode/short_convolution.h"
#include "decode/ungated_feed_forward.h"

namespace cria {

Result<std::unique_ptr<Decoder>> Decoder::Create(
    const ModelFile& file, const xnn::PackedWeights& weights, const DecoderOptions& options,
    const ThreadPool& pool, const ThreadPool& batch_pool, std::mutex* pool_mutex, RankLink& ranks) {
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(file.config(), options));
  const Workers workers(pool, batch_pool, options.num_sequences, pool_mutex);
  DecoderMemory memory = PlanDecoderMemory(file.config(), options, workers.max_threads());
  CRIA_ASSIGN_OR_RETURN(Arena arena, Arena::Create(memory.layout));
  CRIA_ASSIGN_OR_RETURN(
      EmbeddingReader embedding,
      EmbeddingReader::Create(file, arena.Region(memory.layout, memory.embedding_row)));
  std::unique_ptr<Decoder> decoder(
      new Decoder({file.config(), EffectiveOptions(options), workers.max_threads()}, workers, ranks,
                  std::move(memory), std::move(arena), std::move(embedding)));
  CRIA_RETURN_IF_ERROR(decoder->Load(file, weights));
  return decoder;
}

Decoder::Decoder(const DecoderShape& shape, const Workers& workers, RankLink& ranks,
                 DecoderMemory memory, Arena arena, EmbeddingReader embedding)
    : shape_(shape),
      workers_(workers),
      ranks_(ranks),
      memory_(std::move(memory)),
      arena_(std::move(arena)),
      embedding_(std::move(embedding)),
      ropes_(shape_, memory_.ropes, ArenaView(arena_, memory_.layout)),
      sequences_(Sequences::ShapeOf(shape_.config, shape_.options),
                 arena_.Region(memory_.layout, memory_.sequences)),
      cache_(shape_, memory_.kv, ArenaView(arena_, memory_.layout), ropes_),
      states_(shape_, memory_.states, ArenaView(arena_, memory_.layout)),
      placement_(shape_, memory_.placement, ArenaView(arena_, memory_.layout), ropes_),
      hidden_(shape_, memory_.hidden, ArenaView(arena_, memory_.layout), workers_, ranks_),
      head_(shape_, arena_.Pointer<float>(memory_.layout, memory_.logits), workers_, ranks_,
            hidden_),
      layers_(shape_.config.num_hidden_layers) {}

Status Decoder::Load(const ModelFile& file, const xnn::PackedWeights& weights) {
  const ModelConfig& config = shape_.config;
  const ArenaView arena(arena_, memory_.layout);
  const LayerContext context = {config, workers_, ranks_, hidden_};
  const SelfAttention::Buffers attention_buffers(memory_.attention, arena);
  const MixtureOfExperts::Buffers mixture_buffers(memory_.feed_forward.mixture, arena);
  const GatedDeltaNet::Buffers delta_net_buffers(memory_.recurrent.delta_net, arena);
  const Mamba2::Buffers mamba_buffers(memory_.recurrent.mamba, arena);
  auto* const convolved = arena.Pointer<float>(memory_.recurrent.convolution.projected);
  auto* const gate_up = arena.Pointer<float>(memory_.feed_forward.gate_up);

  TensorPlaces places;
  // A rank may have only a part of the head.
  head_.AddPlaces(places, file.tensor(TensorRole::kLmHead).layout.output_channels);
  if (config.hidden_size_per_layer_input != 0) {
    CRIA_ASSIGN_OR_RETURN(
        PerLayerInputs inputs,
        PerLayerInputs::Create(context, file, memory_.per_layer, arena_, memory_.layout));
    per_layer_inputs_ = std::make_unique<PerLayerInputs>(std::move(inputs));
    per_layer_inputs_->AddPlaces(places);
  }
  std::vector<const SelfAttention*> attentions;
  attentions.reserve(layers_.size());
  size_t last_to_store = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    DecoderLayer& layer = layers_[i];
    if (config.layer_kind(i).short_conv) {
      layer.mixer = std::make_unique<ShortConvolution>(context, convolved, states_.layer(i));
      attentions.push_back(nullptr);
    } else if (config.layer_kind(i).linear_attention) {
      layer.mixer = std::make_unique<GatedDeltaNet>(context, delta_net_buffers, states_.layer(i));
      attentions.push_back(nullptr);
    } else if (config.layer_kind(i).mamba) {
      layer.mixer = std::make_unique<Mamba2>(context, mamba_buffers, states_.layer(i));
      attentions.push_back(nullptr);
    } else {
      auto attention = std::make_unique<SelfAttention>(context, config.layer_kind(i),
                                                       attention_buffers, cache_.layer(i));
      attentions.push_back(attention.get());
      layer.mixer = std::move(attention);
    }
    if (config.layer_kind(i).stores_tokens()) last_to_store = i;
    if (config.is_mixture(i) && config.enable_moe_block) {
      layer.feed_forward =
          std::make_unique<MoeBlock>(context, config.layer_kind(i), mixture_buffers, gate_up,
                                     arena.Pointer<float>(memory_.feed_forward.moe_outputs));
    } else if (config.is_mixture(i)) {
      layer.feed_forward = std::make_unique<MixtureOfExperts>(context, mixture_buffers, gate_up);
    } else if (config.ungated_mlp) {
      layer.feed_forward = std::make_unique<UngatedFeedForward>(context, i, gate_up);
    } else {
      layer.feed_forward = std::make_unique<DenseFeedForward>(
          context, config.intermediate_size_of(config.layer_kind(i)), gate_up,
          DenseFeedForward::Roles{});
    }
    if (per_layer_inputs_ != nullptr) {
      layer.per_layer = std::make_unique<PerLayerBlock>(
          context, per_layer_inputs_->OfLayer(i), arena.Pointer<float>(memory_.per_layer.gates));
    }
    places.BeginLayer(static_cast<int>(i));
    layer.AddPlaces(places, config.hidden_size);
  }
  layers_[last_to_store].is_last_to_store = true;

  CRIA_RETURN_IF_ERROR(LoadVectors(file, places, arena.Pointer<float>(memory_.vectors)));
  if (HasKeyOffsets(config, shape_.options.kv_type)) {
    std::vector<const float*> key_biases;
    key_biases.reserve(attentions.size());
    for (const SelfAttention* attention : attentions) {
      key_biases.push_back(attention == nullptr ? nullptr : attention->key_bias());
    }
    cache_.SubtractKeyOffsets(key_biases);
  }
  CRIA_ASSIGN_OR_RETURN(weight_bytes_per_token_,
                        LoadMatrices(file, places, weights, shape_.num_threads, linears_));
  return {};
}

}  // namespace cria
