// Layers that differ in the sizes of heads, in whose keys and values they read, and in what is
// around their halves.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/config.h"
#include "model/refused_config.h"
#include "model/tensor_table.h"

namespace cria {
namespace {

// As in a small Gemma 4: two layers with keys and values of their own, with and without a window,
// and two that read them.
ModelConfig SharingConfig() {
  ModelConfig config = {.architecture = "Gemma4ForCausalLM",
                        .hidden_size = 64,
                        .intermediate_size = 96,
                        .num_hidden_layers = 4,
                        .num_attention_heads = 8,
                        .num_key_value_heads = 2,
                        .head_dim = 16,
                        .vocab_size = 300,
                        .max_position_embeddings = 128,
                        .rms_norm_eps = 1e-6f,
                        .tie_word_embeddings = true,
                        .qk_norm = true};
  const LayerKind sliding = {.sliding_window = 12, .rope_theta = 1e4f};
  const LayerKind full = {
      .rope_theta = 1e6f, .global_head_dim = 32, .num_global_key_value_heads = 1};
  config.layer_kinds = {sliding, full, sliding, full};
  config.layer_kinds[2].kv_shared_layer = 1;
  config.layer_kinds[2].use_double_wide_mlp = true;
  config.layer_kinds[3].kv_shared_layer = 2;
  config.layer_kinds[3].use_double_wide_mlp = true;
  config.kind_of_layer = {0, 1, 2, 3};
  config.norm_placement = NormPlacement::kBeforeAndAfter;
  config.v_norm = true;
  config.hidden_size_per_layer_input = 8;
  config.layer_scalar = true;
  return config;
}

TEST(ConfigLayerSizesTest, EachKindHasItsOwn) {
  const ModelConfig config = SharingConfig();
  const Status status = ValidateConfig(config);
  ASSERT_TRUE(status) << status.error().message();
  const LayerKind& sliding = config.layer_kind(0);
  const LayerKind& full = config.layer_kind(1);
  EXPECT_EQ(config.qkv_channels(sliding), 8u * 16 + 2 * 2 * 16);
  EXPECT_EQ(config.qkv_channels(full), 8u * 32 + 2 * 32);
  EXPECT_EQ(config.qkv_channels(config.layer_kind(2)), 8u * 16);
  EXPECT_EQ(config.qkv_channels(config.layer_kind(3)), 8u * 32);
  EXPECT_EQ(config.most_qkv_channels(), 8u * 32 + 2 * 32);
  EXPECT_EQ(config.most_query_channels(), 8u * 32);
  EXPECT_EQ(config.rotary_channels(full), 32u);
  EXPECT_EQ(config.intermediate_size_of(full), 96u);
  EXPECT_EQ(config.intermediate_size_of(config.layer_kind(3)), 192u);
  EXPECT_TRUE(full.stores_tokens());
  EXPECT_FALSE(config.layer_kind(3).stores_tokens());
}

TEST(ConfigLayerSizesTest, TensorsFollow) {
  struct Row {
    const char* name;
    size_t outputs;
    size_t inputs;
  };
  const std::vector<Row> rows = {{"embed_tokens_per_layer", 1200, 8},
                                 {"per_layer_model_proj", 32, 64},
                                 {"per_layer_norm", 1, 8},
                                 {"layers.0.qkv_proj", 192, 64},
                                 {"layers.0.k_norm", 1, 16},
                                 {"layers.1.o_proj", 64, 256},
                                 {"layers.1.k_norm", 1, 32},
                                 {"layers.1.gate_up_proj", 192, 64},
                                 {"layers.3.qkv_proj", 256, 64},
                                 {"layers.3.q_norm", 1, 32},
                                 {"layers.3.down_proj", 64, 192},
                                 {"layers.3.per_layer_gate", 8, 64},
                                 {"layers.3.per_layer_proj", 64, 8},
                                 {"layers.3.per_layer_output_norm", 1, 64},
                                 {"layers.3.layer_scalar", 1, 1}};
  const std::vector<TensorSpec> specs = ExpectedTensors(SharingConfig());
  size_t found = 0;
  for (const TensorSpec& spec : specs) {
    EXPECT_NE(spec.Name(), "layers.3.k_norm");
    for (const Row& row : rows) {
      if (spec.Name() != row.name) continue;
      ++found;
      EXPECT_EQ(spec.output_channels, row.outputs) << row.name;
      EXPECT_EQ(spec.input_channels, row.inputs) << row.name;
      EXPECT_EQ(spec.is_multiplied(), !spec.is_vector() && row.name != rows[0].name) << row.name;
    }
  }
  EXPECT_EQ(found, rows.size());
}

TEST(ConfigLayerSizesTest, WhatDoesNotFitIsRefused) {
  struct Case {
    std::string words;
    void (*change)(ModelConfig& config);
  };
  const std::vector<Case> cases = {
      {"layer_kinds[1].global_head_dim must be even",
       [](ModelConfig& c) { c.layer_kinds[1].global_head_dim = 31; }},
      {"layer_kinds[1].global_head_dim is head_dim",
       [](ModelConfig& c) { c.layer_kinds[1].global_head_dim = 16; }},
      {"layer_kinds[1].num_global_key_value_heads is num_key_value_heads",
       [](ModelConfig& c) { c.layer_kinds[1].num_global_key_value_heads = 2; }},
      {"num_attention_heads (8) is not a multiple of num_global_key_value_heads (3)",
       [](ModelConfig& c) { c.layer_kinds[1].num_global_key_value_heads = 3; }},
      {"global_head_dim is given, but rotary_dim is given, too",
       [](ModelConfig& c) { c.rotary_dim = 8; }},
      {"kv_shared_layer of layer 2 is 3, which is not before it",
       [](ModelConfig& c) { c.layer_kinds[2].kv_shared_layer = 3; }},
      {"kv_shared_layer of layer 3 is 3, which has no keys and values",
       [](ModelConfig& c) { c.layer_kinds[3].kv_shared_layer = 3; }},
      {"kv_shared_layer of layer 3 is 1, which attends in another way",
       [](ModelConfig& c) { c.layer_kinds[3].kv_shared_layer = 1; }},
      {"kv_shared_layer of layer 2 is 1, which attends in another way",
       [](ModelConfig& c) { c.layer_kinds[2].rope_theta = 1e6f; }},
      {"v_norm is true, but qk_norm is not", [](ModelConfig& c) { c.qk_norm = false; }},
      {"rotated_residual is true", [](ModelConfig& c) { c.rotated_residual = true; }},
      {"enable_moe_block is true, but there are no experts",
       [](ModelConfig& c) { c.enable_moe_block = true; }},
      {"use_double_wide_mlp is true, but its layers have no dense feed-forward",
       [](ModelConfig& c) {
         c.num_experts = 4;
         c.num_experts_per_tok = 2;
         c.moe_intermediate_size = 32;
       }}};
  for (const Case& bad : cases) {
    ModelConfig config = SharingConfig();
    bad.change(config);
    ExpectRefused(config, bad.words);
  }
}

}  // namespace
}  // namespace cria
