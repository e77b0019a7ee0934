// Models with the codes of a GGUF file predict what the same weights in f32 predict.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "decode/loaded_model.h"
#include "support/block_gguf.h"
#include "support/converted_model.h"
#include "support/family_checkpoint.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

struct TestedFile {
  const char* name;
  // The types of the attention's values, of down_proj, and of all other matrices.
  std::string_view values;
  std::string_view down;
  std::string_view others;
};

class KeptCodesTest : public ::testing::TestWithParam<TestedFile> {
 protected:
  std::vector<float> LogitsOf(const ConvertOptions& conversion) const {
    const support::CheckpointSpec spec = support::SpecOfBlocks();
    reference::ReferenceModel model = support::MakeModel(spec);
    const std::filesystem::path gguf = directory_.path() / "model.gguf";
    support::WriteBlockGguf(
        gguf,
        [](const std::string& name) {
          if (name.contains("v_proj")) return GetParam().values;
          return name.contains("down_proj") ? GetParam().down : GetParam().others;
        },
        model);
    LoadedModel loaded(std::make_shared<const ConvertedModel>(gguf, conversion),
                       {.context_tokens = 64, .kv_type = KvType::kF32}, 2);
    // One token, and then several at once.
    return loaded.Run(SomeIds(14, spec.config.vocab_size), {1, 13});
  }

  support::TemporaryDirectory directory_;
};

TEST_P(KeptCodesTest, PredictAsTheFileDoes) {
  const std::vector<float> expected = LogitsOf({.weights = Scheme::kF32});
  const std::vector<float> logits = LogitsOf({.weights = Scheme::kQc8w, .keeps_codes = true});
  const std::vector<float> zeros(expected.size());
  const float magnitude = RootMeanSquareDifference(expected, zeros);
  // Rounding activations to int8 costs 1 to 2 in 100.
  EXPECT_LT(RootMeanSquareDifference(logits, expected), 0.03f * magnitude);
}

// Experts in MXFP4 beside other weights in f32. All experts are chosen for every token: otherwise,
// rounded activations could choose others, and the logits of some tokens would be far away.
TEST(KeptCodesOfExperts, PredictAsTheCheckpointDoes) {
  constexpr size_t kRows = 48;
  support::FamilyCheckpoint family = support::FamilyNamed("GptOssMxfp4");
  nlohmann::json config = nlohmann::json::parse(family.config_json);
  config["num_experts_per_tok"] = config["num_local_experts"];
  family.config_json = config.dump();
  const auto logits_of = [&](const ConvertOptions& conversion) {
    LoadedModel loaded(std::make_shared<const ConvertedModel>(family, conversion),
                       {.context_tokens = 64, .kv_type = KvType::kF32}, 2);
    return loaded.Run(SomeIds(kRows, 300), {1, kRows - 1});
  };
  const std::vector<float> expected = logits_of({.weights = Scheme::kF32});
  const std::vector<float> logits = logits_of({.weights = Scheme::kF32, .keeps_codes = true});
  const float magnitude = RootMeanSquareDifference(expected, std::vector<float>(expected.size()));
  // Rounding activations to int8 costs 2.7 in 100, in four layers of narrow experts.
  EXPECT_LT(RootMeanSquareDifference(logits, expected), 0.04f * magnitude);
}

INSTANTIATE_TEST_SUITE_P(Files, KeptCodesTest,
                         ::testing::Values(TestedFile{"Q4_K_M", "Q6_K", "Q6_K", "Q4_K"},
                                           TestedFile{"Q4_0", "Q4_0", "Q4_0", "Q4_0"},
                                           TestedFile{"Q3_K", "Q5_K", "Q4_K", "Q3_K"},
                                           TestedFile{"IQ4_XS", "Q5_0", "Q8_0", "IQ4_XS"},
                                           TestedFile{"MXFP4", "Q8_0", "MXFP4", "MXFP4"},
                                           TestedFile{"Q2_K", "Q4_1", "Q5_1", "Q2_K"}),
                         [](const auto& file) { return std::string(file.param.name); });

}  // namespace
}  // namespace cria
