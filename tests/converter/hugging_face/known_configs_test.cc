// Reads the config.json of widely used checkpoints.

#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "converter/hugging_face/hf_config.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using nlohmann::json;

struct KnownConfig {
  const char* name;
  json fields;
  ModelConfig expected;
};

std::ostream& operator<<(std::ostream& out, const KnownConfig& known) { return out << known.name; }

// In the order of Expected.
json Sizes(const char* architecture, int hidden, int intermediate, int layers, int heads,
           int key_value_heads, int vocabulary, int positions) {
  return {{"architectures", {architecture}},
          {"hidden_act", "silu"},
          {"initializer_range", 0.02},
          {"use_cache", true},
          {"attention_dropout", 0.0},
          {"torch_dtype", "bfloat16"},
          {"hidden_size", hidden},
          {"intermediate_size", intermediate},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"num_key_value_heads", key_value_heads},
          {"vocab_size", vocabulary},
          {"max_position_embeddings", positions}};
}

// The same numbers, head_dim, and what else most of these configurations differ in.
ModelConfig Expected(const char* architecture, uint32_t hidden, uint32_t intermediate,
                     uint32_t layers, uint32_t heads, uint32_t key_value_heads, uint32_t head_dim,
                     uint32_t vocabulary, uint32_t positions, float epsilon, float theta,
                     const RopeScaling& scaling, bool is_tied, uint32_t window = 0) {
  return {.architecture = architecture,
          .hidden_size = hidden,
          .intermediate_size = intermediate,
          .num_hidden_layers = layers,
          .num_attention_heads = heads,
          .num_key_value_heads = key_value_heads,
          .head_dim = head_dim,
          .vocab_size = vocabulary,
          .max_position_embeddings = positions,
          .rms_norm_eps = epsilon,
          .tie_word_embeddings = is_tied,
          .layer_kinds = {{window, theta, scaling}}};
}

json With(json fields, const json& more) {
  fields.update(more);
  return fields;
}

std::vector<KnownConfig> LlamaConfigs() {
  constexpr const char* kLlama = "LlamaForCausalLM";
  const json llama3_rope = {{"factor", 8.0},
                            {"high_freq_factor", 4.0},
                            {"low_freq_factor", 1.0},
                            {"original_max_position_embeddings", 8192},
                            {"rope_type", "llama3"}};
  const RopeScaling expected_rope = {RopeScaling::Type::kLlama3, 8.0f, 1.0f, 4.0f, 8192};
  return {
      {"Llama 2 7B",
       With(Sizes(kLlama, 4096, 11008, 32, 32, 32, 32000, 4096), {{"rms_norm_eps", 1e-5},
                                                                  {"rope_scaling", nullptr},
                                                                  {"pretraining_tp", 1},
                                                                  {"tie_word_embeddings", false}}),
       Expected(kLlama, 4096, 11008, 32, 32, 32, 128, 32000, 4096, 1e-5f, 10000.0f, {}, false)},
      {"Llama 3.1 405B",
       With(Sizes(kLlama, 16384, 53248, 126, 128, 8, 128256, 131072),
            {{"rms_norm_eps", 1e-5},
             {"rope_theta", 500000.0},
             {"rope_scaling", llama3_rope},
             {"attention_bias", false},
             {"mlp_bias", false},
             {"tie_word_embeddings", false}}),
       Expected(kLlama, 16384, 53248, 126, 128, 8, 128, 128256, 131072, 1e-5f, 500000.0f,
                expected_rope, false)},
      {"DeepSeek-R1-Distill-Llama-8B",
       With(Sizes(kLlama, 4096, 14336, 32, 32, 8, 128256, 131072),
            {{"rms_norm_eps", 1e-5},
             {"rope_theta", 500000.0},
             {"rope_scaling", llama3_rope},
             {"attention_bias", false},
             {"mlp_bias", false},
             {"tie_word_embeddings", false}}),
       Expected(kLlama, 4096, 14336, 32, 32, 8, 128, 128256, 131072, 1e-5f, 500000.0f,
                expected_rope, false)},
      {"TinyLlama 1.1B",
       With(Sizes(kLlama, 2048, 5632, 22, 32, 4, 32000, 2048), {{"rms_norm_eps", 1e-5},
                                                                {"rope_theta", 10000.0},
                                                                {"rope_scaling", nullptr},
                                                                {"attention_bias", false},
                                                                {"tie_word_embeddings", false}}),
       Expected(kLlama, 2048, 5632, 22, 32, 4, 64, 32000, 2048, 1e-5f, 10000.0f, {}, false)},
      {"SmolLM2 135M",
       With(Sizes(kLlama, 576, 1536, 30, 9, 3, 49152, 8192), {{"rms_norm_eps", 1e-5},
                                                              {"rope_theta", 100000},
                                                              {"rope_interleaved", false},
                                                              {"is_llama_config", true},
                                                              {"tie_word_embeddings", true}}),
       Expected(kLlama, 576, 1536, 30, 9, 3, 64, 49152, 8192, 1e-5f, 100000.0f, {}, true)},
      {"SmolLM2 1.7B",
       With(Sizes(kLlama, 2048, 8192, 24, 32, 32, 49152, 8192),
            {{"rms_norm_eps", 1e-5}, {"rope_theta", 130000}, {"tie_word_embeddings", true}}),
       Expected(kLlama, 2048, 8192, 24, 32, 32, 64, 49152, 8192, 1e-5f, 130000.0f, {}, true)},
  };
}

