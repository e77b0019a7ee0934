// Models that ranks compute together, beside the same models alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "llm/engine.h"
#include "ranks/ranked_engines.h"
#include "support/converted_model.h"
#include "support/emulation.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::ranks {
namespace {

using support::ConvertedModel;

constexpr size_t kTokens = 40;

std::vector<int32_t> SomeIds(size_t count, size_t vocab_size) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int32_t>((i * i * 7 + i * 13 + 5) % vocab_size);
  }
  return ids;
}

EngineOptions SmallOptions(KvType kv_type = KvType::kF32) {
  return {.num_threads = 1, .context_tokens = 128, .chunk_tokens = 16, .kv_type = kv_type};
}

// Relative to the largest logit.
float Difference(const std::vector<float>& found, const std::vector<float>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  float largest = 0.0f;
  float difference = 0.0f;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const float own = std::abs(found[i] - expected[i]);
    difference = std::isnan(own) ? own : std::max(difference, own);
    if (std::isnan(difference)) return difference;
  }
  return difference / largest;
}

// With other products' inputs rounded to int8 for each rank by itself, logits differ as much as two
// ways to round differ, and no more. Returns the median over the rows, because rounding lets some
// rows of a mixture choose another expert.
float RootMeanSquare(const std::vector<float>& found, const std::vector<float>& expected,
                     size_t vocab_size) {
  std::vector<float> rows;
  for (size_t first = 0; first < expected.size(); first += vocab_size) {
    double sum = 0.0;
    double size = 0.0;
    for (size_t i = first; i < first + vocab_size; ++i) {
      sum += (double{found[i]} - expected[i]) * (double{found[i]} - expected[i]);
      size += double{expected[i]} * expected[i];
    }
    rows.push_back(static_cast<float>(std::sqrt(sum / size)));
  }
  std::ranges::sort(rows);
  return rows[rows.size() / 2];
}

struct NamedModel {
  std::string name;
  std::shared_ptr<const ConvertedModel> (*make)(const std::string& name, Scheme scheme);
};

std::shared_ptr<const ConvertedModel> MakeTiny(const std::string& name, Scheme scheme) {
  return std::make_shared<const ConvertedModel>(support::SpecNamed(name),
                                                ConvertOptions{.weights = scheme});
}

std::shared_ptr<const ConvertedModel> MakeFamily(const std::string& name, Scheme scheme) {
  return std::make_shared<const ConvertedModel>(support::FamilyNamed(name),
                                                ConvertOptions{.weights = scheme});
}

// Twelve query heads, which six ranks divide although there are two heads of keys.
std::shared_ptr<const ConvertedModel> MakeManyHeads(const std::string&, Scheme scheme) {
  support::CheckpointSpec spec = support::SpecBiases();
  spec.config.num_attention_heads = 12;
  spec.config.num_key_value_heads = 2;
  spec.config.intermediate_size = 384;
  return std::make_shared<const ConvertedModel>(spec, ConvertOptions{.weights = scheme});
}

// A family whose heads are normalized together: of the keys that three ranks have, each
// channel counts once.
std::shared_ptr<const ConvertedModel> MakeManyOlmo2Heads(const std::string&, Scheme scheme) {
  support::FamilyCheckpoint family = support::FamilyNamed("Olmo2");
  nlohmann::json config = nlohmann::json::parse(family.config_json);
  config.update({{"num_attention_heads", 12}, {"head_dim", 16}, {"intermediate_size", 384}});
  family.config_json = config.dump();
  return std::make_shared<const ConvertedModel>(family, ConvertOptions{.weights = scheme});
}

class RankedModels : public testing::TestWithParam<NamedModel> {
 protected:
  std::shared_ptr<const ConvertedModel> Make(Scheme scheme) const {
    return GetParam().make(GetParam().name, scheme);
  }
};

