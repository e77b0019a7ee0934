#include "decode/decoder_memory.h"

#include <algorithm>
#include <vector>

#include "core/format.h"
#include "core/numeric.h"
#include "decode/key_offsets.h"
#include "model/rope_table.h"
#include "model/tensor_table.h"
#include "ops/attention.h"
#include "ops/products/tiled_product.h"
#include "ops/quantized_blocks.h"
#include "xnn/linear.h"

namespace cria {
namespace {

// The order in which a layer uses its buffers; both norms begin with adding the projected rows. The
// lifetime of a buffer is from the step that writes it to the last step that reads it.
enum LayerStep : int {
  kNormStep,
  kQkvStep,
  kAttentionStep,
  kOutputStep,
  kFeedForwardNormStep,
  kGateUpStep,
  kDownStep,
  kNextNormStep,
};

// The largest stored row over all schemes, which is f32 with at least one block; it is at least as
// large as the scales of any scheme.
size_t LargestEmbeddingRowBytes(const ModelConfig& config) {
  const size_t block = kBlockSizes.front();
  return DivideRoundingUp(config.hidden_size, block) * block * sizeof(float);
}

// The sum of all layers' pages.
uint64_t NumLayerPages(const ModelConfig& config, const KvPages::Shape& shape) {
  const std::vector<KvPageGroup::Shape> groups = KvPages::Groups(shape);
  uint64_t num_pages = 0;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    num_pages += groups[KvPages::GroupOf(groups, config.layer_kind(i).sliding_window)].num_pages;
  }
  return num_pages;
}

void AddExpertRegions(const ModelConfig& config, uint64_t chunk, DecoderMemory& memory) {
  constexpr Lifetime kMixture = {kGateUpStep, kNextNormStep};
  ArenaLayout& layout = memory.layout;
  const uint64_t experts = config.num_experts;
  const uint64_t slots = chunk * config.num_experts_per_tok;
  const uint64_t slack = experts == 0 ? 0 : xnn::kReadableSlackBytes;
  const uint64_t extra = experts == 0 ? 0 : xnn::kExtraRowQuantizations;
  const size_t width = config.moe_intermediate_size;
  const size_t stride = QuantizedRowStride(std::max<size_t>(config.hidden_size, width));
  memory.expert_scores = layout.Add("scores of experts", chunk * experts * sizeof(float), kMixture);
  memory.expert_choices = layout.Add("chosen experts", slots * sizeof(uint32_t), kMixture);
  memory.expert_weights = layout.Add("weights of experts", slots * sizeof(float), kMixture);
  memory.choice_slots = layout.Add("places of experts", slots * sizeof(uint32_t), kMixture);
  memory.slot_rows = layout.Add("rows of experts", slots * sizeof(uint32_t), kMixture);
  memory.expert_groups = layout.Add("groups of experts", experts * sizeof(ExpertGroup), kMixture);
  memory.row_groups = layout.Add("products of experts", experts * sizeof(ops::RowGroup), kMixture);
  memory.expert_quantized =
      layout.Add("experts' quantized activations", slots * stride + slack, kMixture);
  memory.expert_quantizations = layout.Add("experts' quantization parameters",
                                           (slots + extra) * sizeof(RowQuantization), kMixture);
  memory.expert_gate_up =
      layout.Add("experts' gate and up rows", slots * 2 * width * sizeof(float) + slack, kMixture);
  memory.expert_output = layout.Add("experts' output rows",
                                    slots * config.hidden_size * sizeof(float) + slack, kMixture);
}

}  // namespace

size_t WidestDenseFeedForward(const ModelConfig& config) {
  return std::max(config.has_dense_layers() ? config.intermediate_size : 0,
                  config.shared_expert_intermediate_size);
}

size_t QuantizedRowStride(size_t channels) {
  constexpr size_t kLineBytes = 64;
  const size_t padded = DivideRoundingUp(channels, kMaxPaddedBlock) * kMaxPaddedBlock;
  return (DivideRoundingUp(ops::QuantizedBlocks::Bytes(padded), kLineBytes) | 1) * kLineBytes;
}