std::vector<KnownConfig> MistralConfigs() {
  constexpr const char* kMistral = "MistralForCausalLM";
  return {
      {"Mistral 7B v0.1",
       With(Sizes(kMistral, 4096, 14336, 32, 32, 8, 32000, 32768),
            {{"rms_norm_eps", 1e-5},
             {"rope_theta", 10000.0},
             {"sliding_window", 4096},
             {"tie_word_embeddings", false}}),
       Expected(kMistral, 4096, 14336, 32, 32, 8, 128, 32000, 32768, 1e-5f, 10000.0f, {}, false,
                4096)},
      {"Mistral 7B v0.3",
       With(Sizes(kMistral, 4096, 14336, 32, 32, 8, 32768, 32768),
            {{"rms_norm_eps", 1e-5},
             {"rope_theta", 1000000.0},
             {"sliding_window", nullptr},
             {"tie_word_embeddings", false}}),
       Expected(kMistral, 4096, 14336, 32, 32, 8, 128, 32768, 32768, 1e-5f, 1e6f, {}, false)},
      {"Mistral Nemo",
       With(Sizes(kMistral, 5120, 14336, 40, 32, 8, 131072, 131072),
            {{"head_dim", 128},
             {"rms_norm_eps", 1e-5},
             {"rope_theta", 1000000.0},
             {"sliding_window", nullptr},
             {"tie_word_embeddings", false}}),
       Expected(kMistral, 5120, 14336, 40, 32, 8, 128, 131072, 131072, 1e-5f, 1e6f, {}, false)},
  };
}

ModelConfig WithQkvBias(ModelConfig config) {
  config.qkv_bias = true;
  return config;
}

std::vector<KnownConfig> Qwen2Configs() {
  constexpr const char* kQwen2 = "Qwen2ForCausalLM";
  const json seven =
      With(Sizes(kQwen2, 3584, 18944, 28, 28, 4, 152064, 32768), {{"max_window_layers", 28},
                                                                  {"rms_norm_eps", 1e-6},
                                                                  {"rope_theta", 1000000.0},
                                                                  {"sliding_window", 131072},
                                                                  {"use_sliding_window", false},
                                                                  {"tie_word_embeddings", false}});
  const ModelConfig expected_seven =
      Expected(kQwen2, 3584, 18944, 28, 28, 4, 128, 152064, 32768, 1e-6f, 1e6f, {}, false);
  ModelConfig long_seven = expected_seven;
  long_seven.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kYarn,
                                            .factor = 4.0f,
                                            .original_max_position_embeddings = 32768,
                                            .attention_factor = 1.1386294f};  // 0.1 ln 4 + 1.
  return {
      {"Qwen2.5 0.5B",
       With(Sizes(kQwen2, 896, 4864, 24, 14, 2, 151936, 32768), {{"max_window_layers", 24},
                                                                 {"rms_norm_eps", 1e-6},
                                                                 {"rope_theta", 1000000.0},
                                                                 {"sliding_window", 32768},
                                                                 {"use_mrope", false},
                                                                 {"use_sliding_window", false},
                                                                 {"tie_word_embeddings", true}}),
       WithQkvBias(
           Expected(kQwen2, 896, 4864, 24, 14, 2, 64, 151936, 32768, 1e-6f, 1e6f, {}, true))},
      {"Qwen2.5 7B", seven, WithQkvBias(expected_seven)},
      {"Qwen2.5 7B for long texts",
       With(seven,
            {{"rope_scaling",
              {{"factor", 4.0}, {"original_max_position_embeddings", 32768}, {"type", "yarn"}}}}),
       WithQkvBias(long_seven)},
      {"DeepSeek-R1-Distill-Qwen-1.5B",
       With(Sizes(kQwen2, 1536, 8960, 28, 12, 2, 151936, 131072), {{"max_window_layers", 21},
                                                                   {"rms_norm_eps", 1e-6},
                                                                   {"rope_theta", 10000},
                                                                   {"sliding_window", 4096},
                                                                   {"use_mrope", false},
                                                                   {"use_sliding_window", false},
                                                                   {"tie_word_embeddings", false}}),
       WithQkvBias(Expected(kQwen2, 1536, 8960, 28, 12, 2, 128, 151936, 131072, 1e-6f, 10000.0f, {},
                            false))},
  };
}