TEST_P(RankedModels, F32IsAsAlone) {
  const std::shared_ptr<const ConvertedModel> model = Make(Scheme::kF32);
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model->path(), SmallOptions()));
  const size_t vocab_size = alone->file().config().vocab_size;
  const std::vector<int32_t> ids = SomeIds(kTokens, vocab_size);
  const std::vector<float> expected = LogitsOf(*alone, ids, {16, 1, 3});
  const std::vector<int32_t> prompt(ids.begin(), ids.begin() + 9);
  const SamplerOptions sampled = {.top_k = 5, .temperature = 1.0f, .seed = 3};
  const std::vector<int32_t> greedy_text = TextOf(*alone, prompt, {.temperature = 0.0f}, 24);
  const std::vector<int32_t> sampled_text = TextOf(*alone, prompt, sampled, 24);
  for (const std::vector<double>& weights :
       {std::vector<double>{1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {3, 1}, {1, 1, 1, 1, 1, 1}}) {
    if (weights.size() > alone->file().config().num_attention_heads) continue;
    // What is divided, and how often, does not depend on the processor.
    if (support::IsEmulated() && weights.size() != 3) continue;
    SCOPED_TRACE(std::to_string(weights.size()) + " ranks");
    RankedEngines ranked(model->path(), weights, SmallOptions());
    EXPECT_LT(Difference(LogitsOf(ranked.engine(), ids, {16, 1, 3}), expected), 1e-5f);
    EXPECT_EQ(TextOf(ranked.engine(), prompt, {.temperature = 0.0f}, 24), greedy_text);
    EXPECT_EQ(TextOf(ranked.engine(), prompt, sampled, 24), sampled_text);
    Unwrap(ranked.Stop());
  }
}

