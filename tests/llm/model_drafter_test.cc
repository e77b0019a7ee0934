// Drafts of a second model. Both models are scripted.

#include "llm/model_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "llm/draft_fixture.h"
#include "llm/scripted_clock.h"

namespace cria {
namespace {

constexpr size_t kTextTokens = 256;

// A model with a draft model, and what both ran.
class TwoModels {
 public:
  explicit TwoModels(ScriptedModel::Script draft_script, size_t num_sequences = 1,
                     size_t draft_context = kTextTokens,
                     Scheduler::NowFunction now = Scheduler::Clock::now)
      : model_(kVocabSize, kTextTokens, 20, NextOf, num_sequences),
        draft_(kVocabSize, draft_context, 16, std::move(draft_script), num_sequences),
        scheduler_(model_, now),
        draft_scheduler_(draft_, now) {}

  std::unique_ptr<Session> NewSession(DraftOptions options) {
    options.has_model = true;
    return std::make_unique<Session>(
        scheduler_,
        std::make_unique<Drafting>(options, kTextTokens,
                                   std::make_unique<ModelDrafter>(draft_scheduler_, kTextTokens)));
  }
  NewDraftingSession new_session() {
    return [this](const DraftOptions& options) { return NewSession(options); };
  }

  ScriptedModel model_;
  ScriptedModel draft_;
  Scheduler scheduler_;
  Scheduler draft_scheduler_;
};

// A drafter with a scripted model, for contexts of 64 tokens.
struct ScriptedDrafter {
  explicit ScriptedDrafter(const SamplerOptions& options = {.temperature = 0.0f},
                           size_t model_context = 64, ScriptedModel::Script script = NextOf)
      : model(kVocabSize, model_context, 8, std::move(script)),
        scheduler(model),
        drafter(scheduler, 64),
        sampler(*Sampler::Create(options, kVocabSize)) {}

  size_t Draft(const Tokens& context, Tokens& draft, float min_probability = 0.0f) {
    return drafter.Draft({seat, context, sampler, min_probability}, draft);
  }