std::vector<KnownConfig> Qwen3Configs() {
  constexpr const char* kQwen3 = "Qwen3ForCausalLM";
  const json common = {{"attention_bias", false},   {"head_dim", 128},
                       {"max_window_layers", 28},   {"rms_norm_eps", 1e-6},
                       {"rope_scaling", nullptr},   {"rope_theta", 1000000},
                       {"sliding_window", nullptr}, {"use_sliding_window", false}};
  KnownConfig small = {
      "Qwen3 0.6B",
      With(With(Sizes(kQwen3, 1024, 3072, 28, 16, 8, 151936, 40960), common),
           {{"tie_word_embeddings", true}}),
      Expected(kQwen3, 1024, 3072, 28, 16, 8, 128, 151936, 40960, 1e-6f, 1e6f, {}, true)};
  KnownConfig large = {
      "Qwen3 8B",
      With(With(Sizes(kQwen3, 4096, 12288, 36, 32, 8, 151936, 40960), common),
           {{"tie_word_embeddings", false}}),
      Expected(kQwen3, 4096, 12288, 36, 32, 8, 128, 151936, 40960, 1e-6f, 1e6f, {}, false)};
  small.expected.qk_norm = large.expected.qk_norm = true;
  return {small, large};
}

void ExpectLayerKind(const LayerKind& read, const LayerKind& expected) {
  EXPECT_EQ(read.sliding_window, expected.sliding_window);
  EXPECT_EQ(read.rope_theta, expected.rope_theta);
  const RopeScaling& scaling = read.rope_scaling;
  EXPECT_EQ(scaling.type, expected.rope_scaling.type);
  EXPECT_EQ(scaling.factor, expected.rope_scaling.factor);
  EXPECT_EQ(scaling.low_freq_factor, expected.rope_scaling.low_freq_factor);
  EXPECT_EQ(scaling.high_freq_factor, expected.rope_scaling.high_freq_factor);
  EXPECT_EQ(scaling.original_max_position_embeddings,
            expected.rope_scaling.original_max_position_embeddings);
  EXPECT_FLOAT_EQ(scaling.attention_factor, expected.rope_scaling.attention_factor);
}

class KnownConfigs : public testing::TestWithParam<KnownConfig> {};

TEST_P(KnownConfigs, AreReadAsTransformersReadsThem) {
  const support::TemporaryDirectory folder;
  const auto path = folder / "config.json";
  support::WriteFile(path, GetParam().fields.dump());
  const auto read = ReadHfModel(path);
  ASSERT_TRUE(read) << read.error().message();
  const ModelConfig& config = read->config;
  const ModelConfig& expected = GetParam().expected;
  EXPECT_EQ(config.architecture, expected.architecture);
  EXPECT_EQ(config.hidden_size, expected.hidden_size);
  EXPECT_EQ(config.intermediate_size, expected.intermediate_size);
  EXPECT_EQ(config.num_hidden_layers, expected.num_hidden_layers);
  EXPECT_EQ(config.num_attention_heads, expected.num_attention_heads);
  EXPECT_EQ(config.num_key_value_heads, expected.num_key_value_heads);
  EXPECT_EQ(config.head_dim, expected.head_dim);
  EXPECT_EQ(config.vocab_size, expected.vocab_size);
  EXPECT_EQ(config.max_position_embeddings, expected.max_position_embeddings);
  EXPECT_EQ(config.rms_norm_eps, expected.rms_norm_eps);
  EXPECT_EQ(config.tie_word_embeddings, expected.tie_word_embeddings);
  EXPECT_EQ(config.kind_of_layer, expected.kind_of_layer);
  ASSERT_EQ(config.layer_kinds.size(), expected.layer_kinds.size());
  for (size_t i = 0; i < expected.layer_kinds.size(); ++i) {
    ExpectLayerKind(config.layer_kinds[i], expected.layer_kinds[i]);
  }
  EXPECT_EQ(config.qkv_bias, expected.qkv_bias);
  EXPECT_EQ(config.o_bias, expected.o_bias);
  EXPECT_EQ(config.mlp_bias, expected.mlp_bias);
  EXPECT_EQ(config.qk_norm, expected.qk_norm);
}

std::string TestName(const testing::TestParamInfo<KnownConfig>& info) {
  std::string name;
  for (const char* c = info.param.name; *c != '\0'; ++c) {
    if (std::isalnum(static_cast<unsigned char>(*c)) != 0) name += *c;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Llama, KnownConfigs, testing::ValuesIn(LlamaConfigs()), TestName);
INSTANTIATE_TEST_SUITE_P(Mistral, KnownConfigs, testing::ValuesIn(MistralConfigs()), TestName);
INSTANTIATE_TEST_SUITE_P(Qwen2, KnownConfigs, testing::ValuesIn(Qwen2Configs()), TestName);
INSTANTIATE_TEST_SUITE_P(Qwen3, KnownConfigs, testing::ValuesIn(Qwen3Configs()), TestName);

}  // namespace
}  // namespace cria