// Columns of o_proj and down_proj are divided, and each rank quantizes the activations of its own
// columns, with steps of their own: mostly smaller ones.
TEST_P(RankedModels, QuantizedIsNearlyAsAlone) {
  const std::shared_ptr<const ConvertedModel> unrounded = Make(Scheme::kF32);
  const std::unique_ptr<Engine> exact = Unwrap(Engine::Load(unrounded->path(), SmallOptions()));
  for (const auto& [scheme, kv_type] :
       {std::pair(Scheme::kQc8w, KvType::kF16), {Scheme::kQb4w, KvType::kInt8}}) {
    const std::shared_ptr<const ConvertedModel> model = Make(scheme);
    const std::unique_ptr<Engine> alone =
        Unwrap(Engine::Load(model->path(), SmallOptions(kv_type)));
    const ModelConfig& config = alone->file().config();
    const std::vector<int32_t> ids = SomeIds(kTokens, config.vocab_size);
    const std::vector<float> expected = LogitsOf(*alone, ids, {16});
    // Rounding alone changes the logits of some models by more.
    const float rounding = RootMeanSquare(expected, LogitsOf(*exact, ids, {16}), config.vocab_size);
    for (const std::vector<double>& weights : {std::vector<double>{1, 1}, {1, 1, 1}}) {
      const ModelFile file = model->Open();
      if (!Divide(config, ColumnBlocks::Of(file), weights)) continue;
      if (support::IsEmulated() && weights.size() != 2) continue;
      RankedEngines ranked(model->path(), weights, SmallOptions(kv_type));
      EXPECT_LT(RootMeanSquare(LogitsOf(ranked.engine(), ids, {16}), expected, config.vocab_size),
                std::max(0.04f, rounding))
          << weights.size() << " ranks, " << SchemeName(scheme);
      Unwrap(ranked.Stop());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, RankedModels,
    testing::Values(NamedModel{"Gqa", MakeTiny}, NamedModel{"Mqa", MakeTiny},
                    NamedModel{"OddHeadDim", MakeTiny}, NamedModel{"Ministral", MakeTiny},
                    NamedModel{"TwoRopes", MakeTiny}, NamedModel{"Qwen2", MakeTiny},
                    NamedModel{"Qwen3Window", MakeTiny}, NamedModel{"Padded", MakeTiny},
                    NamedModel{"Gemma2", MakeFamily}, NamedModel{"Gemma3", MakeFamily},
                    NamedModel{"Phi4Mini", MakeFamily}, NamedModel{"SmolLm3Window", MakeFamily},
                    NamedModel{"Olmo2", MakeFamily}, NamedModel{"Olmo2Biases", MakeFamily},
                    NamedModel{"Mixtral", MakeFamily}, NamedModel{"Qwen2Moe", MakeFamily},
                    NamedModel{"Qwen2MoeDenseLayers", MakeFamily},
                    NamedModel{"Qwen3MoeBiases", MakeFamily}, NamedModel{"Olmoe", MakeFamily},
                    NamedModel{"GraniteMoeShared", MakeFamily}, NamedModel{"GptOss", MakeFamily},
                    NamedModel{"GptOssMxfp4", MakeFamily}, NamedModel{"Hunyuan", MakeFamily},
                    NamedModel{"ArceeBiases", MakeFamily}, NamedModel{"Apertus", MakeFamily},
                    NamedModel{"Ministral3", MakeFamily}, NamedModel{"Lfm2", MakeFamily},
                    NamedModel{"Lfm2Biases", MakeFamily}, NamedModel{"Lfm2Moe", MakeFamily},
                    NamedModel{"Lfm3", MakeFamily}, NamedModel{"ManyHeads", MakeManyHeads},
                    NamedModel{"ManyOlmo2Heads", MakeManyOlmo2Heads}),
    [](const auto& test) { return test.param.name; });

TEST(RankedModel, KeysAndValuesAreDivided) {
  const ConvertedModel model;
  RankedEngines ranked(model.path(), {1, 1}, SmallOptions());
  EXPECT_EQ(ranked.engine(0).decoder().cache().layer(0).view.num_key_value_heads, 1u);
  EXPECT_EQ(ranked.engine(1).decoder().cache().layer(0).view.num_key_value_heads, 1u);
}

// Rank 0 alone knows which pages sequences hold: two of them, one of which shares the other's, and
// from which tokens are dropped in the middle.
TEST(RankedModel, FollowsSharedAndDroppedTokens) {
  const ConvertedModel model(support::SpecMinistral(), {.weights = Scheme::kF32});
  EngineOptions options = SmallOptions();
  options.context_tokens = 256;
  options.num_sequences = 2;
  const std::vector<int32_t> ids = SomeIds(70, 300);
  const auto run = [&](Engine& engine) {
    Decoder& decoder = engine.decoder();
    Sequences& sequences = decoder.sequences();
    const OpenSequence first = Unwrap(OpenSequence::Create(sequences, 100));
    for (size_t position = 0; position < 70; position += 10) {
      Unwrap(
          decoder.ForwardSequence(first.id(), std::span(ids).subspan(position, 10), position, 0));
    }
    const OpenSequence second = Unwrap(OpenSequence::Create(sequences, 100));
    Unwrap(sequences.Share(first.id(), second.id(), 70));
    Unwrap(decoder.CarryOutMoves());
    Unwrap(sequences.Drop(second.id(), 5, 20));
    Unwrap(decoder.CarryOutMoves());
    const std::vector<int32_t> next = {7, 8, 9, 10};
    const BatchRun runs[] = {
        {.sequence = first.id(), .first_position = 70, .num_tokens = 3, .num_logits = 2},
        {.sequence = second.id(), .first_position = 50, .num_tokens = 1, .num_logits = 1}};
    Unwrap(decoder.Forward({next, runs}));
    std::vector<float> all;
    for (size_t row = 0; row < 3; ++row) {
      const std::span<float> logits = Unwrap(decoder.Logits(row));
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  };
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), options));
  const std::vector<float> expected = run(*alone);
  for (const size_t num_ranks : {2, 3}) {
    RankedEngines ranked(model.path(), std::vector<double>(num_ranks, 1.0), options);
    EXPECT_LT(Difference(run(ranked.engine()), expected), 1e-5f);
    Unwrap(ranked.Stop());
  }
}

