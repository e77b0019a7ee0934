// Drafts on tiny models: the same text as without, whatever their length.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "llm/generator.h"
#include "llm/tiny_engine.h"
#include "llm/turn.h"
#include "support/emulation.h"
#include "xnn/row_bits.h"

namespace cria {
namespace {

using Tokens = std::vector<int32_t>;

constexpr size_t kContextTokens = 512;
constexpr size_t kVocabulary = 250;

struct EngineDraftsCase {
  const char* name;
  Scheme scheme;
  KvType kv_type;
  bool is_mixture = false;
};

class EngineDrafts : public testing::TestWithParam<EngineDraftsCase> {};

// A prompt that has each of its parts several times, so that n-grams are found.
Tokens RepetitivePrompt(size_t seed) {
  Tokens tokens;
  for (size_t i = 0; i < 60 + seed; ++i) {
    tokens.push_back(static_cast<int32_t>((seed * 31 + i % (7 + seed) * 5) % kVocabulary));
  }
  return tokens;
}

Tokens Answer(Session& session, const Tokens& prompt, const SamplerOptions& options) {
  Sampler sampler = Unwrap(Sampler::Create(options, session.vocab_size()));
  Unwrap(Turn(session).Prefill(prompt));
  Tokens generated;
  Unwrap(Generate(session, {.max_tokens = 40}, sampler, [&](const GeneratedToken& token) {
    generated.push_back(token.id);
    return true;
  }));
  return generated;
}

TEST_P(EngineDrafts, TheTextIsTheSame) {
  const auto& [name, scheme, kv_type, is_mixture] = GetParam();
  if (!xnn::RowsAreBitwiseAsAlone(scheme)) {
    GTEST_SKIP() << "on this processor, a product rounds rows differently beside other rows";
  }
  const ConvertOptions conversion = {.weights = scheme, .embedding = scheme, .head = scheme};
  const auto model =
      is_mixture ? std::make_unique<TinyModelFile>(support::WideMixture(), conversion)
                 : std::make_unique<TinyModelFile>(support::SpecGqa(), kContextTokens, conversion);
  const auto engine =
      Unwrap(Engine::Load(model->path(), {.num_threads = 1,
                                          .context_tokens = kContextTokens,
                                          .kv_type = kv_type,
                                          .drafts = {.ngram_tokens = 1, .max_tokens = 16}}));
  size_t num_accepted = 0;
  size_t num_refused = 0;
  for (const float temperature : {0.0f, 0.7f}) {
    for (size_t seed = 0; seed < (support::IsEmulated() ? 1u : 2u); ++seed) {
      const Tokens prompt = RepetitivePrompt(seed);
      // Sharp enough that the model repeats itself.
      const SamplerOptions sampling = {.top_k = 3, .temperature = temperature, .seed = seed};
      Session without(engine->scheduler());
      const Tokens expected = Answer(without, prompt, sampling);
      for (size_t length = 1; length <= 16; length += support::IsEmulated() ? 5 : 3) {
        Session session(
            engine->scheduler(),
            std::make_unique<Drafting>(
                DraftOptions{.ngram_tokens = 1, .max_tokens = length, .min_tokens = length},
                kContextTokens));
        EXPECT_EQ(Answer(session, prompt, sampling), expected) << seed << ", " << length;
        num_accepted += session.stats().accepted_tokens;
        num_refused += session.stats().drafted_tokens - session.stats().accepted_tokens;
      }
      const auto adapting = engine->NewSession();
      EXPECT_EQ(Answer(*adapting, prompt, sampling), expected) << seed;
    }
  }
  EXPECT_GT(num_accepted, 0u);
  EXPECT_GT(num_refused, 0u);
}

// The layer has random weights, so most of what it guesses is refused.
TEST(EngineDraftsTest, TextsWithTheModelsOwnGuessesAreTheSame) {
  const TinyModelFile model(support::FamilyNamed("Qwen35Mtp"));
  const auto load = [&](size_t length) {
    return Unwrap(Engine::Load(
        model.path(), {.num_threads = 1,
                       .context_tokens = 128,
                       .drafts = {.max_tokens = length, .min_tokens = length, .has_mtp = true}}));
  };
  for (const size_t length : {1, 3, 8}) {
    const auto engine = load(length);
    size_t num_refused = 0;
    for (const float temperature : {0.0f, 0.7f}) {
      const SamplerOptions sampling = {.top_k = 3, .temperature = temperature, .seed = 5};
      const Tokens prompt = RepetitivePrompt(3);
      Session without(engine->scheduler());
      const Tokens expected = Answer(without, prompt, sampling);
      const auto session = engine->NewSession();
      EXPECT_EQ(Answer(*session, prompt, sampling), expected) << length;
      num_refused += session->stats().drafted_tokens - session->stats().accepted_tokens;
    }
    EXPECT_GT(num_refused, 0u);
  }
}

TEST(EngineDraftsTest, GuessesNeedTheLayerAndExcludeADraftModel) {
  const TinyModelFile model(support::FamilyNamed("Qwen35"));
  EngineOptions options = {.context_tokens = 128, .drafts = {.has_mtp = true}};
  const auto without = Engine::Load(model.path(), options);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().message(), "the model has no layer that guesses tokens (mtp)");
  options.draft_model_path = model.path();
  const auto both = Engine::Load(model.path(), options);
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message(), testing::HasSubstr("not from both"));
}

