#include "decode/decoder_memory.h"

#include <algorithm>

#include "core/numeric.h"
#include "decode/output_head.h"
#include "model/tensor_table.h"

namespace cria {
namespace {

// The largest stored row over all schemes, which is f32 with at least one block; it is at least as
// large as the scales of any scheme.
size_t LargestEmbeddingRowBytes(const ModelConfig& config) {
  const size_t block = kBlockSizes.front();
  return DivideRoundingUp(config.hidden_size, block) * block * sizeof(float);
}

}  // namespace

DecoderMemory PlanDecoderMemory(const ModelConfig& config, const DecoderOptions& options,
                                size_t num_threads) {
  const DecoderShape shape = {config, EffectiveOptions(options), num_threads};
  const size_t widest_input =
      std::max<size_t>({config.hidden_size, config.query_channels(), config.linear_value_channels(),
                        config.mamba_channels(), WidestDenseFeedForward(config)});
  DecoderMemory memory;
  ArenaLayout& layout = memory.layout;
  memory.vectors = layout.Add("norm weights", VectorElements(config) * sizeof(float), kWholeLife);
  memory.kv = KvCache::Plan(shape, layout);
  memory.sequences = layout.Add(
      "sequences", Sequences::MemoryBytes(Sequences::ShapeOf(config, shape.options)), kWholeLife);
  memory.ropes = RopeTables::Plan(shape, layout);
  memory.logits = OutputHead::Plan(shape, layout);
  memory.embedding_row =
      layout.Add("embedding row", 2 * LargestEmbeddingRowBytes(config), kWholeLife);
  memory.hidden = HiddenState::Plan(shape, widest_input, layout);
  memory.placement = BatchPlacement::Plan(shape, layout);
  memory.attention = SelfAttention::Plan(shape, layout);
  memory.states = StateCache::Plan(shape, layout);
  memory.convolution = ShortConvolution::Plan(shape, layout);
  memory.delta_net = GatedDeltaNet::Plan(shape, layout);
  memory.mamba = Mamba2::Plan(shape, layout);
  memory.gate_up = DenseFeedForward::Plan(shape, layout);
  memory.mixture = MixtureOfExperts::Plan(shape, layout);
  layout.Solve();
  return memory;
}

}  // namespace cria
