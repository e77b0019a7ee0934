#include "decode/decoder_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/tensor_table.h"
#include "xnn/linear.h"

namespace cria {
namespace {

ModelConfig Small() {
  return {.architecture = "LlamaForCausalLM",
          .hidden_size = 576,
          .intermediate_size = 1536,
          .num_hidden_layers = 30,
          .num_attention_heads = 9,
          .num_key_value_heads = 3,
          .head_dim = 64,
          .vocab_size = 49152,
          .max_position_embeddings = 8192,
          .rms_norm_eps = 1e-5f,
          .layer_kinds = {{.rope_theta = 100000.0f}}};
}

bool Apart(const ArenaLayout& layout, size_t a, size_t b) {
  return layout.offset(a) + layout.bytes(a) <= layout.offset(b) ||
         layout.offset(b) + layout.bytes(b) <= layout.offset(a);
}

TEST(DecoderMemoryTest, RegionsHoldTheirShapes) {
  const ModelConfig config = Small();
  const DecoderOptions options = {.context_tokens = 1000, .chunk_tokens = 100};
  const DecoderMemory memory = PlanDecoderMemory(config, options, 4);
  const auto expect_holds = [&](ArenaLayout::RegionId region, size_t bytes, size_t slack = 0) {
    EXPECT_GE(memory.layout.bytes(region), bytes + slack) << memory.layout.name(region);
    EXPECT_LT(memory.layout.bytes(region), bytes + slack + kArenaAlignment)
        << memory.layout.name(region);
  };
  const size_t slack = xnn::kReadableSlackBytes;
  expect_holds(memory.vectors, size_t{61} * 576 * 4);
  // 1,000 positions are 16 pages of 64.
  expect_holds(memory.kv.keys, size_t{30} * 3 * 1024 * 64 * 4);
  expect_holds(memory.kv.values, size_t{30} * 3 * 1024 * 64 * 4);
  expect_holds(memory.kv.key_scales, 0);
  expect_holds(memory.kv.value_scales, 0);
  expect_holds(
      memory.sequences,
      KvPages::MemoryBytes({.num_pages = 16, .num_sequences = 1, .sequence_tokens = 1000}));
  expect_holds(memory.ropes.cosines, size_t{1000} * 32 * 4);
  expect_holds(memory.ropes.sines, size_t{1000} * 32 * 4);
  expect_holds(memory.logits, size_t{49152} * 4);
  expect_holds(memory.embedding_row, size_t{576} * 8);
  expect_holds(memory.hidden.hidden, size_t{100} * 576 * 4);
  // 1,536 values, and 48 scales, offsets, sums and twice as many sums of halves, are 39 cache
  // lines; the distance of rows is an odd number of them.
  expect_holds(memory.hidden.quantized, size_t{100} * 39 * 64, slack);
  expect_holds(memory.hidden.quantizations,
               (100 + xnn::kExtraRowQuantizations) * sizeof(RowQuantization));
  expect_holds(memory.hidden.normed, size_t{100} * 576 * 4, slack);
  expect_holds(memory.attention.qkv, size_t{100} * (9 + 3 + 3) * 64 * 4);
  expect_holds(memory.attention.output, size_t{100} * 576 * 4, slack);
  expect_holds(memory.feed_forward.gate_up, size_t{100} * 3072 * 4, slack);
  expect_holds(memory.hidden.projected, size_t{100} * 576 * 4);
}

TEST(DecoderMemoryTest, SeveralRowsOfLogitsTakeNothingElse) {
  const auto plan = [](size_t max_logit_rows) {
    return PlanDecoderMemory(
        Small(), {.context_tokens = 1000, .chunk_tokens = 100, .max_logit_rows = max_logit_rows},
        4);
  };
  const DecoderMemory one = plan(1);
  const size_t row_bytes = size_t{49152} * 4;
  for (const auto& [max_logit_rows, rows] :
       std::vector<std::pair<size_t, size_t>>{{2, 2}, {42, 42}, {100, 100}, {101, 100}}) {
    const DecoderMemory several = plan(max_logit_rows);
    EXPECT_EQ(several.layout.bytes(several.logits), rows * row_bytes);
    EXPECT_EQ(several.layout.total_bytes() - one.layout.total_bytes(), (rows - 1) * row_bytes);
  }
}

TEST(DecoderMemoryTest, BiasesAndNormsOfHeadsLieWithTheNorms) {
  const DecoderOptions options = {.context_tokens = 64};
  const auto elements = [&](const ModelConfig& config) {
    const DecoderMemory memory = PlanDecoderMemory(config, options, 1);
    return memory.layout.bytes(memory.vectors) / sizeof(float);
  };
  const size_t plain = elements(Small());
  ModelConfig config = Small();
  config.qkv_bias = true;
  EXPECT_EQ(elements(config), plain + 30 * (9 + 3 + 3) * 64);
  config = Small();
  config.qk_norm = true;
  EXPECT_EQ(elements(config), plain + 30 * 2 * 64);
  config = Small();
  config.o_bias = true;
  EXPECT_EQ(elements(config), plain + 30 * 576);
  config = Small();
  config.mlp_bias = true;
  EXPECT_EQ(elements(config), plain + 30 * (2 * 1536 + 576));
}

TEST(DecoderMemoryTest, Int8CachesAreAQuarterWithScales) {
  const DecoderOptions floats = {.context_tokens = 512};
  const DecoderOptions bytes = {.context_tokens = 512, .kv_type = KvType::kInt8};
  const DecoderMemory f32 = PlanDecoderMemory(Small(), floats, 1);
  const DecoderMemory int8 = PlanDecoderMemory(Small(), bytes, 1);
  EXPECT_EQ(f32.layout.bytes(f32.kv.keys), 4 * int8.layout.bytes(int8.kv.keys));
  EXPECT_EQ(f32.layout.bytes(f32.kv.values), 4 * int8.layout.bytes(int8.kv.values));
  EXPECT_EQ(int8.layout.bytes(int8.kv.key_scales), size_t{30} * 3 * 512 * 4);
  EXPECT_EQ(int8.layout.bytes(int8.kv.value_scales), size_t{30} * 3 * 512 * 4);
  EXPECT_LT(int8.layout.total_bytes(), f32.layout.total_bytes());
}

TEST(DecoderMemoryTest, WhatAStepReadsAndWritesLiesApart) {
  for (const size_t num_threads : {1, 4}) {
    const DecoderMemory memory =
        PlanDecoderMemory(Small(), {.context_tokens = 2048, .chunk_tokens = 128}, num_threads);
    const ArenaLayout& layout = memory.layout;
    const std::vector<std::vector<size_t>> steps = {
        {memory.hidden.normed, memory.attention.qkv},
        {memory.attention.qkv, memory.attention.scratch, memory.attention.output},
        {memory.attention.output, memory.hidden.projected},
        {memory.hidden.projected, memory.hidden.hidden, memory.hidden.normed},
        {memory.hidden.normed, memory.feed_forward.gate_up},
        {memory.feed_forward.gate_up, memory.hidden.projected}};
    for (const auto& step : steps) {
      for (size_t i = 0; i < step.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          EXPECT_TRUE(Apart(layout, step[i], step[j]))
              << layout.name(step[j]) << " and " << layout.name(step[i]);
        }
      }
    }
    // What lives on is apart from everything.
    for (const size_t kept :
         {memory.vectors, memory.kv.key_offsets, memory.kv.keys, memory.kv.values, memory.sequences,
          memory.ropes.cosines, memory.ropes.sines, memory.logits, memory.embedding_row,
          memory.hidden.hidden, memory.hidden.quantized, memory.hidden.quantizations,
          memory.hidden.normed}) {
      for (size_t other = 0; other < layout.num_regions(); ++other) {
        if (other != kept) {
          EXPECT_TRUE(Apart(layout, kept, other))
              << layout.name(kept) << " and " << layout.name(other);
        }
      }
    }
  }
}

TEST(DecoderMemoryTest, KindsOfLayersHaveRopeTablesOfTheirOwn) {
  const auto rope_bytes = [](const std::vector<LayerKind>& kinds) {
    ModelConfig config = Small();
    config.layer_kinds = kinds;
    const DecoderMemory memory = PlanDecoderMemory(config, {.context_tokens = 512}, 1);
    EXPECT_EQ(memory.layout.bytes(memory.ropes.cosines), memory.layout.bytes(memory.ropes.sines));
    return memory.layout.bytes(memory.ropes.cosines);
  };
  const LayerKind full = {.rope_theta = 1e6f};
  const LayerKind windowed = {.sliding_window = 256, .rope_theta = 1e6f};
  const LayerKind other = {.sliding_window = 256, .rope_theta = 1e4f};
  constexpr size_t kTableBytes = size_t{512} * 32 * 4;
  EXPECT_EQ(rope_bytes({full}), kTableBytes);
  EXPECT_EQ(rope_bytes({full, windowed}), kTableBytes);
  EXPECT_EQ(rope_bytes({full, other}), 2 * kTableBytes);
  EXPECT_EQ(rope_bytes({full, windowed, other}), 2 * kTableBytes);
}

TEST(DecoderMemoryTest, LayersWithWindowsHoldFewerRows) {
  ModelConfig config = Small();
  config.layer_kinds = {{.rope_theta = 1e5f}, {.sliding_window = 512, .rope_theta = 1e5f}};
  config.kind_of_layer.assign(30, 1);
  config.kind_of_layer[4] = config.kind_of_layer[29] = 0;
  const DecoderOptions options = {
      .context_tokens = 4096, .chunk_tokens = 100, .kv_type = KvType::kInt8};
  const DecoderMemory memory = PlanDecoderMemory(config, options, 1);
  // 2 layers of 64 pages, and 28 of 11: 511 positions and a chunk of 100.
  const size_t pages = 2 * 64 + 28 * 11;
  EXPECT_EQ(memory.layout.bytes(memory.kv.keys), pages * kKvPageTokens * 3 * 64);
  EXPECT_EQ(memory.layout.bytes(memory.kv.values), memory.layout.bytes(memory.kv.keys));
  EXPECT_EQ(memory.layout.bytes(memory.kv.key_scales), pages * kKvPageTokens * 3 * 4);
  EXPECT_EQ(memory.layout.bytes(memory.kv.value_scales), memory.layout.bytes(memory.kv.key_scales));
  const KvPages::Shape shape = ShapeOfKvPages(config, options);
  EXPECT_EQ(shape.chunk_tokens, 100u);
  EXPECT_EQ(KvPages::Groups(shape).size(), 2u);
  EXPECT_GE(memory.layout.bytes(memory.sequences), KvPages::MemoryBytes(shape));
  // A chunk is never longer than the context.
  EXPECT_EQ(ShapeOfKvPages(config, {.context_tokens = 50, .chunk_tokens = 100}).chunk_tokens, 50u);
}

TEST(DecoderMemoryTest, SomeBytesAreShared) {
  const DecoderMemory memory = PlanDecoderMemory(Small(), {}, 2);
  size_t sum = 0;
  for (size_t i = 0; i < memory.layout.num_regions(); ++i) sum += memory.layout.bytes(i);
  EXPECT_LT(memory.layout.total_bytes(), sum);
}

TEST(DecoderMemoryTest, AChunkIsNeverLargerThanTheContext) {
  const DecoderMemory small =
      PlanDecoderMemory(Small(), {.context_tokens = 16, .chunk_tokens = 128}, 1);
  EXPECT_EQ(small.layout.bytes(small.hidden.hidden), size_t{16} * 576 * 4);
}

TEST(DecoderMemoryTest, TheLargestConfigurationDoesNotOverflow) {
  ModelConfig config = Small();
  config.hidden_size = 1u << 17;
  config.intermediate_size = 1u << 19;
  config.num_hidden_layers = 1024;
  config.num_attention_heads = config.num_key_value_heads = 1024;
  config.head_dim = 1024;
  config.vocab_size = 1u << 22;
  config.max_position_embeddings = 1u << 24;
  ASSERT_TRUE(ValidateConfig(config));
  const DecoderOptions options = {.context_tokens = 1u << 24, .chunk_tokens = 4096};
  ASSERT_TRUE(ValidateDecoderOptions(config, options));
  const DecoderMemory memory = PlanDecoderMemory(config, options, 256);
  // Keys and values alone: 2^10 layers, 2^20 channels, 2^24 positions, 4 bytes, twice.
  EXPECT_GT(memory.layout.total_bytes(), uint64_t{1} << 57);
  EXPECT_LT(memory.layout.total_bytes(), uint64_t{1} << 58);
  const auto refused = Arena::Create(memory.layout);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
}

TEST(DecoderOptionsTest, SizesAreBounded) {
  const ModelConfig config = Small();
  EXPECT_TRUE(ValidateDecoderOptions(config, {}));
  EXPECT_TRUE(ValidateDecoderOptions(config, {.context_tokens = 8192, .chunk_tokens = 4096}));
  EXPECT_TRUE(ValidateDecoderOptions(config, {.context_tokens = 1, .chunk_tokens = 1}));
  for (const size_t context : {size_t{0}, size_t{8193}, SIZE_MAX}) {
    const Status status = ValidateDecoderOptions(config, {.context_tokens = context});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kUsage);
    EXPECT_EQ(status.error().remedy().kind, RemedyKind::kChooseContext);
  }
  for (const size_t chunk : {size_t{0}, size_t{4097}, SIZE_MAX}) {
    const Status status = ValidateDecoderOptions(config, {.chunk_tokens = chunk});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kUsage);
    EXPECT_NE(status.error().message().find("chunk"), std::string::npos);
  }
  EXPECT_TRUE(ValidateDecoderOptions(config, {.max_logit_rows = SIZE_MAX}));
  const Status no_logits = ValidateDecoderOptions(config, {.max_logit_rows = 0});
  ASSERT_FALSE(no_logits);
  EXPECT_EQ(no_logits.error().code(), ErrorCode::kUsage);
  EXPECT_NE(no_logits.error().message().find("logits"), std::string::npos);
}

TEST(QuantizedRowStrideTest, HoldsTheLayoutOfEveryScheme) {
  for (size_t channels = 1; channels < 600; ++channels) {
    for (const size_t block_size : kBlockSizes) {
      const TensorLayout layout =
          MakeTensorLayout({TensorRole::kDownProj, 0, 1, channels}, Scheme::kQb4w, block_size);
      ASSERT_GE(QuantizedRowStride(channels),
                ops::QuantizedBlocks::Bytes(layout.padded_input_channels));
    }
    const TensorLayout blocks =
        MakeTensorLayout({TensorRole::kDownProj, 0, 1, channels}, Scheme::kW4G64, 0);
    const size_t bytes = ops::QuantizedBlocks::Bytes(blocks.padded_input_channels);
    ASSERT_GE(QuantizedRowStride(channels), bytes);
    ASSERT_LT(QuantizedRowStride(channels), bytes + 128);
    ASSERT_EQ(QuantizedRowStride(channels) % 128, 64u);
  }
}

}  // namespace
}  // namespace cria
