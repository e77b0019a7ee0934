#include "reference/reference_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>

#include "golden/test_data.h"
#include "reference/hugging_face_directory.h"
#include "reference/reference_rope.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/sanitizers.h"

namespace cria::reference {
namespace {

ReferenceTensor Filled(std::vector<size_t> shape, float value) {
  size_t count = 1;
  for (size_t extent : shape) count *= extent;
  return {std::move(shape), std::vector<float>(count, value)};
}

// One layer, one head, whose projections are all zero, norms one, epsilon zero, and a head that
// returns the final normalized vector: every block of it adds nothing until a test sets its
// weights.
ReferenceModel SilentModel(size_t hidden_size, size_t head_dim,
                           const std::vector<std::vector<float>>& embeddings) {
  ReferenceModel model;
  ReferenceConfig& c = model.config;
  c.hidden_size = hidden_size;
  c.intermediate_size = 1;
  c.num_hidden_layers = 1;
  c.num_attention_heads = c.num_key_value_heads = 1;
  c.head_dim = head_dim;
  c.vocab_size = hidden_size;
  c.max_position_embeddings = 16;
  c.rms_norm_eps = 0.0;
  auto& tensors = model.tensors;
  tensors["model.embed_tokens.weight"] = Filled({c.vocab_size, hidden_size}, 0.0f);
  tensors["lm_head.weight"] = Filled({c.vocab_size, hidden_size}, 0.0f);
  for (size_t i = 0; i < hidden_size; ++i) {
    tensors["lm_head.weight"].values[i * hidden_size + i] = 1.0f;
  }
  for (size_t id = 0; id < embeddings.size(); ++id) {
    std::copy(embeddings[id].begin(), embeddings[id].end(),
              tensors["model.embed_tokens.weight"].values.begin() + id * hidden_size);
  }
  tensors["model.norm.weight"] = Filled({hidden_size}, 1.0f);
  const std::string prefix = "model.layers.0.";
  tensors[prefix + "input_layernorm.weight"] = Filled({hidden_size}, 1.0f);
  tensors[prefix + "post_attention_layernorm.weight"] = Filled({hidden_size}, 1.0f);
  for (const char* name : {"q", "k", "v"}) {
    tensors[prefix + "self_attn." + name + "_proj.weight"] = Filled({head_dim, hidden_size}, 0.0f);
  }
  tensors[prefix + "self_attn.o_proj.weight"] = Filled({hidden_size, head_dim}, 0.0f);
  tensors[prefix + "mlp.gate_proj.weight"] = Filled({1, hidden_size}, 0.0f);
  tensors[prefix + "mlp.up_proj.weight"] = Filled({1, hidden_size}, 0.0f);
  tensors[prefix + "mlp.down_proj.weight"] = Filled({hidden_size, 1}, 0.0f);
  return model;
}

std::vector<float>& LayerWeights(ReferenceModel& model, const std::string& name) {
  return model.tensors.at("model.layers.0." + name + ".weight").values;
}

void ExpectRow(const std::vector<double>& logits, size_t row, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(logits[row * expected.size() + i], expected[i], 1e-12)
        << "row " << row << ", " << i;
  }
}

TEST(ReferenceDecoder, NormalizesByTheRootOfTheMeanSquare) {
  ReferenceModel model = SilentModel(2, 2, {{3, 4}});
  model.config.rms_norm_eps = 3.5;  // The mean square is 12.5, so that the root is 4.
  model.tensors.at("model.norm.weight").values = {1, 2};
  ExpectRow(Logits(model, std::vector{0}), 0, {3.0 / 4.0, 2.0 * 4.0 / 4.0});
}

TEST(ReferenceDecoder, TiedHeadIsTheEmbedding) {
  ReferenceModel model = SilentModel(2, 2, {{1, 1}, {1, -1}});
  model.config.tie_word_embeddings = true;
  model.tensors.erase("lm_head.weight");
  ExpectRow(Logits(model, std::vector{1}), 0, {0.0, 2.0});
}

TEST(ReferenceDecoder, SwiGluMultipliesSiluOfGateByUp) {
  ReferenceModel model = SilentModel(2, 2, {{1, -1}});
  LayerWeights(model, "mlp.gate_proj") = {1, 0};
  LayerWeights(model, "mlp.up_proj") = {0, -2};
  LayerWeights(model, "mlp.down_proj") = {3, 0};
  const double first = 1.0 + 3.0 * (2.0 / (1.0 + std::exp(-1.0)));
  const double root = std::sqrt((first * first + 1.0) / 2.0);
  ExpectRow(Logits(model, std::vector{0}), 0, {first / root, -1.0 / root});
}

TEST(ReferenceDecoder, EqualScoresGiveTheMeanOfTheValuesSoFar) {
  ReferenceModel model = SilentModel(2, 2, {{1, 1}, {1, -1}});
  LayerWeights(model, "self_attn.v_proj") = {1, 0, 0, 1};
  LayerWeights(model, "self_attn.o_proj") = {1, 0, 0, 1};
  const std::vector<double> logits = Logits(model, std::vector{0, 1});
  ExpectRow(logits, 0, {1.0, 1.0});  // Alone: [1,1] + [1,1].
  const double root = std::sqrt(2.5);
  ExpectRow(logits, 1, {2.0 / root, -1.0 / root});  // [1,-1] + [1,0].
}

TEST(ReferenceDecoder, AWindowEndsWithTheTokenItself) {
  ReferenceModel model = SilentModel(2, 2, {{1, 1}, {1, -1}});
  LayerWeights(model, "self_attn.v_proj") = {1, 0, 0, 1};
  LayerWeights(model, "self_attn.o_proj") = {1, 0, 0, 1};
  model.config.sliding_window = 1;
  ExpectRow(Logits(model, std::vector{0, 1}), 1, {1.0, -1.0});  // [1,-1] + [1,-1].
  model.config.sliding_window = 2;
  const std::vector<double> logits = Logits(model, std::vector{0, 0, 1});
  ExpectRow(logits, 1, {1.0, 1.0});
  const double root = std::sqrt(2.5);
  ExpectRow(logits, 2, {2.0 / root, -1.0 / root});  // [1,-1] + [1,0], where all would give [1,1/3].
}

// Channels 0 and 1 are query and key, equal for both tokens, so that the scores depend on the
// distance alone; channels 2 and 3 are the value, which tells the tokens apart.
ReferenceModel DistanceModel(float query_scale) {
  ReferenceModel model = SilentModel(4, 2, {{1, 1, 1, -1}, {1, 1, -1, 1}});
  LayerWeights(model, "self_attn.q_proj") = {query_scale, 0, 0, 0, 0, query_scale, 0, 0};
  LayerWeights(model, "self_attn.k_proj") = {1, 0, 0, 0, 0, 1, 0, 0};
  LayerWeights(model, "self_attn.v_proj") = {0, 0, 1, 0, 0, 0, 0, 1};
  LayerWeights(model, "self_attn.o_proj") = {0, 0, 0, 0, 1, 0, 0, 1};
  return model;
}

TEST(ReferenceDecoder, RopeTurnsByTheDistance) {
  // With one pair the frequency is 1, and a dot product at distance d is 2 cos(d).
  const std::vector<double> logits = Logits(DistanceModel(1.0f), std::vector{0, 1, 1});
  const double at_0 = std::exp(std::numbers::sqrt2 * std::cos(2.0));
  const double at_1 = std::exp(std::numbers::sqrt2 * std::cos(1.0));
  const double at_2 = std::exp(std::numbers::sqrt2);
  // Token 0 has value [1,-1] and token 1 has [-1,1].
  const double attended = (at_0 - at_1 - at_2) / (at_0 + at_1 + at_2);
  const double last = attended - 1.0;
  const double root = std::sqrt((2.0 + 2.0 * last * last) / 4.0);
  ExpectRow(logits, 2, {1.0 / root, 1.0 / root, last / root, -last / root});
}

// Two layers, of which one is a copy that writes nothing: the result is that of the other one, with
// its own window and frequencies.
TEST(ReferenceDecoder, LayersMayHaveTheirOwnAttention) {
  const ReferenceAttention plain;
  const ReferenceAttention window = {.sliding_window = 2};
  const ReferenceAttention stretched = {
      .rope_scaling = {.type = ReferenceRopeScaling::Type::kLinear, .factor = 2.0}};
  const std::vector<int> ids = {0, 1, 1};
  const auto expected = [&](const ReferenceAttention& attention) {
    const double stretch = attention.rope_scaling.factor;
    const auto weight = [&](double distance) {
      return std::exp(std::numbers::sqrt2 * std::cos(distance / stretch));
    };
    const double first = attention.sliding_window == 2 ? 0.0 : weight(2.0);
    const double attended =
        (first - weight(1.0) - weight(0.0)) / (first + weight(1.0) + weight(0.0));
    const double last = attended - 1.0;
    const double root = std::sqrt((2.0 + 2.0 * last * last) / 4.0);
    return std::vector{1.0 / root, 1.0 / root, last / root, -last / root};
  };
  ReferenceModel model = DistanceModel(1.0f);
  for (const ReferenceAttention& own : {plain, window, stretched}) {
    for (const ReferenceAttention& other : {plain, window, stretched}) {
      for (size_t silent = 0; silent < 2; ++silent) {
        ReferenceModel two = model;
        two.config.num_hidden_layers = 2;
        two.config.layers = {own, other};
        if (silent == 0) std::swap(two.config.layers[0], two.config.layers[1]);
        for (const auto& [name, tensor] : model.tensors) {
          if (!name.starts_with("model.layers.0.")) continue;
          two.tensors["model.layers.1." + name.substr(15)] = tensor;
        }
        std::ranges::fill(
            two.tensors.at("model.layers." + std::to_string(silent) + ".self_attn.o_proj.weight")
                .values,
            0.0f);
        ExpectRow(Logits(two, ids), 2, expected(own));
      }
    }
  }
}

TEST(ReferenceDecoder, AStrongQueryAttendsToTheNearestAlone) {
  const std::vector<double> logits = Logits(DistanceModel(1000.0f), std::vector{0, 1});
  const double root = std::sqrt((2.0 + 2.0 * 4.0) / 4.0);
  ExpectRow(logits, 1, {1.0 / root, 1.0 / root, -2.0 / root, 2.0 / root});
}

TEST(ReferenceDecoder, RopePairsTheHalvesOfAHead) {
  // Head of four: pair (0, 2) at frequency 1, pair (1, 3) at frequency 1/10. The query has only
  // channel 0 and the key only channel 2, so that the score at distance d is sin(d) / sqrt(4).
  ReferenceModel model = SilentModel(4, 4, {{1, 1, 1, -1}, {1, 1, 1, 1}});
  model.config.rope_theta = 100.0;
  LayerWeights(model, "self_attn.q_proj")[0] = 1;          // Row 0, from channel 0.
  LayerWeights(model, "self_attn.k_proj")[2 * 4 + 0] = 1;  // Row 2, from channel 0.
  LayerWeights(model, "self_attn.v_proj")[0 * 4 + 3] = 1;  // Row 0, from channel 3.
  LayerWeights(model, "self_attn.o_proj")[3 * 4 + 0] = 1;  // To channel 3.
  const std::vector<double> logits = Logits(model, std::vector{0, 1});
  const double far = std::exp(std::sin(1.0) / 2.0);
  const double last = 1.0 + (1.0 - far) / (1.0 + far);
  const double root = std::sqrt((3.0 + last * last) / 4.0);
  ExpectRow(logits, 1, {1.0 / root, 1.0 / root, 1.0 / root, last / root});
}

TEST(ReferenceDecoder, ConsecutiveQueryHeadsShareAKeyValueHead) {
  // Four query heads over two key-value heads, whose values are constants 1 and 2 made from channel
  // 0; head h writes to channel h.
  ReferenceModel model = SilentModel(4, 2, {{1, 1, 1, 1}});
  model.config.num_attention_heads = 4;
  model.config.num_key_value_heads = 2;
  const std::string prefix = "model.layers.0.self_attn.";
  model.tensors[prefix + "q_proj.weight"] = Filled({8, 4}, 0.0f);
  model.tensors[prefix + "k_proj.weight"] = Filled({4, 4}, 0.0f);
  model.tensors[prefix + "v_proj.weight"] = Filled({4, 4}, 0.0f);
  model.tensors[prefix + "o_proj.weight"] = Filled({4, 8}, 0.0f);
  LayerWeights(model, "self_attn.v_proj")[0 * 4] = 1;  // Key-value head 0, element 0.
  LayerWeights(model, "self_attn.v_proj")[2 * 4] = 2;  // Key-value head 1, element 0.
  for (size_t h = 0; h < 4; ++h) LayerWeights(model, "self_attn.o_proj")[h * 8 + h * 2] = 1;
  const double root = std::sqrt((4.0 + 4.0 + 9.0 + 9.0) / 4.0);
  ExpectRow(Logits(model, std::vector{0}), 0, {2 / root, 2 / root, 3 / root, 3 / root});
}

TEST(RopeFrequencies, ArePowersOfTheta) {
  ReferenceConfig config;
  config.head_dim = 6;
  config.rope_theta = 1000.0;
  const std::vector<double> frequencies = RopeFrequencies(config);
  ASSERT_EQ(frequencies.size(), 3u);
  EXPECT_NEAR(frequencies[0], 1.0, 1e-15);
  EXPECT_NEAR(frequencies[1], 0.1, 1e-15);
  EXPECT_NEAR(frequencies[2], 0.01, 1e-15);
}

TEST(RopeFrequencies, LinearScalingDivides) {
  ReferenceConfig config;
  config.head_dim = 2;
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kLinear, .factor = 4.0};
  EXPECT_NEAR(RopeFrequencies(config)[0], 0.25, 1e-15);
}

