#include "model/tensor_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model_generated.h"

namespace cria {
namespace {

ModelConfig TwoLayers() {
  return {.hidden_size = 64,
          .intermediate_size = 172,
          .num_hidden_layers = 2,
          .num_attention_heads = 8,
          .num_key_value_heads = 4,
          .head_dim = 6,
          .vocab_size = 512};
}

TensorLayout Layout(size_t inputs, Scheme scheme, size_t block_size) {
  return MakeTensorLayout({TensorRole::kDownProj, 0, 10, inputs}, scheme, block_size);
}

TEST(ExpectedTensorsTest, ListsAForwardPassInItsOrder) {
  struct Row {
    const char* name;
    size_t outputs;
    size_t inputs;
  };
  const std::vector<Row> rows = {{"embed_tokens", 512, 64},
                                 {"layers.0.input_layernorm", 1, 64},
                                 {"layers.0.qkv_proj", 48 + 2 * 24, 64},
                                 {"layers.0.o_proj", 64, 48},
                                 {"layers.0.post_attention_layernorm", 1, 64},
                                 {"layers.0.gate_up_proj", 344, 64},
                                 {"layers.0.down_proj", 64, 172},
                                 {"layers.1.input_layernorm", 1, 64},
                                 {"layers.1.qkv_proj", 48 + 2 * 24, 64},
                                 {"layers.1.o_proj", 64, 48},
                                 {"layers.1.post_attention_layernorm", 1, 64},
                                 {"layers.1.gate_up_proj", 344, 64},
                                 {"layers.1.down_proj", 64, 172},
                                 {"norm", 1, 64},
                                 {"lm_head", 512, 64}};
  for (const bool tied : {false, true}) {
    ModelConfig config = TwoLayers();
    config.tie_word_embeddings = tied;
    const std::vector<TensorSpec> specs = ExpectedTensors(config);
    ASSERT_EQ(specs.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(specs[i].Name(), rows[i].name);
      EXPECT_EQ(specs[i].output_channels, rows[i].outputs) << rows[i].name;
      EXPECT_EQ(specs[i].input_channels, rows[i].inputs) << rows[i].name;
      EXPECT_EQ(specs[i].is_vector(), specs[i].Name().find("norm") != std::string::npos);
      EXPECT_EQ(specs[i].is_vector(), specs[i].output_channels == 1);
    }
  }
}

TEST(ExpectedTensorsTest, BiasesFollowTheirMatricesAndHeadNormsThoseOfTheirHeads) {
  ModelConfig config = TwoLayers();
  config.num_hidden_layers = 1;
  const auto names = [&] {
    std::string list;
    for (const TensorSpec& spec : ExpectedTensors(config)) {
      if (spec.layer != kNoLayer) list += std::string(TensorRoleName(spec.role), 0, 8) + ' ';
    }
    return list;
  };
  const size_t plain = VectorElements(config);
  EXPECT_EQ(plain, size_t{3} * 64);
  config.qkv_bias = true;
  EXPECT_EQ(names(), "input_la qkv_proj qkv_bias o_proj post_att gate_up_ down_pro ");
  EXPECT_EQ(VectorElements(config), plain + 96);
  config.qk_norm = true;
  EXPECT_EQ(names(), "input_la qkv_proj qkv_bias q_norm k_norm o_proj post_att gate_up_ down_pro ");
  EXPECT_EQ(VectorElements(config), plain + 96 + 2 * 6);
  config.qkv_bias = config.qk_norm = false;
  config.o_bias = true;
  EXPECT_EQ(names(), "input_la qkv_proj o_proj o_bias post_att gate_up_ down_pro ");
  EXPECT_EQ(VectorElements(config), plain + 64);
  config.o_bias = false;
  config.mlp_bias = true;
  EXPECT_EQ(names(), "input_la qkv_proj o_proj post_att gate_up_ gate_up_ down_pro down_bia ");
  EXPECT_EQ(VectorElements(config), plain + 2 * 172 + 64);
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    EXPECT_EQ(spec.is_vector(), spec.output_channels == 1) << spec.Name();
  }
}

TEST(ExpectedTensorsTest, NormsAreWhereTheConfigurationPutsThem) {
  ModelConfig config = TwoLayers();
  config.num_hidden_layers = 1;
  const auto names = [&] {
    std::string list;
    for (const TensorSpec& spec : ExpectedTensors(config)) {
      if (spec.layer != kNoLayer) list += std::string(TensorRoleName(spec.role)) + ' ';
    }
    return list;
  };
  config.norm_placement = NormPlacement::kAfter;
  EXPECT_EQ(names(),
            "qkv_proj o_proj attention_output_norm gate_up_proj down_proj mlp_output_norm ");
  config.norm_placement = NormPlacement::kBeforeAndAfter;
  config.mlp_bias = config.o_bias = true;
  EXPECT_EQ(names(),
            "input_layernorm qkv_proj o_proj o_bias attention_output_norm "
            "post_attention_layernorm gate_up_proj gate_up_bias down_proj down_bias "
            "mlp_output_norm ");
  config = TwoLayers();
  config.joint_qk_norm = true;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (spec.role != TensorRole::kQNorm && spec.role != TensorRole::kKNorm) continue;
    EXPECT_EQ(spec.input_channels, spec.role == TensorRole::kQNorm ? 48u : 24u);
  }
  EXPECT_EQ(VectorElements(config), 2 * (size_t{2} * 64 + 48 + 24) + 64);
}

