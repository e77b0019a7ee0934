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
      hidden_(shape_, memory_.hidden, ArenaView(arena_, memory_.layout), workers_, ranks_,
              shape_.config.rotated_residual),
      head_(shape_, arena_.Pointer<float>(memory_.layout, memory_.logits), workers_, ranks_,
            hidden_),
      layers_(shape_.config.num_hidden_layers) {}

const SelfAttention* Decoder::MakeBlocks(size_t index, const LayerContext& context,
                                         DecoderLayer& layer) {
  const ModelConfig& config = shape_.config;
  const LayerKind& kind = config.layer_kind(index);
  const ArenaView arena(arena_, memory_.layout);
  const SelfAttention* attention = nullptr;
  if (kind.short_conv) {
    layer.mixer = std::make_unique<ShortConvolution>(
        context, arena.Pointer<float>(memory_.recurrent.convolution.projected),
        states_.layer(index));
  } else if (kind.linear_attention) {
    layer.mixer = std::make_unique<GatedDeltaNet>(
        context, GatedDeltaNet::Buffers(memory_.recurrent.delta_net, arena), states_.layer(index));
  } else if (kind.mamba) {
    layer.mixer = std::make_unique<Mamba2>(context, Mamba2::Buffers(memory_.recurrent.mamba, arena),
                                           states_.layer(index));
  } else {
    // The layer that guesses has no row for the first token.
    const size_t begin_position = index == config.num_hidden_layers ? 1 : 0;
    auto mixer = std::make_unique<SelfAttention>(context, kind,
                                                 SelfAttention::Buffers(memory_.attention, arena),
                                                 cache_.layer(index), begin_position);
    attention = mixer.get();
    layer.mixer = std::move(mixer);
  }
  const MixtureOfExperts::Buffers mixture(memory_.feed_forward.mixture, arena);
  auto* const gate_up = arena.Pointer<float>(memory_.feed_forward.gate_up);
  if (config.is_mixture(index) && config.enable_moe_block) {
    layer.feed_forward = std::make_unique<MoeBlock>(
        context, kind, mixture, gate_up, arena.Pointer<float>(memory_.feed_forward.moe_outputs));
  } else if (config.is_mixture(index)) {
    layer.feed_forward = std::make_unique<MixtureOfExperts>(context, mixture, gate_up);
  } else if (config.ungated_mlp) {
    layer.feed_forward = std::make_unique<UngatedFeedForward>(context, index, gate_up);
  } else {
    layer.feed_forward = std::make_unique<DenseFeedForward>(
        context, config.intermediate_size_of(kind), gate_up, DenseFeedForward::Roles{});
  }
  return attention;
}

Status Decoder::Load(const ModelFile& file, const xnn::PackedWeights& weights) {
  const ModelConfig& config = shape_.config;
  const ArenaView arena(arena_, memory_.layout);
  const LayerContext context = {config, workers_, ranks_, hidden_};
  TensorPlaces places;
  // A rank may have only a part of the head.
  const size_t head_channels = file.tensor(TensorRole::kLmHead).layout.output_channels;
  head_.AddPlaces(places, head_channels);
  if (shape_.options.has_mtp) {
    mtp_ = std::make_unique<MtpLayer>(shape_, memory_.mtp, memory_.hidden, arena, workers_, ranks_,
                                      hidden_, states_.layer(config.num_hidden_layers + 1));
    mtp_->AddHeadPlace(places, head_channels);
  }
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
    attentions.push_back(MakeBlocks(i, context, layer));
    if (config.layer_kind(i).stores_tokens()) last_to_store = i;
    if (per_layer_inputs_ != nullptr) {
      layer.per_layer = std::make_unique<PerLayerBlock>(
          context, per_layer_inputs_->OfLayer(i), arena.Pointer<float>(memory_.per_layer.gates));
    }
    places.BeginLayer(static_cast<int>(i));
    layer.AddPlaces(places, config.hidden_size);
  }
  if (mtp_ == nullptr) {
    layers_[last_to_store].is_last_to_store = true;
  } else {
    MakeBlocks(config.num_hidden_layers, {config, workers_, ranks_, mtp_->hidden()}, mtp_->layer());
    places.BeginLayer(static_cast<int>(config.num_hidden_layers));
    mtp_->AddPlaces(places);
  }

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
