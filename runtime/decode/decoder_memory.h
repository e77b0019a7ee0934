#pragma once

#include <cstddef>

#include "core/arena.h"
#include "decode/kv_pages.h"
#include "model/config.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Maximum number of sequences of a decoder.
inline constexpr size_t kMaxSequences = 256;

struct DecoderOptions {
  size_t context_tokens = 2048;  // Of all sequences together.
  size_t chunk_tokens = 128;     // Maximum number of tokens that one Forward takes.
  KvType kv_type = KvType::kF32;
  // Maximum number of sequences that share the context. Each may be as long as the context, or as
  // the model's longest.
  size_t num_sequences = 1;
  // Maximum number of rows of logits that one product computes, but at least one for each sequence.
  // Only the time of more rows than these depends on it. More than chunk_tokens are as many as
  // chunk_tokens.
  size_t max_logit_rows = 1;
};

// Where a row of a batch stands.
struct BatchRow {
  uint32_t position;   // In its sequence.
  uint32_t cache_row;  // Among the rows of all pages of a group.
};

// The layout of a decoder's working memory. It follows from configuration, options and number of
// threads alone, so that it can be computed before a model is loaded.
struct DecoderMemory {
  ArenaLayout layout;

  // These are used during the whole life of the decoder.
  ArenaLayout::RegionId norm_weights;  // f32 [VectorElements]: norms and biases.
  // f32 [num_hidden_layers][2][key_value_heads][head_dim], middles and slopes; empty unless
  // HasKeyOffsets.
  ArenaLayout::RegionId key_offsets;
  // The rows of a layer are those of all pages of its group.
  ArenaLayout::RegionId keys;           // [num_hidden_layers][key_value_heads][rows][head_dim]
  ArenaLayout::RegionId values;         // The same shape.
  ArenaLayout::RegionId key_scales;     // f32 [num_hidden_layers][key_value_heads][rows]
  ArenaLayout::RegionId value_scales;   // The same shape; both empty unless kInt8.
  ArenaLayout::RegionId pages;          // The arrays of KvPages.
  ArenaLayout::RegionId rope_cosines;   // f32 [rope tables][longest sequence][rotary_channels / 2]
  ArenaLayout::RegionId rope_sines;     // The same shape.
  ArenaLayout::RegionId logits;         // f32 [max_logit_rows][vocab_size]
  ArenaLayout::RegionId embedding_row;  // One stored row of the embedding table and its scales.
  ArenaLayout::RegionId hidden;         // f32 [chunk][hidden_size]
  ArenaLayout::RegionId quantized;      // int8 [chunk][widest input]
  ArenaLayout::RegionId quantizations;  // RowQuantization [chunk + extra]
  ArenaLayout::RegionId rows;           // BatchRow [groups of pages][chunk]
  ArenaLayout::RegionId logit_rows;     // uint32_t [chunk]: which row of the batch each is.
  ArenaLayout::RegionId runs;           // ops::AttentionRows [groups of pages][num_sequences]

  // These are used within one layer.
  ArenaLayout::RegionId normed;  // f32 [chunk][hidden_size]
  ArenaLayout::RegionId qkv;     // f32 [chunk][qkv_channels]
  ArenaLayout::RegionId attention_scratch;
  ArenaLayout::RegionId attention_output;  // f32 [chunk][query_channels]
  ArenaLayout::RegionId gate_up;           // f32 [chunk][2 * intermediate_size]
  ArenaLayout::RegionId projected;         // f32 [chunk][hidden_size]

  // These are empty unless the model has experts. A slot is a row of an expert that the row chose:
  // there are chunk * num_experts_per_tok.
  ArenaLayout::RegionId expert_scores;         // f32 [chunk][num_experts]
  ArenaLayout::RegionId expert_choices;        // uint32_t [chunk][num_experts_per_tok]
  ArenaLayout::RegionId expert_weights;        // f32, the same shape.
  ArenaLayout::RegionId choice_slots;          // uint32_t, the same shape: the slot of each choice.
  ArenaLayout::RegionId slot_rows;             // uint32_t [slots]: the row of each.
  ArenaLayout::RegionId expert_groups;         // ExpertGroup [num_experts]
  ArenaLayout::RegionId row_groups;            // ops::RowGroup [num_experts]
  ArenaLayout::RegionId expert_quantized;      // int8 [slots][widest input of an expert]
  ArenaLayout::RegionId expert_quantizations;  // RowQuantization [slots + extra]
  ArenaLayout::RegionId expert_gate_up;        // f32 [slots][2 * moe_intermediate_size]
  ArenaLayout::RegionId expert_output;         // f32 [slots][hidden_size]
};

// The slots of one expert, which follow one another.
struct ExpertGroup {
  uint32_t expert;
  uint32_t first_slot;
  uint32_t num_slots;
};

// The width of the feed-forwards that are no experts: 0 if there are none.
size_t WidestDenseFeedForward(const ModelConfig& config);

// The options as a decoder uses them: what is more than it can be is reduced, and what is less than
// it must be is raised.
DecoderOptions EffectiveOptions(const DecoderOptions& options);

// Maximum number of tokens of one sequence.
size_t MaxSequenceTokens(const ModelConfig& config, const DecoderOptions& options);

// The context is rounded up to whole pages. The windows are those of the kinds of layers.
KvPages::Shape ShapeOfKvPages(const ModelConfig& config, const DecoderOptions& options);

// Checks the sizes; the error names the option that is wrong.
Status ValidateDecoderOptions(const ModelConfig& config, const DecoderOptions& options);

DecoderMemory PlanDecoderMemory(const ModelConfig& config, const DecoderOptions& options,
                                size_t num_threads);

// Bytes from one row of quantized activations to the next, for rows of `channels` inputs: enough
// for every form and the padding of every scheme. It is an odd number of cache lines, because rows
// whose distance is a power of two would compete for the same few places in the first-level cache.
size_t QuantizedRowStride(size_t channels);

}  // namespace cria