TEST(ExpectedTensorsTest, ExpertsAreInTheLayersThatAreNotDense) {
  ModelConfig config = TwoLayers();
  config.num_experts = 5;
  config.num_experts_per_tok = 2;
  config.moe_intermediate_size = 12;
  config.shared_expert_intermediate_size = 20;
  config.shared_expert_gate = true;
  config.scoring_func = ScoringFunc::kSigmoid;
  config.use_expert_bias = true;
  config.layer_kinds = {{}, {.dense_mlp = true}};
  config.kind_of_layer = {1, 0};
  struct Row {
    const char* name;
    size_t outputs;
    size_t inputs;
    bool is_always_f32;
  };
  const std::vector<Row> rows = {{"layers.0.gate_up_proj", 344, 64, false},
                                 {"layers.0.down_proj", 64, 172, false},
                                 {"layers.1.router", 5, 64, true},
                                 {"layers.1.router_bias", 1, 5, true},
                                 {"layers.1.experts_gate_up_proj", 5 * 2 * 12, 64, false},
                                 {"layers.1.experts_down_proj", 5 * 64, 12, false},
                                 {"layers.1.shared_expert_gate_up_proj", 40, 64, false},
                                 {"layers.1.shared_expert_down_proj", 64, 20, false},
                                 {"layers.1.shared_expert_gate", 1, 64, true}};
  size_t next = 0;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    const bool is_in_feed_forward =
        spec.layer != kNoLayer &&
        (spec.role >= TensorRole::kRouter || spec.role == TensorRole::kGateUpProj ||
         spec.role == TensorRole::kDownProj);
    if (!is_in_feed_forward) continue;
    ASSERT_LT(next, rows.size());
    EXPECT_EQ(spec.Name(), rows[next].name);
    EXPECT_EQ(spec.output_channels, rows[next].outputs) << spec.Name();
    EXPECT_EQ(spec.input_channels, rows[next].inputs) << spec.Name();
    EXPECT_EQ(spec.is_always_f32(), rows[next].is_always_f32) << spec.Name();
    EXPECT_EQ(spec.is_vector(), spec.output_channels == 1) << spec.Name();
    ++next;
  }
  EXPECT_EQ(next, rows.size());
}

TEST(ExpectedTensorsTest, ShortConvolutionsTakeThePlaceOfAttention) {
  ModelConfig config = TwoLayers();
  config.layer_kinds = {{.no_rope = true, .short_conv = true}, {}};
  config.kind_of_layer = {0, 1};
  config.conv_L_cache = 3;
  struct Row {
    const char* name;
    size_t outputs;
    size_t inputs;
  };
  const std::vector<Row> rows = {{"layers.0.input_layernorm", 1, 64},
                                 {"layers.0.conv_in_proj", 192, 64},
                                 {"layers.0.conv_weight", 1, 192},
                                 {"layers.0.conv_out_proj", 64, 64},
                                 {"layers.0.post_attention_layernorm", 1, 64}};
  const std::vector<TensorSpec> specs = ExpectedTensors(config);
  for (size_t i = 0; i < rows.size(); ++i) {
    const TensorSpec& spec = specs[i + 1];  // Behind the embedding.
    EXPECT_EQ(spec.Name(), rows[i].name);
    EXPECT_EQ(spec.output_channels, rows[i].outputs) << rows[i].name;
    EXPECT_EQ(spec.input_channels, rows[i].inputs) << rows[i].name;
    EXPECT_EQ(spec.is_vector(), spec.output_channels == 1) << rows[i].name;
  }
  config.conv_bias = true;
  std::string names;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (spec.role >= TensorRole::kConvInProj || spec.role == TensorRole::kQkvProj) {
      names += spec.Name() + ' ';
    }
  }
  EXPECT_EQ(names,
            "layers.0.conv_in_proj layers.0.conv_in_bias layers.0.conv_weight layers.0.conv_bias "
            "layers.0.conv_out_proj layers.0.conv_out_bias layers.1.qkv_proj ");
}