TEST(RopeFrequencies, Llama3ScalingStretchesTheLongWavelengths) {
  ReferenceConfig config;
  config.head_dim = 2;  // One frequency, 1, whose wavelength is 2 pi.
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kLlama3,
                         .factor = 8.0,
                         .low_freq_factor = 1.0,
                         .high_freq_factor = 4.0,
                         .original_max_position_embeddings = 32};
  EXPECT_NEAR(RopeFrequencies(config)[0], 1.0, 1e-15);  // 5.09 turns.
  config.rope_scaling.original_max_position_embeddings = 4;
  EXPECT_NEAR(RopeFrequencies(config)[0], 1.0 / 8.0, 1e-15);  // 0.64 turns.
  config.rope_scaling.original_max_position_embeddings = 8;   // 4 / pi = 1.27 turns.
  const double smooth = (4.0 / std::numbers::pi - 1.0) / 3.0;
  EXPECT_NEAR(RopeFrequencies(config)[0], smooth + (1.0 - smooth) / 8.0, 1e-15);
}

TEST(RopeFrequencies, DynamicScalingRaisesThetaBeyondTheTrainedLength) {
  ReferenceConfig config;
  config.head_dim = 4;
  config.rope_theta = 100.0;
  config.max_position_embeddings = 8;
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kDynamic, .factor = 2.0};
  EXPECT_NEAR(RopeFrequencies(config, 8)[1], 0.1, 1e-15);
  // (2 * 16 / 8 - 1)^(4 / 2) = 9 times theta.
  EXPECT_NEAR(RopeFrequencies(config, 16)[1], 1.0 / 30.0, 1e-15);
}

