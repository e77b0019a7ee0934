#include "converter/hugging_face/hf_rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;
using support::TinyConfig;
using ::testing::HasSubstr;

class HfRopeTest : public HfConfigFixture {};

TEST_F(HfRopeTest, ReadsRopeScalingUnderEitherKey) {
  for (const char* key : {"type", "rope_type"}) {
    const auto linear = ReadWith("rope_scaling", {{key, "linear"}, {"factor", 4.0}});
    ASSERT_TRUE(linear) << linear.error().message();
    EXPECT_EQ(linear->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kLinear);
    EXPECT_EQ(linear->layer_kinds[0].rope_scaling.factor, 4.0f);
    const auto none = ReadWith("rope_scaling", {{key, "default"}});
    ASSERT_TRUE(none) << none.error().message();
    EXPECT_EQ(none->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kNone);
  }
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 32.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  const auto config = ReadWith("rope_scaling", llama3);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kLlama3);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.factor, 32.0f);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.high_freq_factor, 4.0f);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.original_max_position_embeddings, 8192u);
}

TEST_F(HfRopeTest, ReadsTheNewerFormOfRope) {
  const auto config =
      ReadWith("rope_parameters", {{"rope_theta", 500000.0}, {"rope_type", "default"}});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->layer_kinds[0].rope_theta, 500000.0f);
  ExpectRefused("rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}},
                "rope_parameters.partial_rotary_factor");
}

TEST_F(HfRopeTest, DynamicScalingLengthensTheContext) {
  const auto config = ReadWith("rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kDynamic);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.factor, 4.0f);
  EXPECT_EQ(config->max_position_embeddings, 64u);
  EXPECT_EQ(config->longest_context(), 256u);
}

TEST_F(HfRopeTest, ReadsYarnAndItsDefaults) {
  const auto read = [&](const json& more) {
    json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
    yarn.update(more);
    const auto config = ReadWith("rope_scaling", yarn);
    EXPECT_TRUE(config) << config.error().message();
    return config->layer_kinds[0].rope_scaling;
  };
  const RopeScaling plain = read(json::object());
  EXPECT_EQ(plain.type, RopeScaling::Type::kYarn);
  EXPECT_EQ(plain.factor, 4.0f);
  EXPECT_EQ(plain.original_max_position_embeddings, 64u);
  EXPECT_FLOAT_EQ(plain.attention_factor, 1.1386294f);  // 0.1 ln 4 + 1.
  EXPECT_EQ(plain.beta_fast, 32.0f);
  EXPECT_EQ(plain.beta_slow, 1.0f);
  EXPECT_TRUE(plain.truncate);
  const RopeScaling full = read({{"original_max_position_embeddings", 16},
                                 {"attention_factor", 0.75},
                                 {"beta_fast", 16},
                                 {"beta_slow", 2.0},
                                 {"truncate", false}});
  EXPECT_EQ(full.original_max_position_embeddings, 16u);
  EXPECT_EQ(full.attention_factor, 0.75f);
  EXPECT_EQ(full.beta_fast, 16.0f);
  EXPECT_EQ(full.beta_slow, 2.0f);
  EXPECT_FALSE(full.truncate);
  // If the factor is null, it is the ratio of the contexts.
  EXPECT_EQ(read({{"factor", nullptr}, {"original_max_position_embeddings", 8}}).factor, 8.0f);
  // (0.1 * 2 ln 4 + 1) / (0.1 ln 4 + 1); one of them alone is ignored.
  EXPECT_FLOAT_EQ(read({{"mscale", 2.0}, {"mscale_all_dim", 1.0}}).attention_factor, 1.1217511f);
  EXPECT_FLOAT_EQ(read({{"mscale", 2.0}}).attention_factor, 1.1386294f);
  EXPECT_FLOAT_EQ(read({{"factor", 1.0}}).attention_factor, 1.0f);
}

TEST_F(HfRopeTest, TheTrainedContextMayStandBesideTheScaling) {
  json config = TinyConfig();
  config["original_max_position_embeddings"] = 32;
  config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2.0}};
  const auto read = Read(config);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->layer_kinds[0].rope_scaling.original_max_position_embeddings, 32u);
}

TEST_F(HfRopeTest, RefusesYarnWithoutSense) {
  const auto expect = [&](const json& more, std::string_view reason) {
    json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
    yarn.update(more);
    ExpectRefused("rope_scaling", yarn, reason);
  };
  expect({{"original_max_position_embeddings", 0}}, "original_max_position_embeddings is 0");
  expect({{"attention_factor", -1.0}}, "rope_scaling.attention_factor");
  expect({{"beta_fast", 0.5}}, "rope_scaling.beta_fast");
  expect({{"factor", 0.5}}, "rope_scaling.factor is 0.5");
  expect({{"truncate", 1}}, "rope_scaling.truncate is 1");
  expect({{"mscale", "1"}}, "rope_scaling.mscale is \"1\"");
  ExpectRefused("rope_scaling", {{"rope_type", "yarn"}, {"original_max_position_embeddings", 16}},
                "rope_scaling.factor is missing");
}