// Rank 0 alone knows which states are kept: of a sequence from whose end drafts are refused, and of
// one that shares the tokens up to a checkpoint of it, which is then forgotten.
TEST(RankedModel, FollowsStatesOfRecurrentLayers) {
  const ConvertedModel model(support::FamilyNamed("Lfm2"), {.weights = Scheme::kF32});
  EngineOptions options = SmallOptions();
  options.context_tokens = 256;
  options.num_sequences = 2;
  options.drafts = {.ngram_tokens = 2, .max_tokens = 4};
  const std::vector<int32_t> ids = SomeIds(60, 300);
  const auto run = [&](Engine& engine) {
    Decoder& decoder = engine.decoder();
    Sequences& sequences = decoder.sequences();
    std::vector<float> all;
    const auto forward = [&](std::span<const BatchRun> runs, size_t first, size_t count) {
      Unwrap(decoder.Forward({std::span(ids).subspan(first, count), runs}));
      for (size_t row = 0; row < runs.size(); ++row) {
        const std::span<float> logits = Unwrap(decoder.Logits(row));
        all.insert(all.end(), logits.begin(), logits.end());
      }
    };
    const OpenSequence first = Unwrap(OpenSequence::Create(sequences, 100));
    const auto forward_first = [&](size_t position, size_t count) {
      const BatchRun own = {first.id(), position, count, 1};
      forward({&own, 1}, position, count);
    };
    forward_first(0, 16);
    sequences.AddCheckpoint(first.id());
    Unwrap(decoder.CarryOutMoves());
    forward_first(16, 5);
    // Three of the five are refused.
    forward_first(18, 5);
    const OpenSequence second = Unwrap(OpenSequence::Create(sequences, 100));
    Unwrap(sequences.Share(first.id(), second.id(), 16));
    Unwrap(decoder.CarryOutMoves());
    const BatchRun runs[] = {
        {.sequence = first.id(), .first_position = 23, .num_tokens = 3, .num_logits = 1},
        {.sequence = second.id(), .first_position = 16, .num_tokens = 4, .num_logits = 1}};
    forward(runs, 30, 7);
    Unwrap(sequences.Truncate(first.id(), 16));
    Unwrap(decoder.CarryOutMoves());
    forward_first(16, 3);
    return all;
  };
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), options));
  const std::vector<float> expected = run(*alone);
  for (const size_t num_ranks : {2, 3}) {
    RankedEngines ranked(model.path(), std::vector<double>(num_ranks, 1.0), options);
    EXPECT_LT(Difference(run(ranked.engine()), expected), 1e-5f);
    Unwrap(ranked.Stop());
  }
}

TEST(RankedModel, OnlyCandidatesCrossTheWire) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kF32});
  RankedEngines ranked(model.path(), {1, 1}, SmallOptions());
  const std::vector<int32_t> prompt = SomeIds(9, 300);
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), SmallOptions()));
  const size_t hidden = alone->file().config().hidden_size;
  const size_t layers = alone->file().config().num_hidden_layers;
  const size_t rows = ranked.link().shares()[1].vocabulary.size();
  const auto sent_by_follower = [&](const SamplerOptions& options) {
    const size_t before = ranked.boxes().sent_bytes(1);
    EXPECT_EQ(TextOf(ranked.engine(), prompt, options, 11), TextOf(*alone, prompt, options, 11));
    return ranked.boxes().sent_bytes(1) - before;
  };
  static_cast<void>(sent_by_follower({.temperature = 0.0f}));
  // Only the last token of the prompt is run again, and its logits are sent as a whole.
  const size_t sums = 11 * layers * 2 * hidden * sizeof(float);
  const size_t prompt_row = rows * sizeof(float);
  EXPECT_EQ(sent_by_follower({.temperature = 0.0f}), sums + prompt_row + 10 * 8);
  EXPECT_EQ(sent_by_follower({.top_k = 7, .seed = 1}), sums + prompt_row + 10 * 7 * 8);
  // A penalty can make the seven largest smaller than others.
  EXPECT_EQ(sent_by_follower({.repeat_penalty = 1.5f, .repeat_last_n = 4, .top_k = 7, .seed = 1}),
            sums + prompt_row + 10 * 11 * 8);
  // Any token may become likely: all logits are needed.
  EXPECT_EQ(sent_by_follower({.logit_bias = {{299, 5.0f}}, .top_k = 7, .seed = 1}),
            sums + 11 * prompt_row);
}

