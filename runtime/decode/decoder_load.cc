// How a Decoder is created. decoder.cc has how it runs.

#include <algorithm>
#include <utility>
#include <vector>

#include "core/format.h"
#include "decode/decoder.h"
#include "decode/key_offsets.h"
#include "model/rope_table.h"

namespace cria {
Result<std::unique_ptr<Decoder>> Decoder::Create(
    const ModelFile& file, const xnn::PackedWeights& weights, const DecoderOptions& options,
    const ThreadPool& pool, const ThreadPool& batch_pool, std::mutex* pool_mutex, RankLink* link) {
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(file.config(), options));
  const DecoderOptions effective = EffectiveOptions(options);
  DecoderMemory memory = PlanDecoderMemory(file.config(), effective,
                                           std::max(pool.num_threads(), batch_pool.num_threads()));
  CRIA_ASSIGN_OR_RETURN(Arena arena, Arena::Create(memory.layout));
  std::unique_ptr<Decoder> decoder(new Decoder(file, effective, pool, batch_pool, pool_mutex,
                                               std::move(memory), std::move(arena)));
  CRIA_ASSIGN_OR_RETURN(
      decoder->embedding_,
      EmbeddingReader::Create(
          file, decoder->arena_.Region(decoder->memory_.layout, decoder->memory_.embedding_row)));
  decoder->link_ = link;
  decoder->LayOutCache();
  decoder->PrepareLayerKinds();
  CRIA_RETURN_IF_ERROR(decoder->LoadVectors());
  decoder->SubtractKeyOffsets();
  CRIA_RETURN_IF_ERROR(decoder->CreateProjections(weights));
  return decoder;
}

Decoder::Decoder(const ModelFile& file, const DecoderOptions& options, const ThreadPool& pool,
                 const ThreadPool& batch_pool, std::mutex* pool_mutex, DecoderMemory memory,
                 Arena arena)
    : file_(file),
      config_(file.config()),
      options_(options),
      pool_(pool),
      batch_pool_(batch_pool),
      pool_mutex_(pool_mutex),
      gated_act_(GatedActOf(config_.hidden_act)),
      memory_(std::move(memory)),
      arena_(std::move(arena)),
      pages_(ShapeOfKvPages(config_, options), arena_.Region(memory_.layout, memory_.pages)),
      layers_(config_.num_hidden_layers),
      hidden_(arena_.Pointer<float>(memory_.layout, memory_.hidden)),
      normed_(arena_.Pointer<float>(memory_.layout, memory_.normed)),
      qkv_(arena_.Pointer<float>(memory_.layout, memory_.qkv)),
      attention_output_(arena_.Pointer<float>(memory_.layout, memory_.attention_output)),
      gate_up_(arena_.Pointer<float>(memory_.layout, memory_.gate_up)),
      projected_(arena_.Pointer<float>(memory_.layout, memory_.projected)),
      quantized_{arena_.Pointer<int8_t>(memory_.layout, memory_.quantized),
                 arena_.Pointer<RowQuantization>(memory_.layout, memory_.quantizations)},
      rows_(arena_.Pointer<BatchRow>(memory_.layout, memory_.rows)),
      logit_rows_(arena_.Pointer<uint32_t>(memory_.layout, memory_.logit_rows)),
      runs_(arena_.Pointer<ops::AttentionRows>(memory_.layout, memory_.runs)),
      logits_(arena_.Pointer<float>(memory_.layout, memory_.logits)),
      experts_(ExpertsIn(arena_, memory_)) {}

Decoder::Experts Decoder::ExpertsIn(const Arena& arena, const DecoderMemory& memory) {
  const ArenaLayout& layout = memory.layout;
  return {.scores = arena.Pointer<float>(layout, memory.expert_scores),
          .choices = arena.Pointer<uint32_t>(layout, memory.expert_choices),
          .weights = arena.Pointer<float>(layout, memory.expert_weights),
          .slots = arena.Pointer<uint32_t>(layout, memory.choice_slots),
          .slot_rows = arena.Pointer<uint32_t>(layout, memory.slot_rows),
          .groups = arena.Pointer<ExpertGroup>(layout, memory.expert_groups),
          .row_groups = arena.Pointer<ops::RowGroup>(layout, memory.row_groups),
          .quantized = {arena.Pointer<int8_t>(layout, memory.expert_quantized),
                        arena.Pointer<RowQuantization>(layout, memory.expert_quantizations)},
          .gate_up = arena.Pointer<float>(layout, memory.expert_gate_up),
          .output = arena.Pointer<float>(layout, memory.expert_output)};
}

