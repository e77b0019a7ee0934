// Several sessions, drafts and constraints ask for no memory once a model is loaded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "budget/quiet_model.h"
#include "budget/visible_allocations.h"
#include "llm/completion.h"
#include "llm/engine.h"
#include "llm/generator.h"
#include "llm/prompt_store.h"
#include "llm/stored_prompts.h"
#include "llm/turn.h"
#include "support/allocation_watch.h"
#include "support/sleeping_thread.h"
#include "support/unwrap.h"
#include "text/detokenizer.h"

namespace cria {
namespace {

using support::AllocationWatch;
using testing::HasSubstr;

class SessionsZeroAllocation : public testing::TestWithParam<SchemeCase> {};

// Three sequences and four sessions: a shared beginning, a page that is copied before it is turned,
// a sequence that is taken away, two sessions that generate together, and one that waits.
TEST_P(SessionsZeroAllocation, WithSeveralSequences) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const auto engine = Engine::Load(ModelPath(GetParam()), {.num_threads = 2,
                                                           .context_tokens = 512,
                                                           .num_sequences = 3,
                                                           .chunk_tokens = kChunk,
                                                           .kv_type = KvType::kInt8});
  ASSERT_TRUE(engine) << engine.error().message();
  Scheduler& scheduler = (*engine)->scheduler();
  Session a(scheduler), b(scheduler), c(scheduler), d(scheduler);
  auto sampler = Sampler::Create({.temperature = 0.0f}, kVocabulary);
  auto other_sampler = Sampler::Create({.temperature = 0.0f}, kVocabulary);
  ASSERT_TRUE(sampler && other_sampler);
  const std::vector<int32_t> prompt = SomeTokens(100);
  const std::vector<int32_t> other = SomeTokens(30, 5);
  ExpectQuiet("the first session", [&] { return Answer(a, *sampler, prompt, 5); });
  ExpectQuiet("a shared beginning", [&] { return Answer(b, *sampler, prompt, 5); });
  EXPECT_EQ(b.stats().reused_tokens, prompt.size() - 1);
  ExpectQuiet("a drop of shared tokens", [&]() -> Status {
    Turn turn(b, {.max_tokens = 5, .kept_tokens = 4});
    CRIA_RETURN_IF_ERROR(turn.Prefill(prompt));
    CRIA_RETURN_IF_ERROR(turn.Drop(4, 20));
    return turn.Logits().transform([](const LogitRows&) {});
  });
  ExpectQuiet("the third session", [&] { return Answer(c, *sampler, other, 5); });
  ExpectQuiet("a sequence that is taken away", [&] { return Answer(d, *sampler, other, 5); });

  // The other thread does everything between two looks at `stage`.
  std::atomic<int> stage = 0;
  Status together, waited;
  const auto await = [&](int wanted) {
    while (stage != wanted) std::this_thread::yield();
  };
  std::atomic<pid_t> other_thread = 0;
  std::jthread thread([&] {
    other_thread = support::ThisThread();
    await(1);
    together = Answer(b, *other_sampler, prompt, 40);
    stage = 2;
    await(3);
    waited = Answer(b, *other_sampler, prompt, 300);
    stage = 4;
    // The end of a thread frees memory, for which it first gets a heap of its own.
    await(5);
  });
  ExpectQuiet("two sessions at once", [&]() -> Status {
    stage = 1;
    CRIA_RETURN_IF_ERROR(Answer(a, *sampler, other, 40));
    await(2);
    return {};
  });
  EXPECT_TRUE(together);
  ExpectQuiet("a session that waits for room", [&]() -> Status {
    {
      Turn turn(a, {.max_tokens = 300});
      CRIA_RETURN_IF_ERROR(turn.Prefill(other));
      stage = 3;
      support::AwaitSleep(other_thread);
      CRIA_RETURN_IF_ERROR(turn.Logits().transform([](const LogitRows&) {}));
    }
    await(4);
    return {};
  });
  stage = 5;
  EXPECT_TRUE(waited);
}

// A store that is asked and has nothing.
class EmptyStore final : public PromptStore {
 public:
  size_t Find(std::span<const int32_t>) override { return 0; }
  Status Read(std::span<const int32_t>, SequenceId) override { return {}; }
  bool Wants(std::span<const int32_t>) override {
    ++num_questions;
    return false;
  }
  void Write(std::span<const int32_t>, SequenceId) override {}

  size_t num_questions = 0;
};

// The only sequence takes the room of texts that are kept, while it generates.
TEST_P(SessionsZeroAllocation, WithKeptTextsAndAStore) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  EmptyStore store;
  const auto engine = Engine::Load(
      ModelPath(GetParam()),
      {.num_threads = 2, .context_tokens = 512, .num_kept_sequences = 3, .chunk_tokens = kChunk});
  ASSERT_TRUE(engine) << engine.error().message();
  (*engine)->scheduler().UseStore(store);
  const std::unique_ptr<Session> session = (*engine)->NewSession();
  auto sampler = Sampler::Create({.temperature = 0.0f}, kVocabulary);
  ASSERT_TRUE(sampler);
  for (const size_t count : {300, 100}) {
    const std::vector<int32_t> prompt = SomeTokens(count, count);
    ExpectQuiet("a text that is kept", [&] { return Answer(*session, *sampler, prompt, 5); });
  }
  const std::vector<int32_t> prompt = SomeTokens(30, 7);
  ExpectQuiet("taking their room", [&] { return Answer(*session, *sampler, prompt, 450); });
  EXPECT_GT(store.num_questions, 0u);
}

