// How a Decoder is created. decoder.cc has how it runs.

#include <algorithm>
#include <format>
#include <utility>

#include "decode/decoder.h"
#include "decode/rope_table.h"

namespace cria {

Result<std::unique_ptr<Decoder>> Decoder::Create(const ModelFile& file,
                                                 const xnn::PackedWeights& weights,
                                                 const DecoderOptions& options,
                                                 const ThreadPool& pool,
                                                 const ThreadPool& batch_pool) {
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(file.config(), options));
  DecoderOptions effective = options;
  effective.chunk_tokens = std::min(options.chunk_tokens, options.context_tokens);
  DecoderMemory memory = PlanDecoderMemory(file.config(), effective,
                                           std::max(pool.num_threads(), batch_pool.num_threads()));
  CRIA_ASSIGN_OR_RETURN(Arena arena, Arena::Create(memory.layout));
  std::unique_ptr<Decoder> decoder(
      new Decoder(file, effective, pool, batch_pool, std::move(memory), std::move(arena)));
  CRIA_ASSIGN_OR_RETURN(
      decoder->embedding_,
      EmbeddingReader::Create(
          file, decoder->arena_.Region(decoder->memory_.layout, decoder->memory_.embedding_row)));
  decoder->LayOutCache();
  FillRopeTable(decoder->config_, effective.context_tokens, decoder->rope_cosines_,
                decoder->rope_sines_);
  CRIA_RETURN_IF_ERROR(decoder->LoadVectors());
  CRIA_RETURN_IF_ERROR(decoder->CreateProjections(weights));
  return decoder;
}

Decoder::Decoder(const ModelFile& file, const DecoderOptions& options, const ThreadPool& pool,
                 const ThreadPool& batch_pool, DecoderMemory memory, Arena arena)
    : file_(file),
      config_(file.config()),
      options_(options),
      pool_(pool),
      batch_pool_(batch_pool),
      memory_(std::move(memory)),
      arena_(std::move(arena)),
      layers_(config_.num_hidden_layers),
      hidden_(arena_.Pointer<float>(memory_.layout, memory_.hidden)),
      normed_(arena_.Pointer<float>(memory_.layout, memory_.normed)),
      qkv_(arena_.Pointer<float>(memory_.layout, memory_.qkv)),
      attention_output_(arena_.Pointer<float>(memory_.layout, memory_.attention_output)),
      gate_up_(arena_.Pointer<float>(memory_.layout, memory_.gate_up)),
      projected_(arena_.Pointer<float>(memory_.layout, memory_.projected)),
      quantized_{arena_.Pointer<int8_t>(memory_.layout, memory_.quantized),
                 arena_.Pointer<RowQuantization>(memory_.layout, memory_.quantizations)},
      logits_(arena_.Pointer<float>(memory_.layout, memory_.logits)),
      rope_cosines_(arena_.Pointer<float>(memory_.layout, memory_.rope_cosines)),
      rope_sines_(arena_.Pointer<float>(memory_.layout, memory_.rope_sines)) {}

void Decoder::LayOutCache() {
  const size_t element_bytes = KvElementBytes(options_.kv_type);
  const size_t layer_rows = size_t{config_.num_key_value_heads} * options_.context_tokens;
  const size_t layer_bytes = layer_rows * config_.head_dim * element_bytes;
  auto* keys = arena_.Pointer<std::byte>(memory_.layout, memory_.keys);
  auto* values = arena_.Pointer<std::byte>(memory_.layout, memory_.values);
  auto* key_scales = arena_.Pointer<float>(memory_.layout, memory_.key_scales);
  auto* value_scales = arena_.Pointer<float>(memory_.layout, memory_.value_scales);
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].cache = {.type = options_.kv_type,
                        .num_key_value_heads = config_.num_key_value_heads,
                        .head_dim = config_.head_dim,
                        .capacity_tokens = options_.context_tokens,
                        .keys = keys + i * layer_bytes,
                        .values = values + i * layer_bytes};
    if (options_.kv_type == KvType::kInt8) {
      layers_[i].cache.key_scales = key_scales + i * layer_rows;
      layers_[i].cache.value_scales = value_scales + i * layer_rows;
    }
  }
}