TEST_F(HfRopeTest, RefusesRopeScalingItDoesNotKnow) {
  ExpectRefused("rope_scaling", {{"type", "proportional"}, {"factor", 4.0}},
                "rope_scaling.type is \"proportional\"");
  for (const char* field : {"alpha", "mrope_section", "long_factor", "short_factor"}) {
    ExpectRefused("rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}, {field, {1.0}}},
                  std::string("rope_scaling.") + field + " is given");
  }
  ExpectRefused("rope_scaling", {{"rope_type", "dynamic"}}, "rope_scaling.factor");
  ExpectRefused("rope_scaling", {{"factor", 4.0}}, "rope_scaling.type");
  ExpectRefused("rope_scaling", {{"type", "linear"}}, "rope_scaling.factor");
  ExpectRefused("rope_scaling", {{"type", "llama3"}, {"factor", 4.0}}, "low_freq_factor");
  ExpectRefused("rope_scaling", "linear", "rope_scaling is \"linear\"");
}

TEST_F(HfRopeTest, TypesOfLayersMayHaveTheirOwnRope) {
  const json types = {"sliding_attention", "full_attention"};
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"rope_theta", 1e6},
                     {"original_max_position_embeddings", 16}};
  const json fields = {
      {"sliding_window", 12},
      {"layer_types", types},
      {"rope_parameters",
       {{"full_attention", yarn}, {"sliding_attention", {{"rope_type", "default"}}}}}};
  for (const char* architecture : {"MistralForCausalLM", "MinistralForCausalLM"}) {
    const auto read = ReadAs(architecture, fields);
    ASSERT_TRUE(read) << read.error().message();
    ASSERT_EQ(read->layer_kinds.size(), 2u);
    EXPECT_EQ(read->layer_kind(0), (LayerKind{.sliding_window = 12, .rope_theta = 10000.0f}));
    EXPECT_EQ(read->layer_kind(1).sliding_window, 0u);
    EXPECT_EQ(read->layer_kind(1).rope_theta, 1e6f);
    EXPECT_EQ(read->layer_kind(1).rope_scaling.type, RopeScaling::Type::kYarn);
    EXPECT_EQ(read->layer_kind(1).rope_scaling.original_max_position_embeddings, 16u);
    EXPECT_EQ(read->longest_context(), 64u);
  }
  // The older name of the object, a base for all types, and an original context that is outside
  // the object, where transformers does not look.
  json older = fields;
  older["rope_scaling"] = older["rope_parameters"];
  older.erase("rope_parameters");
  older["rope_theta"] = 500.0;
  older["original_max_position_embeddings"] = 8;
  const auto read = ReadAs("MistralForCausalLM", older);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->layer_kind(0).rope_theta, 500.0f);
  EXPECT_EQ(read->layer_kind(1).rope_theta, 1e6f);
  EXPECT_EQ(read->layer_kind(1).rope_scaling.original_max_position_embeddings, 16u);
  // One type of layers uses only its own.
  json all_full = fields;
  all_full["layer_types"] = {"full_attention", "full_attention"};
  all_full["rope_parameters"].erase("sliding_attention");
  for (const char* architecture : {"MistralForCausalLM", "LlamaForCausalLM"}) {
    const auto alike = ReadAs(architecture, all_full);
    ASSERT_TRUE(alike) << alike.error().message();
    ASSERT_EQ(alike->layer_kinds.size(), 1u);
    EXPECT_EQ(alike->layer_kinds[0].rope_theta, 1e6f);
  }
}

TEST_F(HfRopeTest, RefusesRopeOfTypesThatIsIncomplete) {
  const json none = {{"rope_type", "default"}};
  const auto expect_refused = [&](const json& parameters, std::string_view reason) {
    ExpectRefusedAs("MistralForCausalLM",
                    {{"sliding_window", 12},
                     {"layer_types", {"sliding_attention", "full_attention"}},
                     {"rope_parameters", parameters}},
                    reason);
  };
  expect_refused({{"full_attention", none}},
                 "rope_parameters.sliding_attention must be an object with the parameters");
  expect_refused({{"sliding_attention", none}},
                 "rope_parameters.full_attention must be an object with the parameters");
  expect_refused({{"sliding_attention", none}, {"full_attention", nullptr}},
                 "rope_parameters.full_attention must be an object");
  expect_refused({{"sliding_attention", none}, {"full_attention", 10000.0}},
                 "rope_parameters.full_attention must be an object");
  expect_refused({{"sliding_attention", none}, {"full_attention", none}, {"rope_theta", 1e6}},
                 "rope_parameters has parameters beside the objects of types of layers");
  expect_refused({{"sliding_attention", none}, {"full_attention", {{"rope_type", "su"}}}},
                 "rope_parameters.full_attention.rope_type is \"su\"");
  expect_refused({{"sliding_attention", none},
                  {"full_attention", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}}},
                 "rope_parameters.full_attention.partial_rotary_factor is 0.5");
  ExpectRefused("rope_local_base_freq", 10000.0, "rope_local_base_freq is 10000");
}

TEST_F(HfRopeTest, RefusesTwoDescriptionsOfRopeThatDiffer) {
  json config = TinyConfig();
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  config["rope_parameters"] = {{"type", "linear"}, {"factor", 4.0}};
  const auto read = Read(config);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("rope_scaling are both given"));
}

}  // namespace
}  // namespace cria