TEST(RopeFrequencies, YarnStretchesPairsThatTurnSeldom) {
  ReferenceConfig config;
  config.head_dim = 8;
  config.rope_theta = 10000.0;  // Frequencies 1, 0.1, 0.01 and 0.001.
  // In 200 pi tokens they turn 100, 10, 1 and 0.1 times.
  config.rope_scaling = {.type = ReferenceRopeScaling::Type::kYarn,
                         .factor = 4.0,
                         .original_max_position_embeddings = 628,
                         .beta_fast = 99.0,
                         .beta_slow = 0.11};
  // From pair 0.004, or 0, to 2.96, or 3.
  const std::vector<double> frequencies = RopeFrequencies(config);
  EXPECT_NEAR(frequencies[0], 1.0, 1e-12);
  EXPECT_NEAR(frequencies[1], 0.1 * (2.0 / 3.0 + 1.0 / 12.0), 1e-12);
  EXPECT_NEAR(frequencies[2], 0.01 * (1.0 / 3.0 + 2.0 / 12.0), 1e-12);
  EXPECT_NEAR(frequencies[3], 0.001 / 4.0, 1e-12);
  config.rope_scaling.truncate = false;
  EXPECT_NE(RopeFrequencies(config)[1], frequencies[1]);
}

TEST(ReferenceDecoder, BiasesAreAdded) {
  ReferenceModel model = SilentModel(2, 2, {{1, 1}});
  model.config.o_bias = true;
  model.tensors["model.layers.0.self_attn.o_proj.bias"] = {{2}, {2.0f, 0.0f}};
  model.config.mlp_bias = true;
  model.tensors["model.layers.0.mlp.gate_proj.bias"] = {{1}, {1.0f}};
  model.tensors["model.layers.0.mlp.up_proj.bias"] = {{1}, {3.0f}};
  model.tensors["model.layers.0.mlp.down_proj.bias"] = {{2}, {0.0f, 4.0f}};
  // (1, 1) + (2, 0) + (0, 4).
  const double root = std::sqrt((9.0 + 25.0) / 2.0);
  ExpectRow(Logits(model, std::vector{0}), 0, {3 / root, 5 / root});
  // The down projection sees silu(1) * 3.
  LayerWeights(model, "mlp.down_proj") = {1.0f, 0.0f};
  const double fed = 3.0 + 3.0 / (1.0 + std::exp(-1.0));
  const double fed_root = std::sqrt((fed * fed + 25.0) / 2.0);
  ExpectRow(Logits(model, std::vector{0}), 0, {fed / fed_root, 5 / fed_root});
}

