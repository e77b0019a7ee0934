#include "decode/decoder_memory.h"

#include <algorithm>

#include "decode/embedding.h"
#include "decode/moe_block.h"
#include "decode/output_head.h"
#include "model/tensor_table.h"

namespace cria {
DecoderMemory PlanDecoderMemory(const ModelConfig& config, const DecoderOptions& options,
                                size_t num_threads) {
  const DecoderShape shape = {config, EffectiveOptions(options), num_threads};
  const size_t widest_input = std::max<size_t>(
      {config.hidden_size, config.most_query_channels(), config.linear_value_channels(),
       config.mamba_channels(), WidestDenseFeedForward(config), config.hidden_size_per_layer_input,
       options.has_mtp ? 2 * config.hidden_size : 0});
  DecoderMemory memory;
  ArenaLayout& layout = memory.layout;
  memory.vectors = layout.Add("norm weights", VectorElements(config) * sizeof(float), kWholeLife);
  memory.kv = KvCache::Plan(shape, layout);
  memory.sequences = layout.Add(
      "sequences", Sequences::MemoryBytes(Sequences::ShapeOf(config, shape.options)), kWholeLife);
  memory.ropes = RopeTables::Plan(shape, layout);
  memory.logits = OutputHead::Plan(shape, layout);
  memory.embedding_row =
      layout.Add("embedding row", EmbeddingReader::BufferBytes(1, config.hidden_size), kWholeLife);
  memory.hidden = HiddenState::Plan(shape, widest_input, layout);
  memory.placement = BatchPlacement::Plan(shape, layout);
  memory.attention = SelfAttention::Plan(shape, layout);
  memory.states = StateCache::Plan(shape, layout);
  memory.recurrent.convolution = ShortConvolution::Plan(shape, layout);
  memory.recurrent.delta_net = GatedDeltaNet::Plan(shape, layout);
  memory.recurrent.mamba = Mamba2::Plan(shape, layout);
  memory.feed_forward.gate_up = DenseFeedForward::Plan(shape, layout);
  memory.feed_forward.mixture = MixtureOfExperts::Plan(shape, layout);
  memory.feed_forward.moe_outputs = MoeBlock::Plan(shape, layout);
  memory.per_layer = PerLayerInputs::Plan(shape, layout);
  memory.mtp = MtpLayer::Plan(shape, layout);
  layout.Solve();
  return memory;
}

}  // namespace cria
