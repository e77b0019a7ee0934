// Reads the config.json of Gemma 4's checkpoints, in the form in which they are published, and as
// transformers writes them.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

class KnownGemma4Test : public HfConfigFixture {
 protected:
  void ExpectError(const json& fields, const std::vector<std::string>& words) {
    const auto read = Read(fields);
    ASSERT_FALSE(read) << fields;
    for (const std::string& word : words) {
      EXPECT_THAT(read.error().message(), ::testing::HasSubstr(word));
    }
  }
};

// All but every n-th layer has a window, and the last one never.
json LayerTypes(size_t num_layers, size_t n) {
  json types = json::array();
  for (size_t i = 0; i < num_layers; ++i) {
    types.push_back((i + 1) % n == 0 || i + 1 == num_layers ? "full_attention"
                                                            : "sliding_attention");
  }
  return types;
}

json Text() {
  return {{"model_type", "gemma4_text"},
          {"attention_bias", false},
          {"attention_dropout", 0.0},
          {"attention_k_eq_v", false},
          {"bos_token_id", 2},
          {"enable_moe_block", false},
          {"eos_token_id", 1},
          {"final_logit_softcapping", 30.0},
          {"global_head_dim", 512},
          {"head_dim", 256},
          {"hidden_activation", "gelu_pytorch_tanh"},
          {"initializer_range", 0.02},
          {"max_position_embeddings", 131072},
          {"moe_intermediate_size", nullptr},
          {"num_experts", nullptr},
          {"num_global_key_value_heads", nullptr},
          {"pad_token_id", 0},
          {"rms_norm_eps", 1e-6},
          {"rope_parameters",
           {{"full_attention",
             {{"partial_rotary_factor", 0.25},
              {"rope_theta", 1000000.0},
              {"rope_type", "proportional"}}},
            {"sliding_attention", {{"rope_theta", 10000.0}, {"rope_type", "default"}}}}},
          {"tie_word_embeddings", true},
          {"top_k_experts", nullptr},
          {"use_bidirectional_attention", nullptr},
          {"use_cache", true},
          {"vocab_size", 262144},
          {"vocab_size_per_layer_input", 262144}};
}

json Whole(json text, const json& more) {
  text.update(more);
  return {{"architectures", {"Gemma4ForConditionalGeneration"}},
          {"model_type", "gemma4"},
          {"audio_token_id", 258881},
          {"boi_token_id", 255999},
          {"eos_token_id", {1, 106}},
          {"image_token_id", 258880},
          {"initializer_range", 0.02},
          {"text_config", text},
          {"tie_word_embeddings", true},
          {"vision_config", {{"model_type", "gemma4_vision"}}}};
}

json E2b() {
  return Whole(Text(), {{"hidden_size", 1536},
                        {"hidden_size_per_layer_input", 256},
                        {"intermediate_size", 6144},
                        {"layer_types", LayerTypes(35, 5)},
                        {"num_attention_heads", 8},
                        {"num_hidden_layers", 35},
                        {"num_key_value_heads", 1},
                        {"num_kv_shared_layers", 20},
                        {"sliding_window", 512},
                        {"use_double_wide_mlp", true}});
}

TEST_F(KnownGemma4Test, E2b) {
  const HfModel model = ReadModel(E2b());
  const ModelConfig& config = model.config;
  EXPECT_TRUE(model.has_vision);
  EXPECT_FALSE(model.keys_are_values);
  EXPECT_EQ(config.architecture, "Gemma4ForCausalLM");
  EXPECT_EQ(config.hidden_size_per_layer_input, 256u);
  EXPECT_EQ(config.per_layer_channels(), 8960u);
  EXPECT_TRUE(config.tie_word_embeddings && config.qk_norm && config.v_norm && config.layer_scalar);
  EXPECT_EQ(config.final_logit_softcapping, 30.0f);
  // With and without a window, each with and without keys and values of its own.
  ASSERT_EQ(config.layer_kinds.size(), 4u);
  const LayerKind& sliding = config.layer_kind(0);
  EXPECT_EQ(sliding.sliding_window, 512u);
  EXPECT_EQ(config.head_dim_of(sliding), 256u);
  EXPECT_EQ(config.qkv_channels(sliding), 8u * 256 + 2 * 256);
  EXPECT_EQ(sliding.rope_theta, 10000.0f);
  const LayerKind& full = config.layer_kind(4);
  EXPECT_EQ(full.sliding_window, 0u);
  EXPECT_EQ(config.head_dim_of(full), 512u);
  EXPECT_EQ(config.qkv_channels(full), 8u * 512 + 2 * 512);
  EXPECT_EQ(full.rope_scaling.type, RopeScaling::Type::kProportional);
  EXPECT_EQ(full.rope_scaling.partial_rotary_factor, 0.25f);
  // Layer 13 is the last of 15 with a window, and layer 14 the last without.
  for (size_t i = 0; i < 35; ++i) {
    const LayerKind& kind = config.layer_kind(i);
    const bool is_full = (i + 1) % 5 == 0;
    EXPECT_EQ(kind.sliding_window, is_full ? 0u : 512u) << i;
    EXPECT_EQ(kind.kv_shared_layer, i < 15 ? 0u : is_full ? 15u : 14u) << i;
    EXPECT_EQ(config.intermediate_size_of(kind), i < 15 ? 6144u : 12288u) << i;
    if (i >= 15) {
      EXPECT_EQ(config.qkv_channels(kind), config.query_channels(kind)) << i;
    }
  }
}