// Values are all bias, so that attention returns it whatever its weights.
TEST(ReferenceDecoder, ValuesHaveTheirBias) {
  ReferenceModel model = SilentModel(2, 2, {{1, 1}});
  model.config.qkv_bias = true;
  for (const char* name : {"q", "k", "v"}) {
    model.tensors[std::string("model.layers.0.self_attn.") + name + "_proj.bias"] = {{2},
                                                                                     {5.0f, 7.0f}};
  }
  LayerWeights(model, "self_attn.o_proj") = {1, 0, 0, 1};
  const double root = std::sqrt((36.0 + 64.0) / 2.0);
  ExpectRow(Logits(model, std::vector{0, 0}), 1, {6 / root, 8 / root});
}

// Two keys of lengths 3 and 9 in one direction; their norm makes them alike, and so their weights
// one half, whatever the query.
TEST(ReferenceDecoder, HeadsAreNormalizedBeforeTheyTurn) {
  ReferenceModel model = SilentModel(2, 2, {{1, 0}, {0, 1}});
  model.config.rope_theta = 1e30;
  model.config.rope_scaling = {.type = ReferenceRopeScaling::Type::kLinear, .factor = 1e30};
  LayerWeights(model, "self_attn.q_proj") = {4, 4, 0, 0};
  LayerWeights(model, "self_attn.k_proj") = {3, 9, 0, 0};
  LayerWeights(model, "self_attn.v_proj") = {2, 0, 0, 2};
  LayerWeights(model, "self_attn.o_proj") = {1, 0, 0, 1};
  const std::vector<double> uneven = Logits(model, std::vector{0, 1});
  model.config.qk_norm = true;
  model.tensors["model.layers.0.self_attn.q_norm.weight"] = {{2}, {1.0f, 1.0f}};
  model.tensors["model.layers.0.self_attn.k_norm.weight"] = {{2}, {1.0f, 1.0f}};
  // (0, 1) + ((2, 0) + (0, 2)) / 2 * sqrt(2), which the first norm multiplies embeddings by.
  const double r = std::sqrt(2.0);
  const double root = std::sqrt((r * r + (1 + r) * (1 + r)) / 2.0);
  ExpectRow(Logits(model, std::vector{0, 1}), 1, {r / root, (1 + r) / root});
  EXPECT_GT(uneven[3], (1 + r) / root + 0.01);
}