INSTANTIATE_TEST_SUITE_P(
    Schemes, EngineDrafts,
    testing::Values(EngineDraftsCase{"F32", Scheme::kF32, KvType::kF32},
                    EngineDraftsCase{"Int8", Scheme::kQc8w, KvType::kInt8},
                    EngineDraftsCase{"Int4", Scheme::kQb4w, KvType::kInt8},
                    EngineDraftsCase{"Int4F16", Scheme::kQb4w, KvType::kF16},
                    EngineDraftsCase{"MixtureInt8", Scheme::kQc8w, KvType::kF32, true},
                    EngineDraftsCase{"MixtureInt4", Scheme::kQb4w, KvType::kInt8, true}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(EngineDraftOptions, AreCheckedAndOffWhereRowsRoundDifferently) {
  const TinyModelFile model(support::SpecGqa(), 0, {.weights = Scheme::kF32});
  const auto refused = Engine::Load(
      model.path(), {.num_threads = 1, .context_tokens = 64, .drafts = {.ngram_tokens = 100}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  std::string notice;
  const auto engine = Unwrap(Engine::Load(
      model.path(), {.num_threads = 1,
                     .context_tokens = 64,
                     .drafts = {.ngram_tokens = 2},
                     .on_notice = [&](std::string_view sentence) { notice = sentence; }}));
  const bool has_drafts = engine->memory_plan().options.drafts.has_drafts();
  EXPECT_EQ(has_drafts, xnn::RowsAreBitwiseAsAlone(Scheme::kF32));
  EXPECT_EQ(has_drafts, notice.empty()) << notice;
  EXPECT_EQ(engine->decoder().max_logit_rows(), has_drafts ? 9u : 1u);
}

// A model that drafts for itself chooses the same tokens with the same random numbers.
TEST(EngineDraftModel, ChangesNoTextAndIsPlanned) {
  if (!xnn::RowsAreBitwiseAsAlone(Scheme::kQb4w)) GTEST_SKIP() << "there are no drafts";
  const ConvertOptions conversion = {
      .weights = Scheme::kQb4w, .embedding = Scheme::kQb4w, .head = Scheme::kQb4w};
  const TinyModelFile model(support::SpecGqa(), kContextTokens, conversion);
  const TinyModelFile other(support::SpecQwen3Biases(), kContextTokens, conversion);
  const EngineOptions options = {.num_threads = 1, .context_tokens = kContextTokens};
  const auto alone = Unwrap(Engine::Load(model.path(), options));
  for (const bool drafts_for_itself : {true, false}) {
    EngineOptions with_drafts = options;
    with_drafts.drafts = {.max_tokens = 5, .min_tokens = 5};
    with_drafts.draft_model_path = drafts_for_itself ? model.path() : other.path();
    const auto engine = Unwrap(Engine::Load(model.path(), with_drafts));
    for (const float temperature : {0.0f, 0.9f}) {
      const SamplerOptions sampling = {.top_k = 0, .temperature = temperature, .seed = 5};
      const Tokens expected = Answer(*alone->NewSession(), RepetitivePrompt(1), sampling);
      const auto session = engine->NewSession();
      EXPECT_EQ(Answer(*session, RepetitivePrompt(1), sampling), expected);
      const SessionStats& stats = session->stats();
      EXPECT_GT(stats.drafted_tokens, 20u);
      if (drafts_for_itself) {
        EXPECT_EQ(stats.accepted_tokens, stats.drafted_tokens);
      } else {
        EXPECT_LT(stats.accepted_tokens, stats.drafted_tokens);
      }
    }
    // Both models' lines, and the rows of logits.
    const auto draft_bytes_of = [&](MemoryPart part) {
      uint64_t bytes = 0;
      for (const MemoryLine& line : engine->memory_plan().lines) {
        if (line.part == part && line.is_of_draft_model) bytes += line.bytes;
      }
      return bytes;
    };
    const auto bytes_of = [&](MemoryPart part) { return engine->memory_plan().BytesOf(part); };
    EXPECT_GT(draft_bytes_of(MemoryPart::kPackedWeights), 0u);
    if (drafts_for_itself) {
      EXPECT_EQ(draft_bytes_of(MemoryPart::kKvCache), bytes_of(MemoryPart::kKvCache));
    }
    EXPECT_GE(bytes_of(MemoryPart::kLogits), 5 * draft_bytes_of(MemoryPart::kLogits));
    EXPECT_GT(engine->memory_plan().peak_bytes(), alone->memory_plan().peak_bytes());
    // The limit holds for both together.
    with_drafts.memory_limit_bytes = engine->memory_plan().peak_bytes() - 1;
    const auto refused = Engine::Load(model.path(), with_drafts);
    // The program has grown since.
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  }
}

TEST(EngineDraftModel, AnotherVocabularyIsRefused) {
  const TinyModelFile model(support::SpecGqa());
  support::CheckpointSpec spec = support::SpecGqa();
  spec.config.vocab_size += 10;
  support::SetTokenIds(spec);
  const TinyModelFile other(spec);
  const auto refused =
      Engine::Load(model.path(), {.num_threads = 1, .draft_model_path = other.path()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  EXPECT_NE(refused.error().message().find("vocabulary"), std::string::npos);
  EXPECT_FALSE(Engine::Load(model.path(), {.num_threads = 1, .draft_model_path = "no such file"}));
}

}  // namespace
}  // namespace cria
