#include "converter/gguf/gguf_rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/checkpoint/yarn_magnitude.h"

namespace cria {
namespace {

using ::testing::HasSubstr;
using Keys = std::vector<std::pair<std::string, GgufValue>>;

constexpr uint32_t kContext = 4096;

Result<LayerKind> Read(const Keys& keys) {
  GgufMetadata metadata("x.gguf");
  for (const auto& [name, value] : keys) metadata.Add("llama.rope." + name, value);
  return ReadGgufRope(metadata, "llama", kContext);
}

// With these keys beside those of yarn with the factor 4.
Result<LayerKind> ReadYarn(Keys more) {
  more.emplace_back("scaling.type", std::string("yarn"));
  more.emplace_back("scaling.factor", 4.0);
  return Read(more);
}

void ExpectRefused(const Result<LayerKind>& read, std::string_view reason) {
  ASSERT_FALSE(read) << reason;
  EXPECT_THAT(read.error().message(), HasSubstr(reason));
}

TEST(GgufRopeTest, ReadsBaseAndLinearScaling) {
  EXPECT_EQ(Read({}).value(), (LayerKind{.rope_theta = 10000.0f}));
  const RopeScaling linear = {.type = RopeScaling::Type::kLinear, .factor = 2.0f};
  EXPECT_EQ(Read({{"freq_base", 500.0}, {"scaling.factor", 2.0}}).value(),
            (LayerKind{.rope_theta = 500.0f, .rope_scaling = linear}));
  EXPECT_EQ(Read({{"scale_linear", 2.0}}).value().rope_scaling, linear);
  EXPECT_EQ(
      Read({{"scaling.type", std::string("none")}, {"scaling.factor", 2.0}}).value().rope_scaling,
      RopeScaling());
}

TEST(GgufRopeTest, ReadsYarnAndItsDefaults) {
  const float magnitude = YarnMagnitude(4.0f, 1.0f);
  const RopeScaling plain = ReadYarn({}).value().rope_scaling;
  EXPECT_EQ(plain, (RopeScaling{.type = RopeScaling::Type::kYarn,
                                .factor = 4.0f,
                                .original_max_position_embeddings = kContext,
                                .attention_factor = magnitude}));
  EXPECT_NEAR(magnitude, 1.1386f, 1e-4);
  const RopeScaling full = ReadYarn({{"scaling.original_context_length", int64_t{1024}},
                                     {"scaling.yarn_beta_fast", 16.0},
                                     {"scaling.yarn_beta_slow", 2.0},
                                     {"scaling.attn_factor", 0.5},
                                     {"scaling.yarn_log_multiplier", 0.7}})
                               .value()
                               .rope_scaling;
  EXPECT_EQ(full.original_max_position_embeddings, 1024u);
  EXPECT_EQ(full.beta_fast, 16.0f);
  EXPECT_EQ(full.beta_slow, 2.0f);
  EXPECT_EQ(full.attention_factor, 0.5f * magnitude / YarnMagnitude(4.0f, 0.7f));
  EXPECT_TRUE(full.truncate);
  // 1 is what llama.cpp computes without the key, and so is a negative number.
  for (const double neutral : {1.0, -1.0}) {
    EXPECT_EQ(ReadYarn({{"scaling.yarn_ext_factor", neutral}}).value().rope_scaling, plain);
    EXPECT_EQ(ReadYarn({{"scaling.yarn_attn_factor", neutral}}).value().rope_scaling, plain);
  }
}

TEST(GgufRopeTest, RefusesOtherComputationsByName) {
  ExpectRefused(Read({{"scaling.type", std::string("longrope")}}),
                "llama.rope.scaling.type is \"longrope\"");
  ExpectRefused(Read({{"scaling.type", std::string("yarn")}}),
                "llama.rope.scaling.factor is missing");
  for (const double factor : {0.0, 0.5}) {
    ExpectRefused(ReadYarn({{"scaling.yarn_ext_factor", factor}}),
                  "llama.rope.scaling.yarn_ext_factor is ");
  }
  ExpectRefused(ReadYarn({{"scaling.yarn_attn_factor", 1.25}}),
                "llama.rope.scaling.yarn_attn_factor is 1.25, which this version does not support");
  // Without yarn, these factors have no place.
  ExpectRefused(Read({{"scaling.attn_factor", 1.25}}), "llama.rope.scaling.attn_factor is 1.25");
  ExpectRefused(Read({{"scaling.yarn_ext_factor", 1.0}}),
                "llama.rope.scaling.yarn_ext_factor is 1");
}

}  // namespace
}  // namespace cria