TEST(ReferenceDecoder, GreedyTakesTheLargestAndTheLowestIdOfEqualOnes) {
  EXPECT_EQ(ArgMax(std::vector{1.0, 3.0, 3.0, 2.0}), 1);
  // Each token's embedding makes the other one the likeliest.
  const ReferenceModel model = SilentModel(2, 2, {{-1, 1}, {1, -1}});
  EXPECT_EQ(Greedy(model, std::vector{0}, 4), (std::vector{1, 0, 1, 0}));
}

TEST(ReferenceDecoder, LikelihoodPredictsEveryIdOfEveryWindow) {
  // The logits are [-1, 1] after token 0 and [1, -1] after token 1.
  const ReferenceModel model = SilentModel(2, 2, {{-1, 1}, {1, -1}});
  const double likely = std::log1p(std::exp(-2.0));
  const double unlikely = likely + 2.0;
  // Windows [1, 0], [0, 1] and [1], each after a 0.
  const double sum = (likely + likely) + (unlikely + likely) + likely;
  EXPECT_NEAR(MeanNegativeLogLikelihood(model, std::vector{1, 0, 0, 1, 1}, 3, 0), sum / 5, 1e-12);
}

TEST(ReferenceDecoder, RefusesWhatDoesNotFit) {
  ReferenceModel model = SilentModel(2, 2, {{1, 1}});
  EXPECT_THROW(Logits(model, std::vector{2}), std::runtime_error);
  EXPECT_THROW(Logits(model, std::vector{-1}), std::runtime_error);
  EXPECT_THROW(Greedy(model, std::vector<int>(), 1), std::runtime_error);
  model.tensors.at("model.norm.weight").shape = {3};
  EXPECT_THROW(Logits(model, std::vector{0}), std::runtime_error);
  model.tensors.erase("model.norm.weight");
  EXPECT_THROW(Logits(model, std::vector{0}), std::runtime_error);
}