void Decoder::LayOutCache() {
  const size_t element_bytes = KvElementBytes(options_.kv_type);
  const std::vector<KvPageGroup::Shape> groups = KvPages::Groups(ShapeOfKvPages(config_, options_));
  auto* keys = arena_.Pointer<std::byte>(memory_.layout, memory_.keys);
  auto* values = arena_.Pointer<std::byte>(memory_.layout, memory_.values);
  auto* key_scales = arena_.Pointer<float>(memory_.layout, memory_.key_scales);
  auto* value_scales = arena_.Pointer<float>(memory_.layout, memory_.value_scales);
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].kv_group = KvPages::GroupOf(groups, config_.layer_kind(i).sliding_window);
    const size_t num_pages = groups[layers_[i].kv_group].num_pages;
    layers_[i].cache = {.type = options_.kv_type,
                        .num_key_value_heads = config_.num_key_value_heads,
                        .head_dim = config_.head_dim,
                        .num_pages = num_pages,
                        .keys = keys,
                        .values = values,
                        .rotary_dim = config_.rotary_dim};
    const size_t rows = config_.num_key_value_heads * num_pages * kKvPageTokens;
    keys += rows * config_.head_dim * element_bytes;
    values += rows * config_.head_dim * element_bytes;
    if (options_.kv_type == KvType::kInt8) {
      layers_[i].cache.key_scales = std::exchange(key_scales, key_scales + rows);
      layers_[i].cache.value_scales = std::exchange(value_scales, value_scales + rows);
    }
  }
}

void Decoder::PrepareLayerKinds() {
  const size_t table_elements = context_tokens() * (config_.rotary_channels() / 2);
  auto* const cosines = arena_.Pointer<float>(memory_.layout, memory_.rope_cosines);
  auto* const sines = arena_.Pointer<float>(memory_.layout, memory_.rope_sines);
  const std::vector<LayerKind> tables = RopeTables(config_);
  for (size_t i = 0; i < tables.size(); ++i) {
    FillRopeTable(config_, tables[i], context_tokens(), cosines + i * table_elements,
                  sines + i * table_elements);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerKind& kind = config_.layer_kind(i);
    layers_[i].is_mixture = config_.is_mixture(i);
    layers_[i].intermediate_size =
        layers_[i].is_mixture ? config_.shared_expert_intermediate_size : config_.intermediate_size;
    if (!kind.no_rope) {
      const size_t table = RopeTableOf(tables, kind);
      layers_[i].rope_cosines = cosines + table * table_elements;
      layers_[i].rope_sines = sines + table * table_elements;
    }
    layers_[i].attention = {.num_attention_heads = config_.num_attention_heads,
                            .num_key_value_heads = config_.num_key_value_heads,
                            .head_dim = config_.head_dim,
                            .window_tokens = kind.sliding_window,
                            .score_factor = kind.score_factor(),
                            .score_cap = config_.attn_logit_softcapping};
  }
}