TEST_F(KnownGemma4Test, E4b) {
  const ModelConfig config = ReadModel(Whole(Text(), {{"hidden_size", 2560},
                                                      {"hidden_size_per_layer_input", 256},
                                                      {"intermediate_size", 10240},
                                                      {"layer_types", LayerTypes(42, 6)},
                                                      {"num_attention_heads", 8},
                                                      {"num_hidden_layers", 42},
                                                      {"num_key_value_heads", 2},
                                                      {"num_kv_shared_layers", 18},
                                                      {"sliding_window", 512},
                                                      {"use_double_wide_mlp", false}}))
                                 .config;
  EXPECT_EQ(config.layer_kind(41).kv_shared_layer, 24u);
  EXPECT_EQ(config.layer_kind(40).kv_shared_layer, 23u);
  EXPECT_EQ(config.intermediate_size_of(config.layer_kind(41)), 10240u);
}

TEST_F(KnownGemma4Test, ThirtyOneB) {
  const HfModel model = ReadModel(Whole(Text(), {{"attention_k_eq_v", true},
                                                 {"hidden_size", 5376},
                                                 {"hidden_size_per_layer_input", 0},
                                                 {"intermediate_size", 21504},
                                                 {"layer_types", LayerTypes(60, 6)},
                                                 {"max_position_embeddings", 262144},
                                                 {"num_attention_heads", 32},
                                                 {"num_global_key_value_heads", 4},
                                                 {"num_hidden_layers", 60},
                                                 {"num_key_value_heads", 16},
                                                 {"num_kv_shared_layers", 0},
                                                 {"sliding_window", 1024},
                                                 {"use_bidirectional_attention", "vision"},
                                                 {"use_double_wide_mlp", false}}));
  EXPECT_TRUE(model.keys_are_values);
  const ModelConfig& config = model.config;
  ASSERT_EQ(config.layer_kinds.size(), 2u);
  EXPECT_EQ(config.key_value_heads_of(config.layer_kind(0)), 16u);
  EXPECT_EQ(config.key_value_heads_of(config.layer_kind(5)), 4u);
  EXPECT_EQ(config.most_query_channels(), 32u * 512);
  EXPECT_EQ(config.hidden_size_per_layer_input, 0u);
}

TEST_F(KnownGemma4Test, TwentySixBA4b) {
  const HfModel model = ReadModel(Whole(Text(), {{"attention_k_eq_v", true},
                                                 {"enable_moe_block", true},
                                                 {"hidden_size", 2816},
                                                 {"hidden_size_per_layer_input", 0},
                                                 {"intermediate_size", 2112},
                                                 {"layer_types", LayerTypes(30, 6)},
                                                 {"max_position_embeddings", 262144},
                                                 {"moe_intermediate_size", 704},
                                                 {"num_attention_heads", 16},
                                                 {"num_experts", 128},
                                                 {"num_global_key_value_heads", 2},
                                                 {"num_hidden_layers", 30},
                                                 {"num_key_value_heads", 8},
                                                 {"num_kv_shared_layers", 0},
                                                 {"sliding_window", 1024},
                                                 {"top_k_experts", 8},
                                                 {"use_bidirectional_attention", "vision"},
                                                 {"use_double_wide_mlp", false}}));
  const ModelConfig& config = model.config;
  EXPECT_TRUE(config.enable_moe_block && config.norm_topk_prob);
  EXPECT_EQ(config.num_experts, 128u);
  EXPECT_EQ(config.num_experts_per_tok, 8u);
  EXPECT_EQ(config.moe_intermediate_size, 704u);
  EXPECT_TRUE(config.is_mixture(0) && config.is_dense(0));
}

// transformers writes the sizes of single layers in place of those of all layers without a window.
TEST_F(KnownGemma4Test, SizesOfSingleLayersReplaceGlobalOnes) {
  json fields = E2b();
  json& text = fields["text_config"];
  text.erase("global_head_dim");
  text.erase("num_global_key_value_heads");
  for (size_t i = 4; i < 35; i += 5) {
    text["per_layer_config"][i < 10 ? "0" + std::to_string(i) : std::to_string(i)] = {
        {"head_dim", 512}};
  }
  EXPECT_EQ(ReadModel(fields).config.layer_kinds, ReadModel(E2b()).config.layer_kinds);
  text["per_layer_config"]["14"] = {{"head_dim", 128}};
  ExpectError(fields, {"per_layer_config", "layer 14", "same type"});
  text["per_layer_config"]["14"] = {{"intermediate_size", 128}};
  ExpectError(fields, {"per_layer_config.14", "intermediate_size"});
  text["per_layer_config"]["14"] = {{"head_dim", 512}};
  text["per_layer_config"]["35"] = {{"head_dim", 512}};
  ExpectError(fields, {"per_layer_config.35"});
}

TEST_F(KnownGemma4Test, WhatTheClassCannotComputeIsRefused) {
  const auto refused = [&](const char* field, const json& value,
                           const std::vector<std::string>& words) {
    json fields = E2b();
    fields["text_config"][field] = value;
    ExpectError(fields, words);
  };
  refused("num_kv_shared_layers", 35, {"num_kv_shared_layers", "35 layers"});
  refused("num_kv_shared_layers", 34, {"num_kv_shared_layers", "type of layer 4"});
  refused("vocab_size_per_layer_input", 1000, {"vocab_size_per_layer_input", "262144"});
  refused("use_bidirectional_attention", "all", {"use_bidirectional_attention"});
  refused("enable_moe_block", true, {"num_experts"});
  refused("head_dim", nullptr, {"head_dim", "null"});
  refused("global_head_dim", nullptr, {"global_head_dim", "null"});
  refused("final_logit_softcapping", 0.0, {"final_logit_softcapping"});
  refused("rope_parameters", json::object(), {"rope_parameters.full_attention"});
  refused("rope_theta", 10000.0, {"rope_theta"});
}

}  // namespace
}  // namespace cria