// The demo checkpoint, and what demo_expected.py computed for it.
class DemoModel : public testing::Test {
 protected:
  const ReferenceModel model_ = ReadHuggingFaceDirectory(support::kDemoCheckpoint);
  const nlohmann::json expected_ = nlohmann::json::parse(
      cria::support::ReadFile(support::SourcePath("tests/reference/demo_expected.json")));
};

TEST_F(DemoModel, GreedyIdsAndLogitsAreTheExpected) {
  constexpr size_t kEvery = 32;
  const size_t vocab_size = model_.config.vocab_size;
  ASSERT_EQ(expected_["cases"].size(), 3u);
  for (const nlohmann::json& expected : expected_["cases"]) {
    const auto prompt = expected["prompt_ids"].get<std::vector<int>>();
    const auto greedy = expected["greedy_ids"].get<std::vector<int>>();
    EXPECT_EQ(Greedy(model_, prompt, greedy.size()), greedy);

    const std::vector<double> logits = Logits(model_, prompt);
    const auto rows = expected["every_32nd_logit"].get<std::vector<std::vector<double>>>();
    ASSERT_EQ(rows.size(), 2u);
    for (size_t row = 0; row < rows.size(); ++row) {
      ASSERT_EQ(rows[row].size(), vocab_size / kEvery);
      const size_t first = (prompt.size() - rows.size() + row) * vocab_size;
      for (size_t i = 0; i < rows[row].size(); ++i) {
        ASSERT_NEAR(logits[first + i * kEvery], rows[row][i], 1e-9) << row << ' ' << i;
      }
    }
  }
}