// A model that drafts for itself, and n-grams before it.
TEST_P(SessionsZeroAllocation, WithADraftModel) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const std::string path = ModelPath(GetParam());
  const auto engine = Engine::Load(
      path,
      {.num_threads = 2,
       .context_tokens = 512,
       .chunk_tokens = kChunk,
       .drafts = {.ngram_tokens = 2, .max_tokens = 4, .min_tokens = 2, .min_probability = 0.001f},
       .draft_model_path = path});
  ASSERT_TRUE(engine) << engine.error().message();
  const std::unique_ptr<Session> session = (*engine)->NewSession();
  for (const float temperature : {0.0f, 0.8f}) {
    auto sampler = Sampler::Create({.temperature = temperature}, kVocabulary);
    ASSERT_TRUE(sampler);
    const std::vector<int32_t> prompt = SomeTokens(100);
    ExpectQuiet("drafts of a model", [&] { return Answer(*session, *sampler, prompt, 60); });
  }
  if (CanDraft(OutlineOf((*engine)->file()))) {
    EXPECT_GT(session->stats().drafted_tokens, 0u);
  }
}

// Masks that are kept and others, tokens without a choice, drafts, and the end before a limit.
TEST_P(SessionsZeroAllocation, WithAConstraint) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const auto engine = Engine::Load(ModelPath(GetParam()),
                                   {.num_threads = 2,
                                    .context_tokens = 512,
                                    .chunk_tokens = kChunk,
                                    .drafts = {.ngram_tokens = 1, .max_tokens = 4, .min_tokens = 2},
                                    .max_constraints = 1});
  ASSERT_TRUE(engine) << engine.error().message();
  const std::unique_ptr<Session> session = (*engine)->NewSession();
  const std::unique_ptr<Constraint> constraint = Unwrap((*engine)->NewConstraint());
  const grammar::ConstraintSource sources[] = {
      {grammar::ConstraintKind::kJson, ""},
      {grammar::ConstraintKind::kRegex, "([ab]{3}; zzzzzz; [0-9]{1,30}; )*"},
      {grammar::ConstraintKind::kJsonSchema,
       R"({"type": "array", "items": {"type": "object", "properties": {
           "name": {"type": "string", "maxLength": 20}, "n": {"type": "integer"}},
           "required": ["name", "n"], "additionalProperties": false}})"}};
  const std::vector<int32_t> prompt = SomeTokens(100);
  for (const grammar::ConstraintSource& source : sources) {
    ASSERT_TRUE(constraint->Set(source));
    auto sampler = Sampler::Create({.top_k = 0, .temperature = 1.5f}, kVocabulary);
    ASSERT_TRUE(sampler);
    for (const size_t count : {60u, 7u}) {
      ExpectQuiet("generating with a constraint", [&]() -> Status {
        Turn turn(*session, {.max_tokens = count});
        constraint->Restart();
        CRIA_RETURN_IF_ERROR(turn.Prefill(prompt));
        return Generate(
                   turn,
                   {.max_tokens = count, .constraint = constraint.get(), .log_probabilities = true},
                   *sampler, [](const GeneratedToken&) { return true; })
            .transform([](StopReason) {});
      });
    }
  }
  EXPECT_GT(session->stats().forced_tokens, 0u);
  if (CanDraft(OutlineOf((*engine)->file()))) {
    EXPECT_GT(session->stats().drafted_tokens, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, SessionsZeroAllocation, testing::ValuesIn(SchemeCases()),
                         [](const auto& param) { return std::string(param.param.name); });

// Generating with a callback that keeps the text.
TEST(AllocationWatch, TellsWhoAllocatesInGenerating) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const auto engine =
      Engine::Load(ModelPath(SchemeCases()[0]), {.num_threads = 2, .context_tokens = 64});
  ASSERT_TRUE(engine) << engine.error().message();
  Session session((*engine)->scheduler());
  ASSERT_TRUE(Turn(session).Prefill(SomeTokens(8)));
  Detokenizer detokenizer((*engine)->tokenizer());
  auto sampler = Sampler::Create({.temperature = 0.0f}, (*engine)->decoder().vocab_size());
  ASSERT_TRUE(sampler);
  std::string text;
  const TextCallback keep = [&](std::string_view more) { text += std::string(100, '.') += more; };
  Turn turn(session);
  AllocationWatch watch("keeping the text");
  const auto reason = GenerateText(turn, detokenizer, *sampler, {.max_tokens = 20}, keep);
  const std::string report = watch.Finish();
  EXPECT_TRUE(reason);
  EXPECT_THAT(report, HasSubstr("keeping the text: "));
  EXPECT_THAT(report, HasSubstr("the first was malloc of "));
  EXPECT_THAT(report, HasSubstr("GenerateText"));
}

}  // namespace
}  // namespace cria