const float*& Decoder::PlaceOf(const TensorSpec& vector) {
  if (vector.role == TensorRole::kNorm) return norm_;
  Layer& layer = layers_[static_cast<size_t>(vector.layer)];
  switch (vector.role) {
    case TensorRole::kQkvBias:
      return layer.qkv_bias;
    case TensorRole::kQNorm:
      return layer.q_norm;
    case TensorRole::kKNorm:
      return layer.k_norm;
    case TensorRole::kOBias:
      return layer.o_bias;
    case TensorRole::kPostAttentionLayernorm:
      return layer.post_attention_layernorm;
    case TensorRole::kGateUpBias:
      return layer.gate_up_bias;
    case TensorRole::kDownBias:
      return layer.down_bias;
    default:
      return layer.input_layernorm;
  }
}

Status Decoder::LoadVectors() {
  float* next = arena_.Pointer<float>(memory_.layout, memory_.norm_weights);
  for (const StoredTensor& tensor : file_.tensors()) {
    if (!tensor.spec.is_vector()) continue;
    const size_t size = tensor.spec.input_channels;
    const std::span<float> vector(std::exchange(next, next + size), size);
    CRIA_RETURN_IF_ERROR(file_.Read(tensor.data, std::as_writable_bytes(vector)));
    PlaceOf(tensor.spec) = vector.data();
  }
  return {};
}

Status Decoder::CreateProjections(const xnn::PackedWeights& weights) {
  struct Place {
    const float* input;
    size_t input_stride;
    float* output;
    Projection* projection;
  };
  const size_t hidden = config_.hidden_size;
  const size_t intermediate = config_.intermediate_size;
  // The places, in the order of MultipliedMatrices.
  std::vector<Place> places;
  for (Layer& layer : layers_) {
    places.push_back({normed_, hidden, qkv_, &layer.qkv_proj});
    places.push_back({attention_output_, config_.query_channels(), projected_, &layer.o_proj});
    places.push_back({normed_, hidden, gate_up_, &layer.gate_up_proj});
    places.push_back({gate_up_, 2 * intermediate, projected_, &layer.down_proj});
  }
  places.push_back({normed_, hidden, logits_, &lm_head_});

  // All layers have the same shapes, so the operators of one layer serve all.
  const std::vector<const StoredTensor*> tensors = MultipliedMatrices(file_);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorLayout& layout = tensors[i]->layout;
    weight_bytes_per_token_ += layout.data_bytes() + layout.scale_bytes();
    const Place& place = places[i];
    place.projection->packed = weights.matrices()[i];
    const auto end = tensors.begin() + static_cast<ptrdiff_t>(i);
    const auto alike = std::find_if(tensors.begin(), end, [&](const StoredTensor* other) {
      return other->spec.role == tensors[i]->spec.role && other->layout == layout;
    });
    if (alike != end) {
      const auto known = static_cast<size_t>(alike - tensors.begin());
      place.projection->linear = places[known].projection->linear;
      continue;
    }
    Result<xnn::Linear> linear =
        xnn::Linear::Create(layout, {.input = place.input,
                                     .input_stride = place.input_stride,
                                     .quantized = quantized_,
                                     .quantized_stride = QuantizedRowStride(layout.input_channels),
                                     .output = place.output});
    if (!linear) {
      return Fail(linear.error().code(),
                  std::format("{}: {}: {}", file_.path(), tensors[i]->spec.Name(),
                              linear.error().message()));
    }
    place.projection->linear = &linears_.emplace_back(std::move(*linear));
  }
  return {};
}

}  // namespace cria