TEST_F(DemoModel, LikelihoodIsTheExpected) {
  EXPECT_NEAR(MeanNegativeLogLikelihood(model_, expected_["text_ids"].get<std::vector<int>>(),
                                        expected_["context"], model_.config.bos_token_id),
              expected_["mean_negative_log_likelihood"].get<double>(), 1e-9);
}

// A trained model of others, which is external test data, and what others computed for it.
class Stories260K : public testing::Test {
 protected:
  void SetUp() override {
    CRIA_NEEDS_TEST_DATA("stories260K");
    directory_ = ExternalTestData() / "stories260K";
    model_ = ReadHuggingFaceDirectory(directory_);
  }

  // The float32 values of a .npy file: a magic word, version, the header's size at byte 8, the
  // header.
  std::vector<float> ReadNpy(const std::string& name) const {
    std::ifstream stream(directory_ / "expected" / name, std::ios::binary);
    const std::string file(std::istreambuf_iterator<char>(stream), {});
    uint16_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data() + 8, sizeof(header_bytes));
    std::vector<float> values((file.size() - 10 - header_bytes) / sizeof(float));
    std::memcpy(values.data(), file.data() + 10 + header_bytes, values.size() * sizeof(float));
    return values;
  }

  std::vector<int> ReadIds() const {
    std::ifstream stream(directory_ / "expected" / "tinystories_30KB.ids");
    return {std::istream_iterator<int>(stream), {}};
  }

  std::filesystem::path directory_;
  ReferenceModel model_;
};

TEST_F(Stories260K, GreedyIdsAndLogitsAreTheExpected) {
  std::ifstream stream(directory_ / "expected" / "greedy.json");
  const nlohmann::json cases = nlohmann::json::parse(stream);
  ASSERT_FALSE(cases.empty());
  double largest_error = 0.0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto prompt = cases[i].at("prompt_ids").get<std::vector<int>>();
    const auto expected_ids = cases[i].at("greedy_ids").get<std::vector<int>>();
    EXPECT_EQ(Greedy(model_, prompt, expected_ids.size()), expected_ids) << "prompt " << i;

    const std::vector<double> logits = Logits(model_, prompt);
    const std::vector<float> expected = ReadNpy("logits-" + std::to_string(i) + ".npy");
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t j = 0; j < logits.size(); ++j) {
      largest_error = std::max(largest_error, std::abs(logits[j] - expected[j]));
    }
  }
  // The files hold float32 of magnitudes up to 20, whose rounding is 1e-6.
  EXPECT_LT(largest_error, 2e-6);
  RecordProperty("largest_error", std::to_string(largest_error));
}

TEST_F(Stories260K, LikelihoodIsTheExpected) {
  if (cria::support::kHeapIsSanitized) GTEST_SKIP() << "it takes a minute there";
  const std::vector<int> ids = ReadIds();
  ASSERT_EQ(ids.size(), 14180u);
  EXPECT_NEAR(MeanNegativeLogLikelihood(model_, ids, 256, 1), 1.511555, 1e-6);
}

}  // namespace
}  // namespace cria::reference
