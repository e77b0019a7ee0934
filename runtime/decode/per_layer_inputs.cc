#include "decode/per_layer_inputs.h"

#include <algorithm>
#include <utility>

#include "decode/feed_forward.h"
#include "decode/layer_steps.h"
#include "ops/rms_norm.h"
#include "ops/vector.h"

namespace cria {

PerLayerInputs::Regions PerLayerInputs::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const ModelConfig& config = shape.config;
  const uint64_t chunk = shape.options.chunk_tokens;
  const size_t size = config.hidden_size_per_layer_input;
  const uint64_t row_bytes = config.per_layer_channels() * sizeof(float);
  const size_t slack = size == 0 ? 0 : xnn::kReadableSlackBytes;
  Regions regions;
  regions.inputs = layout.Add("per-layer inputs", chunk * row_bytes, kWholeLife);
  regions.gates = layout.Add("per-layer gates", chunk * size * sizeof(float) + slack,
                             {kNextNormStep, kNextNormStep});
  regions.row = layout.Add("per-layer embeddings of a token", row_bytes, kWholeLife);
  regions.table_row =
      layout.Add("per-layer embedding rows",
                 EmbeddingReader::BufferBytes(config.num_hidden_layers, size), kWholeLife);
  return regions;
}

PerLayerInputs::PerLayerInputs(const LayerContext& context, EmbeddingReader table, float* inputs,
                               float* row)
    : config_(context.config),
      workers_(context.workers),
      hidden_(context.hidden),
      table_(std::move(table)),
      inputs_(inputs),
      row_(row) {}

Result<PerLayerInputs> PerLayerInputs::Create(const LayerContext& context, const ModelFile& file,
                                              const Regions& regions, const Arena& arena,
                                              const ArenaLayout& layout) {
  CRIA_ASSIGN_OR_RETURN(
      EmbeddingReader table,
      EmbeddingReader::Create(file, arena.Region(layout, regions.table_row),
                              TensorRole::kEmbedTokensPerLayer, context.config.num_hidden_layers));
  return PerLayerInputs(context, std::move(table), arena.Pointer<float>(layout, regions.inputs),
                        arena.Pointer<float>(layout, regions.row));
}

void PerLayerInputs::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  places.Add({.role = TensorRole::kPerLayerModelProj,
              .product = &projection_,
              .outputs = config_.per_layer_channels(),
              .inputs = hidden,
              .input = hidden_.Row(0),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = inputs_});
  places.AddVector(TensorRole::kPerLayerNorm, norm_, config_.hidden_size_per_layer_input);
}

Status PerLayerInputs::Compute(std::span<const int32_t> tokens) {
  const size_t channels = config_.per_layer_channels();
  const size_t size = config_.hidden_size_per_layer_input;
  hidden_.BeginBlock(tokens.size(), nullptr, projection_);
  CRIA_RETURN_IF_ERROR(projection_.Run(tokens.size(), OperatorKind::kPerLayer, workers_));
  workers_.ForEachRow(tokens.size(), channels, [&](size_t row) {
    float* const inputs = inputs_ + row * channels;
    for (float* layer = inputs; layer != inputs + channels; layer += size) {
      ops::RmsNorm(layer, norm_, size, config_.rms_norm_eps, layer);
    }
  });
  for (size_t row = 0; row < tokens.size(); ++row) {
    CRIA_RETURN_IF_ERROR(table_.Read(tokens[row], row_));
    ops::Add(row_, channels, inputs_ + row * channels);
  }
  workers_.Count(OperatorKind::kPerLayer);
  return {};
}

void PerLayerInputs::Keep(std::span<const uint32_t> rows) const {
  const size_t channels = config_.per_layer_channels();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != i) std::copy_n(inputs_ + rows[i] * channels, channels, inputs_ + i * channels);
  }
}

PerLayerBlock::PerLayerBlock(const LayerContext& context, const float* inputs, float* gates)
    : FeedForward(context), inputs_(inputs), gates_(gates) {}

void PerLayerBlock::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  const size_t size = config_.hidden_size_per_layer_input;
  places.Add({.role = TensorRole::kPerLayerGate,
              .product = &gate_,
              .outputs = size,
              .inputs = hidden,
              .input = hidden_.Row(0),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = gates_});
  places.Add({.role = TensorRole::kPerLayerProj,
              .product = &projection_,
              .outputs = hidden,
              .inputs = size,
              .input = gates_,
              .input_stride = size,
              .quantized = hidden_.quantized(),
              .output = hidden_.block_output()});
}

Status PerLayerBlock::Run(size_t rows) {
  CRIA_RETURN_IF_ERROR(gate_.Run(rows, OperatorKind::kPerLayer, workers_));
  const size_t size = config_.hidden_size_per_layer_input;
  const GatedAct gated_act = GatedActOf(config_.hidden_act);
  workers_.ForEachRow(rows, size, [&](size_t row) {
    float* const gates = gates_ + row * size;
    gated_act(gates, inputs_ + row * config_.per_layer_channels(), size, gates);
    hidden_.MakeReady(projection_, gates, row);
  });
  return projection_.Run(rows, OperatorKind::kPerLayer, workers_);
}

Status PerLayerBlock::RunProducts(size_t rows) {
  CRIA_RETURN_IF_ERROR(gate_.Run(rows, OperatorKind::kPerLayer, workers_));
  return projection_.Run(rows, OperatorKind::kPerLayer, workers_);
}

}  // namespace cria