DecoderOptions EffectiveOptions(const DecoderOptions& options) {
  DecoderOptions effective = options;
  effective.chunk_tokens = std::min(options.chunk_tokens, options.context_tokens);
  effective.max_logit_rows =
      std::min(std::max(options.max_logit_rows, options.num_sequences), effective.chunk_tokens);
  return effective;
}

size_t MaxSequenceTokens(const ModelConfig& config, const DecoderOptions& options) {
  return std::min<size_t>(options.context_tokens, config.longest_context());
}

KvPages::Shape ShapeOfKvPages(const ModelConfig& config, const DecoderOptions& options) {
  KvPages::Shape shape = {.num_pages = NumKvPages(options.context_tokens),
                          .num_sequences = options.num_sequences,
                          .sequence_tokens = MaxSequenceTokens(config, options),
                          .chunk_tokens = EffectiveOptions(options).chunk_tokens,
                          .windows = {}};
  for (const LayerKind& kind : config.layer_kinds) shape.windows.push_back(kind.sliding_window);
  return shape;
}

Status ValidateDecoderOptions(const ModelConfig& config, const DecoderOptions& options) {
  if (options.num_sequences == 0 || options.num_sequences > kMaxSequences) {
    return Fail(ErrorCode::kUsage,
                Format("{} sequences are outside 1 to {}", options.num_sequences, kMaxSequences));
  }
  const uint64_t longest = uint64_t{config.longest_context()} * options.num_sequences;
  if (options.context_tokens == 0 || options.context_tokens > longest) {
    return Fail(ErrorCode::kUsage,
                Format("a context of {} tokens is outside 1 to {}, which the model was made for{}",
                       options.context_tokens, longest,
                       options.num_sequences == 1 ? "" : " times the number of sequences"),
                RemedyKind::kChooseContext);
  }
  constexpr size_t kMaxChunkTokens = 4096;
  if (options.chunk_tokens == 0 || options.chunk_tokens > kMaxChunkTokens) {
    return Fail(ErrorCode::kUsage, Format("a prefill chunk of {} tokens is outside 1 to {}",
                                          options.chunk_tokens, kMaxChunkTokens));
  }
  const size_t num_pages = NumKvPages(options.context_tokens);
  if (options.num_sequences > num_pages) {
    return Fail(ErrorCode::kUsage,
                Format("{} sequences need a page of {} tokens each, and a context of {} has "
                       "{} pages",
                       options.num_sequences, kKvPageTokens, options.context_tokens, num_pages),
                RemedyKind::kLargerContext);
  }
  if (options.num_sequences > EffectiveOptions(options).chunk_tokens) {
    return Fail(ErrorCode::kUsage, Format("{} sequences do not fit a prefill chunk of {} tokens",
                                          options.num_sequences, options.chunk_tokens));
  }
  if (options.max_logit_rows == 0) {
    return Fail(ErrorCode::kUsage, "a product of 0 rows of logits computes nothing");
  }
  return {};
}

