// Compares the demo checkpoint, from its files to its text, with the reference decoder.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decode/open_sequence.h"
#include "golden/trained_model.h"
#include "llm/engine.h"
#include "reference/hugging_face_directory.h"
#include "reference/reference_decoder.h"
#include "support/convert_model.h"
#include "support/emulation.h"
#include "support/paths.h"
#include "support/schemes_and_kv_types.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria {
namespace {

class DemoModel : public testing::Test {
 protected:
  static constexpr size_t kContext = 256;

  std::unique_ptr<Engine> Load(Scheme scheme, EngineOptions options = {}) {
    const auto path = directory_.path() / "model.cria";
    support::ConvertModel(support::kDemoCheckpoint, path, {.weights = scheme});
    if (options.context_tokens == 0) options.context_tokens = kContext;
    options.num_threads = support::UsualThreads();
    return Unwrap(Engine::Load(path.string(), options));
  }

  // A question, a text in the middle of a conversation, and an answer that has begun.
  static std::vector<std::vector<int32_t>> Prompts(const Engine& engine) {
    std::vector<std::vector<int32_t>> prompts;
    for (const char* text :
         {"<|im_start|>user\nHello! Who are you?<|im_end|>\n<|im_start|>assistant\n",
          "Once there was a llama", "<|im_start|>assistant\nI do not"}) {
      prompts.push_back(Unwrap(engine.tokenizer().Encode(text, {.parse_special = true})));
    }
    return prompts;
  }

  // The beginning of the demo's conversations: so many windows.
  static std::vector<int32_t> Text(const Engine& engine, size_t num_windows) {
    std::vector<int32_t> ids = DemoIds(engine.tokenizer(), support::kDemoCheckpoint);
    EXPECT_GT(ids.size(), num_windows * (kContext - 1));
    ids.resize(num_windows * (kContext - 1));
    return ids;
  }
  static double Nats(Engine& engine) {
    return MeanNats(engine, Text(engine, support::IsEmulated() ? 4 : 20), kContext);
  }

  static std::vector<int> ForReference(const std::vector<int32_t>& ids) {
    return {ids.begin(), ids.end()};
  }

  support::TemporaryDirectory directory_;
  const reference::ReferenceModel reference_ =
      reference::ReadHuggingFaceDirectory(support::kDemoCheckpoint);
};

TEST_F(DemoModel, F32ContinuesTokenForToken) {
  constexpr size_t kCount = 40;
  const auto engine = Load(Scheme::kF32);
  for (const std::vector<int32_t>& prompt : Prompts(*engine)) {
    const std::vector<int> expected = Greedy(reference_, ForReference(prompt), kCount);
    EXPECT_EQ(GreedyIds(*engine, prompt, kCount),
              std::vector<int32_t>(expected.begin(), expected.end()));
  }
}

TEST_F(DemoModel, F32LogitsAgree) {
  const auto engine = Load(Scheme::kF32);
  const size_t vocab_size = engine->decoder().vocab_size();
  for (const std::vector<int32_t>& ids : Prompts(*engine)) {
    const std::vector<double> expected = Logits(reference_, ForReference(ids));
    ASSERT_EQ(expected.size(), ids.size() * vocab_size);
    const auto sequence = Unwrap(OpenSequence::Create(engine->decoder().sequences(), ids.size()));
    ASSERT_TRUE(engine->decoder().ForwardSequence(sequence.id(), ids, 0, ids.size()));
    for (size_t row = 0; row < ids.size(); ++row) {
      const auto logits = engine->decoder().Logits(row);
      ASSERT_TRUE(logits);
      for (size_t id = 0; id < vocab_size; ++id) {
        ASSERT_NEAR((*logits)[id], expected[row * vocab_size + id], 1e-3) << "row " << row;
      }
    }
  }
}

TEST_F(DemoModel, F32LikelihoodIsTheReferences) {
  const auto engine = Load(Scheme::kF32);
  const std::vector<int32_t> ids = Text(*engine, 1);
  // Windows of another length than the text's, so that it takes several.
  constexpr size_t kWindow = 100;
  EXPECT_NEAR(MeanNats(*engine, ids, kWindow),
              MeanNegativeLogLikelihood(reference_, ForReference(ids), kWindow,
                                        reference_.config.bos_token_id),
              1e-4);
}

TEST_F(DemoModel, QuantizedWeightsCostLittle) {
  const double f32 = Nats(*Load(Scheme::kF32));
  // Every other step of its training used weights rounded to int4.
  for (const auto& [scheme, nats] :
       {std::pair(Scheme::kQc8w, 0.01), std::pair(Scheme::kQb4w, 0.05)}) {
    const double cost = Nats(*Load(scheme)) - f32;
    RecordProperty(std::string(SchemeName(scheme)), std::to_string(cost));
    EXPECT_LT(std::abs(cost), nats) << SchemeName(scheme);
  }
}

TEST_F(DemoModel, SmallerKeysAndValuesCostLittle) {
  const double f32 = Nats(*Load(Scheme::kF32));
  for (const auto& [type, nats] : {std::pair(KvType::kF16, 1e-4), std::pair(KvType::kInt8, 0.01)}) {
    EXPECT_LT(std::abs(Nats(*Load(Scheme::kF32, {.kv_type = type})) - f32), nats)
        << KvTypeName(type);
  }
}

TEST_F(DemoModel, EveryChunkSizeGivesTheSameGreedyTokens) {
  for (const auto& [scheme, kv_type] : support::SchemesAndKvTypes()) {
    std::vector<std::vector<int32_t>> continuations;
    for (const size_t chunk : {1, 7, 128}) {
      const auto engine = Load(scheme, {.chunk_tokens = chunk, .kv_type = kv_type});
      continuations.push_back(
          GreedyIds(*engine, Text(*engine, 1), support::IsEmulated() ? 10 : 40));
    }
    EXPECT_THAT(continuations, testing::Each(continuations.front()))
        << SchemeName(scheme) << " weights, " << KvTypeName(kv_type) << " KV";
  }
}

}  // namespace
}  // namespace cria