Decoder::Place Decoder::PlaceOf(const TensorSpec& spec) {
  const size_t hidden = config_.hidden_size;
  const size_t query = config_.query_channels();
  const size_t qkv = config_.qkv_channels();
  const size_t q_norm = config_.joint_qk_norm ? query : config_.head_dim;
  const size_t k_norm = config_.joint_qk_norm ? config_.key_value_channels() : config_.head_dim;
  const float* const block_input = config_.has_norms_before() ? normed_ : hidden_;
  // Tensors outside the layers do not use it.
  Layer& layer = layers_[static_cast<size_t>(std::max(spec.layer, 0))];
  const size_t intermediate = layer.intermediate_size;
  const size_t gate_up = 2 * intermediate;
  const size_t experts = config_.num_experts;
  const size_t expert_width = config_.moe_intermediate_size;
  switch (spec.role) {
    case TensorRole::kEmbedTokens:
      return {};  // EmbeddingReader reads it.
    case TensorRole::kInputLayernorm:
      return {.vector = &layer.input_layernorm, .outputs = 1, .inputs = hidden};
    case TensorRole::kQkvProj:
      return {.product = &layer.qkv_proj,
              .outputs = qkv,
              .inputs = hidden,
              .input = block_input,
              .input_stride = hidden,
              .output = qkv_};
    case TensorRole::kQkvBias:
      return {.vector = &layer.qkv_bias, .outputs = 1, .inputs = qkv};
    case TensorRole::kQNorm:
      return {.vector = &layer.q_norm, .outputs = 1, .inputs = q_norm};
    case TensorRole::kKNorm:
      return {.vector = &layer.k_norm, .outputs = 1, .inputs = k_norm};
    case TensorRole::kOProj:
      return {.product = &layer.o_proj,
              .outputs = hidden,
              .inputs = query,
              .input = attention_output_,
              .input_stride = query,
              .output = projected_};
    case TensorRole::kOBias:
      return {.vector = &layer.o_bias, .outputs = 1, .inputs = hidden};
    case TensorRole::kPostAttentionLayernorm:
      return {.vector = &layer.post_attention_layernorm, .outputs = 1, .inputs = hidden};
    case TensorRole::kGateUpProj:
    case TensorRole::kSharedExpertGateUpProj:
      return {.product = &layer.gate_up_proj,
              .outputs = gate_up,
              .inputs = hidden,
              .input = block_input,
              .input_stride = hidden,
              .output = gate_up_};
    case TensorRole::kGateUpBias:
      return {.vector = &layer.gate_up_bias, .outputs = 1, .inputs = gate_up};
    case TensorRole::kDownProj:
    case TensorRole::kSharedExpertDownProj:
      return {.product = &layer.down_proj,
              .outputs = hidden,
              .inputs = intermediate,
              .input = gate_up_,
              .input_stride = gate_up,
              .output = projected_};
    case TensorRole::kDownBias:
      return {.vector = &layer.down_bias, .outputs = 1, .inputs = hidden};
    case TensorRole::kAttentionOutputNorm:
      return {.vector = &layer.attention_output_norm, .outputs = 1, .inputs = hidden};
    case TensorRole::kMlpOutputNorm:
      return {.vector = &layer.mlp_output_norm, .outputs = 1, .inputs = hidden};
    case TensorRole::kRouter:
      return {.vector = &layer.router, .outputs = experts, .inputs = hidden};
    case TensorRole::kExpertsGateUpProj:
      // The rows are collected where the output will be, which is written later.
      return {.product = &layer.experts_gate_up_proj,
              .outputs = experts * 2 * expert_width,
              .inputs = hidden,
              .input = experts_.output,
              .input_stride = hidden,
              .quantized = experts_.quantized,
              .output = experts_.gate_up};
    case TensorRole::kExpertsDownProj:
      return {.product = &layer.experts_down_proj,
              .outputs = experts * hidden,
              .inputs = expert_width,
              .input = experts_.gate_up,
              .input_stride = 2 * expert_width,
              .quantized = experts_.quantized,
              .output = experts_.output};
    case TensorRole::kSharedExpertGate:
      return {.vector = &layer.shared_expert_gate, .outputs = 1, .inputs = hidden};
    case TensorRole::kNorm:
      return {.vector = &norm_, .outputs = 1, .inputs = hidden};
    case TensorRole::kLmHead:
      return {.product = &lm_head_,
              // A rank may have only a part of them.
              .outputs = file_.tensor(TensorRole::kLmHead).layout.output_channels,
              .inputs = hidden,
              .input = normed_,
              .input_stride = hidden,
              .output = logits_};
  }
  return {};
}

Result<Decoder::Place> Decoder::CheckedPlaceOf(std::span<const StoredTensor> pieces,
                                               const TensorSpec& spec) {
  const Place place = PlaceOf(spec);
  const TensorLayout& layout = pieces.front().layout;
  const size_t outputs = pieces.back().first_row + pieces.back().layout.output_channels;
  if (outputs == place.outputs && layout.input_channels == place.inputs &&
      (spec.is_vector() || layout.is_plain ? place.vector != nullptr : place.product != nullptr)) {
    return place;
  }
  return Fail(ErrorCode::kInternal,
              Format("{}: the decoder has no place for {} of [{}, {}]", file_.path(), spec.Name(),
                     outputs, layout.input_channels));
}