DecoderMemory PlanDecoderMemory(const ModelConfig& config, const DecoderOptions& given,
                                size_t num_threads) {
  constexpr uint64_t kFloat = sizeof(float);
  const DecoderOptions options = EffectiveOptions(given);
  const size_t context = MaxSequenceTokens(config, options);
  const uint64_t chunk = options.chunk_tokens;
  const uint64_t logit_rows = options.max_logit_rows;
  const size_t hidden = config.hidden_size;
  const uint64_t rope_entries =
      RopeTables(config).size() * uint64_t{context} * (config.rotary_channels() / 2);
  const KvPages::Shape pages = ShapeOfKvPages(config, options);
  const uint64_t num_groups = KvPages::Groups(pages).size();
  const uint64_t kv_rows =
      NumLayerPages(config, pages) * config.num_key_value_heads * kKvPageTokens;
  const bool kv_is_int8 = options.kv_type == KvType::kInt8;
  const uint64_t kv_bytes = kv_rows * config.head_dim * KvElementBytes(options.kv_type);
  const uint64_t kv_scale_bytes = kv_is_int8 ? kv_rows * kFloat : 0;
  const size_t dense_width = WidestDenseFeedForward(config);
  const size_t widest_input = std::max({hidden, config.query_channels(), dense_width});
  // XNNPACK may read a few bytes after the end of every input.
  const size_t slack = xnn::kReadableSlackBytes;

  DecoderMemory memory;
  ArenaLayout& layout = memory.layout;
  memory.norm_weights = layout.Add("norm weights", VectorElements(config) * kFloat, kWholeLife);
  memory.key_offsets =
      layout.Add("KV cache: key offsets",
                 HasKeyOffsets(config, options.kv_type)
                     ? uint64_t{config.num_hidden_layers} * 2 * config.key_value_channels() * kFloat
                     : 0,
                 kWholeLife);
  memory.keys = layout.Add("KV cache: keys", kv_bytes, kWholeLife);
  memory.values = layout.Add("KV cache: values", kv_bytes, kWholeLife);
  memory.key_scales = layout.Add("KV cache: key scales", kv_scale_bytes, kWholeLife);
  memory.value_scales = layout.Add("KV cache: value scales", kv_scale_bytes, kWholeLife);
  memory.pages = layout.Add("KV cache: pages", KvPages::MemoryBytes(pages), kWholeLife);
  memory.rope_cosines = layout.Add("rope table: cosines", rope_entries * kFloat, kWholeLife);
  memory.rope_sines = layout.Add("rope table: sines", rope_entries * kFloat, kWholeLife);
  memory.logits = layout.Add("logits", logit_rows * config.vocab_size * kFloat, kWholeLife);
  memory.embedding_row =
      layout.Add("embedding row", 2 * LargestEmbeddingRowBytes(config), kWholeLife);
  // Without norms before them, products read the hidden state.
  memory.hidden =
      layout.Add("hidden state", chunk * hidden * kFloat + (config.has_norms_before() ? 0 : slack),
                 kWholeLife);
  memory.quantized = layout.Add("quantized activations",
                                chunk * QuantizedRowStride(widest_input) + slack, kWholeLife);
  memory.quantizations =
      layout.Add("quantization parameters",
                 (chunk + xnn::kExtraRowQuantizations) * sizeof(RowQuantization), kWholeLife);
  memory.rows = layout.Add("rows of a batch", num_groups * chunk * sizeof(BatchRow), kWholeLife);
  memory.logit_rows = layout.Add("logit rows of a batch", chunk * sizeof(uint32_t), kWholeLife);
  memory.runs =
      layout.Add("runs of a batch", num_groups * options.num_sequences * sizeof(ops::AttentionRows),
                 kWholeLife);

  memory.normed = layout.Add("normalized rows", chunk * hidden * kFloat + slack, kWholeLife);
  memory.qkv = layout.Add("queries, keys and values", chunk * config.qkv_channels() * kFloat,
                          {kQkvStep, kAttentionStep});
  const ops::AttentionShape shape = {config.num_attention_heads, config.num_key_value_heads,
                                     config.head_dim};
  memory.attention_scratch = layout.Add(
      "attention scratch",
      ops::AttentionScratchBytes(
          shape,
          {.rows = options.chunk_tokens, .runs = options.num_sequences, .context_tokens = context},
          num_threads),
      {kAttentionStep, kAttentionStep});
  memory.attention_output =
      layout.Add("attention output", chunk * config.query_channels() * kFloat + slack,
                 {kAttentionStep, kOutputStep});
  memory.gate_up = layout.Add("gate and up rows", chunk * 2 * dense_width * kFloat + slack,
                              {kGateUpStep, kDownStep});
  memory.projected =
      layout.Add("projected rows", chunk * hidden * kFloat, {kOutputStep, kNextNormStep});
  AddExpertRegions(config, chunk, memory);
  layout.Solve();
  return memory;
}

}  // namespace cria