  ScriptedModel model;
  Scheduler scheduler;
  ModelDrafter drafter;
  Seat seat;  // Nobody uses it.
  Sampler sampler;
};

TEST(ModelDrafterTest, DraftsWhatItsModelGenerates) {
  ScriptedDrafter scripted;
  ScriptedModel& model = scripted.model;
  Tokens draft(5);
  EXPECT_EQ(scripted.Draft(Counting(20), draft), 5u);
  EXPECT_EQ(draft, Expected(Counting(20), 5));
  EXPECT_EQ(model.tokens_run(), 20u + 4u);
  // The next context has three tokens of the draft, which were right, and not the fourth.
  Tokens context = Counting(20);
  context.insert(context.end(), draft.begin(), draft.begin() + 3);
  context.push_back(0);
  model.calls.clear();
  EXPECT_EQ(scripted.Draft(context, draft), 5u);
  EXPECT_EQ(draft, Expected(context, 5));
  EXPECT_EQ(model.calls.front(), (ScriptedModel::ForwardCall{23, {0}}));
  EXPECT_GT(scripted.drafter.seconds_per_token(), 0.0);
}

TEST(ModelDrafterTest, StaysWithinItsContextAndReportsNoErrors) {
  ScriptedDrafter scripted({.temperature = 0.0f}, /*model_context=*/32);
  ScriptedModel& model = scripted.model;
  Tokens draft(5);
  EXPECT_EQ(scripted.Draft(Counting(30), draft), 2u);
  EXPECT_EQ(scripted.Draft(Counting(32), draft), 0u);
  EXPECT_EQ(scripted.Draft(Counting(40), draft), 0u);
  model.fail_at_call = model.calls.size();
  EXPECT_EQ(scripted.Draft(Counting(10), draft), 0u);
  model.fail_at_call = SIZE_MAX;
  EXPECT_EQ(scripted.Draft(Counting(10), draft), 5u);
}

TEST(ModelDrafterTest, AnUnlikelyTokenEndsTheDraft) {
  ScriptedDrafter scripted;
  Tokens draft(5);
  // The script gives its token e^8 of e^8 + 99.
  const auto probability = static_cast<float>(std::exp(8.0) / (std::exp(8.0) + 99.0));
  EXPECT_EQ(scripted.Draft(Counting(20), draft, probability - 0.01f), 5u);
  EXPECT_EQ(scripted.Draft(Counting(20), draft, probability + 0.01f), 0u);
}

// Where both models have the same distribution, the same random numbers choose the same tokens.
TEST(ModelDrafterTest, IsCoupledByTheRandomNumbers) {
  const auto flat = [](std::span<const int32_t>) { return 0; };
  // So hot that nearly all tokens have the same probability.
  ScriptedDrafter scripted(
      {.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .temperature = 100.0f, .seed = 3}, 64, flat);
  Tokens draft(6);
  ASSERT_EQ(scripted.Draft(Counting(20), draft), 6u);
  std::vector<float> logits(kVocabSize, 0.0f);
  logits[0] = 8.0f;
  Tokens chosen;
  for (size_t i = 0; i < draft.size(); ++i) chosen.push_back(*scripted.sampler.Sample(logits, {}));
  EXPECT_EQ(draft, chosen);
}

TEST(ModelDraftsTest, TheTextIsTheSame) {
  TwoModels models(OftenRight);
  ExpectTheSameText(models.scheduler_, models.new_session());
}

TEST(ModelDraftsTest, EndWhereTheDraftModelsContextEnds) {
  TwoModels models(OftenRight, 1, /*draft_context=*/64);
  const auto session = models.NewSession({.max_tokens = 4, .min_tokens = 4});
  EXPECT_EQ(AnswerOf(*session, Counting(30), {.temperature = 0.0f}, 150),
            Expected(Counting(30), 150));
  EXPECT_LE(models.draft_.cache().size(), 64u);
  EXPECT_GT(session->stats().accepted_tokens, 5u);
}

TEST(ModelDraftsTest, SessionsDraftAtTheSameTime) {
  constexpr size_t kSessions = 3;
  TwoModels models(OftenRight, kSessions);
  ExpectTheSameTextsAtOnce(kSessions, models.new_session());
}

TEST(ModelDraftsTest, AModelThatIsAlwaysWrongIsSeldomAsked) {
  TwoModels models(AlwaysWrong, 1, kTextTokens, ScriptedClock::Now);
  // A token of the draft model takes a tenth of the time.
  models.model_.after_forward = [] { ScriptedClock::Advance(std::chrono::milliseconds(1)); };
  models.draft_.after_forward = [] { ScriptedClock::Advance(std::chrono::microseconds(100)); };
  const auto session = models.NewSession({});
  EXPECT_EQ(AnswerOf(*session, Counting(10), {.temperature = 0.0f}, 200),
            Expected(Counting(10), 200));
  EXPECT_LT(session->stats().drafted_tokens, 40u);
  EXPECT_LT(models.draft_.calls.size(), 60u);
}

// How many times as fast a text of 280 tokens is with a draft model of a tenth of the time, which
// is right with this probability, where rows cost what they cost on an x86-64 processor.
double SimulatedGain(double probability) {
  // The costs of Forwards of 0, 1, … rows, in relation to one row's.
  constexpr std::array<double, 10> kCosts = {0, 1.0, 1.09, 1.29, 1.76, 1.77, 1.78, 2.0, 2.16, 2.3};
  constexpr size_t kSimulatedContext = 512;
  const auto draft_script = [probability](std::span<const int32_t> context) {
    std::mt19937_64 random(context.size());
    const bool is_right = std::generate_canonical<double, 53>(random) < probability;
    return (NextOf(context) + (is_right ? 0 : 1)) % static_cast<int32_t>(kVocabSize);
  };
  const auto seconds = [&](bool with_drafts) {
    std::chrono::duration<double> sum{0.0};
    const auto spend = [&sum](double steps) {
      const std::chrono::duration<double> time(0.03 * steps);
      sum += time;
      ScriptedClock::Advance(std::chrono::duration_cast<ScriptedClock::Clock::duration>(time));
    };
    ScriptedModel model(kVocabSize, kSimulatedContext, 20, NextOf);
    ScriptedModel draft(kVocabSize, kSimulatedContext, 16, draft_script);
    const Tokens prompt = Counting(10);
    model.after_forward = [&] {
      const size_t rows = model.calls.back().tokens.size();
      if (rows < kCosts.size()) spend(kCosts[rows]);
    };
    draft.after_forward = [&] { spend(0.1); };
    Scheduler scheduler(model, ScriptedClock::Now);
    Scheduler draft_scheduler(draft, ScriptedClock::Now);
    Session session(scheduler, with_drafts ? std::make_unique<Drafting>(
                                                 DraftOptions{.has_model = true}, kSimulatedContext,
                                                 std::make_unique<ModelDrafter>(draft_scheduler,
                                                                                kSimulatedContext))
                                           : nullptr);
    EXPECT_EQ(AnswerOf(session, prompt, {.temperature = 0.0f}, 280), Expected(prompt, 280));
    return sum.count();
  };
  return seconds(false) / seconds(true);
}

TEST(ModelDraftsTest, TheLengthsThatPayAreFound) {
  EXPECT_GT(SimulatedGain(0.0), 0.95);
  EXPECT_GT(SimulatedGain(0.7), 1.3);
  EXPECT_GT(SimulatedGain(0.85), 1.6);
}

}  // namespace
}  // namespace cria