Status Decoder::LoadVectors() {
  float* next = arena_.Pointer<float>(memory_.layout, memory_.norm_weights);
  for (const StoredTensor& tensor : file_.tensors()) {
    if (!tensor.spec.is_vector()) continue;
    CRIA_ASSIGN_OR_RETURN(const Place place, CheckedPlaceOf({&tensor, 1}, tensor.spec));
    const std::span<float> vector(std::exchange(next, next + place.inputs), place.inputs);
    const std::span<std::byte> bytes = std::as_writable_bytes(vector);
    CRIA_RETURN_IF_ERROR(tensor.part == nullptr ? file_.Read(tensor.data, bytes)
                                                : tensor.part->Read(file_, 0, 1, bytes, {}));
    *place.vector = vector.data();
  }
  return {};
}

void Decoder::SubtractKeyOffsets() {
  if (!HasKeyOffsets(config_, options_.kv_type)) return;
  const size_t channels = config_.key_value_channels();
  float* next = arena_.Pointer<float>(memory_.layout, memory_.key_offsets);
  // Layers that share a rope table have the same lines.
  const float* table = nullptr;
  std::vector<TurnLine> lines;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    if (layer.rope_cosines != table) {
      table = layer.rope_cosines;
      std::vector<double> frequencies;
      if (table != nullptr) {
        frequencies = RopeInverseFrequencies(config_, config_.layer_kind(i), context_tokens());
      }
      lines = std::vector<TurnLine>(frequencies.begin(), frequencies.end());
    }
    const std::span middles(std::exchange(next, next + channels), channels);
    const std::span slopes(std::exchange(next, next + channels), channels);
    FillKeyOffsets(lines, config_.head_dim, {layer.qkv_bias + config_.query_channels(), channels},
                   middles, slopes);
    layer.cache.key_offsets = {.middles = middles.data(),
                               .slopes = slopes.data(),
                               .cosines = layer.rope_cosines,
                               .sines = layer.rope_sines};
  }
}

Status Decoder::CreateProjections(const xnn::PackedWeights& weights) {
  KnownLinears known;
  size_t num_matrices = 0;
  for (const TensorSpec& spec : ExpectedTensors(config_)) {
    if (!spec.is_multiplied()) continue;
    // For a tied head, this is the embedding table.
    const std::span<const StoredTensor> pieces = file_.pieces(spec.role, spec.layer);
    CRIA_ASSIGN_OR_RETURN(const Place place, CheckedPlaceOf(pieces, spec));
    for (const StoredTensor& piece : pieces) {
      const TensorLayout& layout = piece.layout;
      const uint64_t used_parts = layout.num_parts == 1 ? 1 : config_.num_experts_per_tok;
      weight_bytes_per_token_ +=
          (layout.data_bytes() + layout.scale_bytes()) / layout.num_parts * used_parts;
      // Packed weights are in the order of a forward pass, like ExpectedTensors.
      const std::span<const std::byte> packed = weights.matrices()[num_matrices++];
      if (layout.is_plain) {
        *place.vector = reinterpret_cast<const float*>(packed.data());
        continue;
      }
      CRIA_ASSIGN_OR_RETURN(xnn::Linear* const linear, LinearFor(spec, piece, place, known));
      Piece& product =
          piece.first_row == 0 ? *place.product : place.product->more_pieces.emplace_back();
      product = {.linear = linear, .packed = packed};
    }
  }
  return {};
}

Result<xnn::Linear*> Decoder::LinearFor(const TensorSpec& spec, const StoredTensor& piece,
                                        const Place& place, KnownLinears& known) {
  const TensorLayout& layout = piece.layout;
  const auto alike = std::ranges::find_if(known, [&](const KnownLinear& other) {
    return other.role == spec.role && other.first_row == piece.first_row && other.layout == layout;
  });
  if (alike != known.end()) return alike->linear;
  Result<xnn::Linear> linear = xnn::Linear::Create(
      layout.Part(),
      {.input = place.input,
       .input_stride = place.input_stride,
       .quantized = place.quantized.values == nullptr ? quantized_ : place.quantized,
       .quantized_stride = QuantizedRowStride(layout.input_channels),
       .output = place.output + piece.first_row,
       .output_stride = place.outputs / layout.num_parts},
      std::max(pool_.num_threads(), batch_pool_.num_threads()));
  if (!linear) {
    return Fail(linear.error().code(),
                Format("{}: {}: {}", file_.path(), spec.Name(), linear.error().message()));
  }
  known.push_back({spec.role, piece.first_row, layout, &linears_.emplace_back(std::move(*linear))});
  return known.back().linear;
}

}  // namespace cria