TEST(ExpectedTensorsTest, LinearAttentionTakesThePlaceOfAttention) {
  ModelConfig config = TwoLayers();
  config.layer_kinds = {{.no_rope = true, .linear_attention = true}, {}};
  config.kind_of_layer = {0, 1};
  config.attn_output_gate = true;
  config.linear_conv_kernel_dim = 4;
  config.linear_key_head_dim = 8;
  config.linear_value_head_dim = 16;
  config.linear_num_key_heads = 2;
  config.linear_num_value_heads = 6;
  struct Row {
    const char* name;
    size_t outputs;
    size_t inputs;
    bool is_always_f32;
  };
  const std::vector<Row> rows = {{"layers.0.input_layernorm", 1, 64, true},
                                 {"layers.0.linear_in_proj", 2 * 16 + 2 * 96, 64, false},
                                 {"layers.0.linear_ba_proj", 12, 64, true},
                                 {"layers.0.linear_conv_weight", 1, 4 * (2 * 16 + 96), true},
                                 {"layers.0.linear_dt_bias", 1, 6, true},
                                 {"layers.0.linear_decay_rate", 1, 6, true},
                                 {"layers.0.linear_norm", 1, 16, true},
                                 {"layers.0.linear_out_proj", 64, 96, false},
                                 {"layers.0.post_attention_layernorm", 1, 64, true}};
  const std::vector<TensorSpec> specs = ExpectedTensors(config);
  for (size_t i = 0; i < rows.size(); ++i) {
    const TensorSpec& spec = specs[i + 1];  // Behind the embedding.
    EXPECT_EQ(spec.Name(), rows[i].name);
    EXPECT_EQ(spec.output_channels, rows[i].outputs) << rows[i].name;
    EXPECT_EQ(spec.input_channels, rows[i].inputs) << rows[i].name;
    EXPECT_EQ(spec.is_always_f32(), rows[i].is_always_f32) << rows[i].name;
  }
  const auto qkv = std::ranges::find(specs, TensorRole::kQkvProj, &TensorSpec::role);
  ASSERT_NE(qkv, specs.end());
  EXPECT_EQ(qkv->output_channels, config.qkv_channels());
}