TEST(RankedModel, EachRankMapsItsOwnWeights) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kQc8w});
  const support::TemporaryDirectory cache;
  EngineOptions options = SmallOptions();
  options.packing.cache_folder = cache.path();
  size_t num_packed = 0;
  options.packing.on_notice = [&](std::string_view) { ++num_packed; };
  const std::vector<int32_t> ids = SomeIds(kTokens, 300);
  std::vector<float> first;
  for (int start = 0; start < 2; ++start) {
    RankedEngines ranked(model.path(), {1, 1}, options);
    const std::vector<float> logits = LogitsOf(ranked.engine(), ids, {16});
    if (start == 0) first = logits;
    EXPECT_EQ(logits, first);
    EXPECT_TRUE(ranked.engine(1).weights().is_mapped());
    EXPECT_EQ(num_packed, 2u);  // At the first start, each rank its own.
  }
}

TEST(RankedModel, ThePlanIsThatOfThePart) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kQc8w});
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), SmallOptions()));
  RankedEngines ranked(model.path(), {1, 1}, SmallOptions());
  const auto line = [](const Engine& engine, MemoryPart part) {
    return engine.memory_plan().BytesOf(part);
  };
  for (size_t rank = 0; rank < 2; ++rank) {
    const Engine& engine = ranked.engine(rank);
    EXPECT_EQ(2 * line(engine, MemoryPart::kKvCache), line(*alone, MemoryPart::kKvCache));
    EXPECT_LT(line(engine, MemoryPart::kPackedWeights),
              line(*alone, MemoryPart::kPackedWeights) * 6 / 10);
    EXPECT_GT(line(engine, MemoryPart::kRankExchange), 0u);
  }
  EXPECT_EQ(line(*alone, MemoryPart::kRankExchange), 0u);
}

TEST(RankedModel, OnlyRank0PlansTheDraftModel) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kQc8w});
  EngineOptions options = SmallOptions();
  options.draft_model_path = model.path();
  options.max_constraints = 1;
  RankedEngines ranked(model.path(), {1, 1}, options);
  const auto has_line = [&](size_t rank, std::string_view name) {
    return std::ranges::any_of(ranked.engine(rank).memory_plan().lines, [&](const auto& line) {
      return line.name() == name && line.bytes > 0;
    });
  };
  for (const std::string_view name : {"draft model: packed weights", "constraints"}) {
    EXPECT_TRUE(has_line(0, name)) << name;
    EXPECT_FALSE(has_line(1, name)) << name;
  }
  EXPECT_GE(ranked.engine(1).decoder().max_logit_rows(),
            ranked.engine(0).decoder().max_logit_rows());
}

// Each rank maps its part of the experts, which needs no memory unless a token chooses it.
TEST(RankedModel, ExpertsMayStayOnDisk) {
  const ConvertedModel model(support::WideMixture(), {.weights = Scheme::kQc8w});
  const support::TemporaryDirectory cache;
  EngineOptions options = SmallOptions();
  options.packing.cache_folder = cache.path();
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), options));
  const std::vector<int32_t> ids = SomeIds(kTokens, 1024);
  std::vector<float> first;
  for (int start = 0; start < 2; ++start) {
    RankedEngines ranked(model.path(), {1, 1}, options);
    for (size_t rank = 0; rank < 2; ++rank) {
      const Engine& engine = ranked.engine(rank);
      EXPECT_TRUE(engine.weights().is_mapped());
      EXPECT_GT(engine.memory_plan().on_demand_bytes(), 0u);
      EXPECT_LT(engine.memory_plan().on_demand_bytes(),
                alone->memory_plan().on_demand_bytes() * 6 / 10);
    }
    const std::vector<float> logits = LogitsOf(ranked.engine(), ids, {16});
    if (start == 0) first = logits;
    EXPECT_EQ(logits, first);
  }
}

}  // namespace
}  // namespace cria::ranks