TEST(ExpectedTensorsTest, TheLayerThatGuessesComesAfterTheHead) {
  ModelConfig config = TwoLayers();
  const size_t num_own = ExpectedTensors(config).size();
  config.mtp_num_hidden_layers = 1;
  const std::vector<TensorSpec> specs = ExpectedTensors(config);
  ASSERT_GT(specs.size(), num_own + 5);
  EXPECT_EQ(specs[num_own - 1].role, TensorRole::kLmHead);
  for (size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(specs[i].is_of_mtp, i >= num_own);
  EXPECT_EQ(specs[num_own].Name(), "layers.2.mtp_embedding_norm");
  EXPECT_EQ(specs[num_own + 1].Name(), "layers.2.mtp_hidden_norm");
  EXPECT_EQ(specs[num_own + 2].Name(), "layers.2.mtp_fc");
  EXPECT_EQ(specs[num_own + 2].input_channels, 2 * specs[num_own + 2].output_channels);
  EXPECT_EQ(specs[num_own + 3].Name(), "layers.2.input_layernorm");
  EXPECT_EQ(specs.back().Name(), "layers.2.mtp_norm");
  EXPECT_FALSE(specs[num_own].is_of_own_layer());
  EXPECT_TRUE(specs[1].is_of_own_layer());
}

TEST(ExpectedTensorsTest, MambaTakesThePlaceOfAttention) {
  ModelConfig config = TwoLayers();
  config.layer_kinds = {{.no_rope = true, .mamba = true}, {}};
  config.kind_of_layer = {0, 1};
  config.mamba_d_conv = 4;
  config.mamba_d_state = 16;
  config.mamba_d_head = 8;
  config.mamba_n_heads = 12;
  config.mamba_n_groups = 3;
  config.mamba_conv_bias = true;
  config.mamba_proj_bias = true;
  struct Row {
    const char* name;
    size_t outputs;
    size_t inputs;
    bool is_always_f32;
  };
  const std::vector<Row> rows = {{"layers.0.input_layernorm", 1, 64, true},
                                 {"layers.0.mamba_in_proj", 2 * 96 + 2 * 48, 64, false},
                                 {"layers.0.mamba_dt_proj", 12, 64, true},
                                 {"layers.0.mamba_in_bias", 1, 2 * 96 + 2 * 48 + 12, true},
                                 {"layers.0.mamba_conv_weight", 1, 4 * (96 + 2 * 48), true},
                                 {"layers.0.mamba_conv_bias", 1, 96 + 2 * 48, true},
                                 {"layers.0.mamba_dt_bias", 1, 12, true},
                                 {"layers.0.mamba_decay_rate", 1, 12, true},
                                 {"layers.0.mamba_d", 1, 12, true},
                                 {"layers.0.mamba_norm", 1, 96, true},
                                 {"layers.0.mamba_out_proj", 64, 96, false},
                                 {"layers.0.mamba_out_bias", 1, 64, true},
                                 {"layers.0.post_attention_layernorm", 1, 64, true}};
  const std::vector<TensorSpec> specs = ExpectedTensors(config);
  for (size_t i = 0; i < rows.size(); ++i) {
    const TensorSpec& spec = specs[i + 1];  // Behind the embedding.
    EXPECT_EQ(spec.Name(), rows[i].name);
    EXPECT_EQ(spec.output_channels, rows[i].outputs) << rows[i].name;
    EXPECT_EQ(spec.input_channels, rows[i].inputs) << rows[i].name;
    EXPECT_EQ(spec.is_always_f32(), rows[i].is_always_f32) << rows[i].name;
  }
  config.mamba_conv_bias = config.mamba_proj_bias = false;
  EXPECT_EQ(ExpectedTensors(config).size(), specs.size() - 3);
}

TEST(ExpectedTensorsTest, SinksAndBiasesOfExpertsAreVectors) {
  ModelConfig config = TwoLayers();
  config.num_experts = 4;
  config.num_experts_per_tok = 2;
  config.moe_intermediate_size = 24;
  const size_t num_without = ExpectedTensors(config).size();
  config.attn_sinks = config.router_bias = config.experts_bias = true;
  const std::vector<TensorSpec> specs = ExpectedTensors(config);
  EXPECT_EQ(specs.size(), num_without + 2 * 4);
  const auto size_of = [&](TensorRole role) {
    const auto found = std::ranges::find(specs, role, &TensorSpec::role);
    EXPECT_TRUE(found != specs.end() && found->is_vector());
    return found == specs.end() ? 0 : found->input_channels;
  };
  EXPECT_EQ(size_of(TensorRole::kAttnSinks), config.num_attention_heads);
  EXPECT_EQ(size_of(TensorRole::kRouterBias), 4u);
  EXPECT_EQ(size_of(TensorRole::kExpertsGateUpBias), 4u * 2 * 24);
  EXPECT_EQ(size_of(TensorRole::kExpertsDownBias), size_t{4} * config.hidden_size);
}

// "QkvProj" as "qkv_proj".
std::string SnakeCase(std::string_view name) {
  std::string snake;
  for (const char letter : name) {
    const bool is_capital = letter >= 'A' && letter <= 'Z';
    if (is_capital && !snake.empty()) snake += '_';
    snake += is_capital ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return snake;
}

// Roles are cast to those of the schema and back.
TEST(TensorRoleTest, HasTheNamesOfTheSchema) {
  EXPECT_EQ(static_cast<int>(schema::TensorRole::MAX) + 1, kNumTensorRoles);
  for (int number = 0; number < kNumTensorRoles; ++number) {
    EXPECT_EQ(TensorRoleName(static_cast<TensorRole>(number)),
              SnakeCase(schema::EnumNameTensorRole(static_cast<schema::TensorRole>(number))));
  }
}

TEST(ExpectedTensorsTest, NamesAreDifferent) {
  std::set<std::string_view> names;
  for (int role = 0; role < kNumTensorRoles; ++role) {
    names.insert(TensorRoleName(static_cast<TensorRole>(role)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumTensorRoles));
  EXPECT_EQ(TensorRoleName(static_cast<TensorRole>(kNumTensorRoles)), "unknown");
  EXPECT_EQ(SchemeName(Scheme::kF32), "f32");
  EXPECT_EQ(SchemeName(Scheme::kQc8w), "qc8w");
  EXPECT_EQ(SchemeName(Scheme::kQb4w), "qb4w");
  EXPECT_EQ(SchemeName(static_cast<Scheme>(kNumSchemes)), "unknown");
}

TEST(TensorLayoutTest, PlainSchemesAreNeitherPaddedNorBlocked) {
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w}) {
    const TensorLayout layout = Layout(173, scheme, 32);
    EXPECT_EQ(layout.padded_input_channels, 173u);
    EXPECT_EQ(layout.block_size, 0u);
  }
  const TensorLayout floats = Layout(173, Scheme::kF32, 32);
  EXPECT_EQ(floats.row_bytes(), 692u);
  EXPECT_EQ(floats.data_bytes(), 6920u);
  EXPECT_EQ(floats.scale_bytes(), 0u);
  const TensorLayout bytes = Layout(173, Scheme::kQc8w, 32);
  EXPECT_EQ(bytes.row_bytes(), 173u);
  EXPECT_EQ(bytes.data_bytes(), 1730u);
  EXPECT_EQ(bytes.scales_per_row(), 1u);
  EXPECT_EQ(bytes.scale_bytes(), 40u);
}

TEST(TensorLayoutTest, SmallBlocksArePadded) {
  EXPECT_EQ(Layout(96, Scheme::kW4G64, 0).padded_input_channels, 128u);
  EXPECT_EQ(Layout(96, Scheme::kW4G64, 0).row_bytes(), 72u);
  EXPECT_EQ(Layout(128, Scheme::kW4G64, 0).padded_input_channels, 128u);
  EXPECT_EQ(Layout(40, Scheme::kQ8_0, 0).padded_input_channels, 64u);
  EXPECT_EQ(Layout(256, Scheme::kQ4K, 0).padded_input_channels, 256u);
}

TEST(TensorLayoutTest, BlocksAreTheLargestThatDivideTheInputs) {
  struct Case {
    size_t inputs;
    size_t asked;
    size_t block_size;
    size_t padded;
  };
  const std::vector<Case> cases = {
      {2048, 256, 256, 2048}, {2048, 128, 128, 2048}, {2048, 32, 32, 2048}, {64, 256, 64, 64},
      {576, 256, 64, 576},    {96, 256, 32, 96},      {172, 256, 32, 192},  {172, 32, 32, 192},
      {80, 128, 32, 96},      {1, 256, 32, 32},       {33, 64, 32, 64},     {384, 256, 128, 384}};
  for (const Case& given : cases) {
    SCOPED_TRACE(given.inputs);
    const TensorLayout layout = Layout(given.inputs, Scheme::kQb4w, given.asked);
    EXPECT_EQ(layout.block_size, given.block_size);
    EXPECT_EQ(layout.padded_input_channels, given.padded);
    EXPECT_EQ(layout.input_channels, given.inputs);
    EXPECT_EQ(layout.row_bytes(), given.padded / 2);
    EXPECT_EQ(layout.scales_per_row(), given.padded / given.block_size);
    EXPECT_EQ(layout.row_scale_bytes(), 2 * given.padded / given.block_size);
    EXPECT_EQ(layout.data_bytes(), 10 * given.padded / 2);
    EXPECT_EQ(layout.scale_bytes(), 20 * given.padded / given.block_size);
  }
}

TEST(TensorLayoutTest, EveryLayoutIsWhole) {
  for (const size_t asked : kBlockSizes) {
    for (size_t inputs = 1; inputs < 1100; ++inputs) {
      const TensorLayout layout = Layout(inputs, Scheme::kQb4w, asked);
      ASSERT_LE(layout.block_size, asked);
      ASSERT_EQ(layout.padded_input_channels % layout.block_size, 0u);
      ASSERT_GE(layout.padded_input_channels, inputs);
      ASSERT_LT(layout.padded_input_channels, inputs + 32);
      if (layout.padded_input_channels != inputs) {
        ASSERT_EQ(layout.block_size, 32u);
      }
      // No larger block would have done.
      for (const size_t larger : kBlockSizes) {
        if (larger > layout.block_size && larger <= asked) {
          ASSERT_NE(inputs % larger, 0u);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cria
