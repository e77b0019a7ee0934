// Drafts of the model's own layer that guesses tokens. The model is scripted.

#include "llm/mtp_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "llm/draft_fixture.h"
#include "llm/scripted_clock.h"

namespace cria {
namespace {

constexpr size_t kMtpContext = 256;

struct GuessingModel {
  explicit GuessingModel(size_t num_sequences = 1, ScriptedModel::Script guess = OftenRight)
      : model(kVocabSize, kMtpContext, 20, NextOf, num_sequences, {.max_state_rows = 17}),
        scheduler(model, ScriptedClock::Now) {
    model.guess = std::move(guess);
  }

  std::unique_ptr<Session> NewSession(DraftOptions options) {
    options.has_mtp = true;
    return std::make_unique<Session>(
        scheduler, std::make_unique<Drafting>(
                       options, kMtpContext, std::make_unique<MtpDrafter>(scheduler, kMtpContext)));
  }
  NewDraftingSession new_session() {
    return [this](const DraftOptions& options) { return NewSession(options); };
  }

  ScriptedModel model;
  Scheduler scheduler;
};

TEST(MtpDrafterTest, TheTextIsTheSame) {
  GuessingModel guessing;
  ExpectTheSameText(guessing.scheduler, guessing.new_session());
}

TEST(MtpDrafterTest, GoesOnBehindAFullContextAsWithoutDrafts) {
  GuessingModel guessing;
  const auto session = guessing.NewSession({.max_tokens = 8, .min_tokens = 1});
  const Tokens prompt = Counting(30);
  EXPECT_EQ(AnswerOf(*session, prompt, {.temperature = 0.0f}, kMtpContext - 30),
            Expected(prompt, kMtpContext - 30));
}

TEST(MtpDrafterTest, SessionsDraftAtTheSameTime) {
  constexpr size_t kSessions = 3;
  GuessingModel guessing(kSessions);
  ExpectTheSameTextsAtOnce(kSessions, guessing.new_session());
}

TEST(MtpDrafterTest, WithoutTheLayerThereAreNoDrafts) {
  GuessingModel guessing(1, nullptr);
  const auto session = guessing.NewSession({.max_tokens = 4, .min_tokens = 1});
  EXPECT_EQ(AnswerOf(*session, Counting(10), {.temperature = 0.0f}, 20),
            Expected(Counting(10), 20));
  EXPECT_EQ(session->stats().drafted_tokens, 0u);
}

TEST(MtpDrafterTest, AnUnlikelyTokenEndsTheDraft) {
  // The script gives its token e^8 of e^8 + 99.
  const auto probability = static_cast<float>(std::exp(8.0) / (std::exp(8.0) + 99.0));
  for (const bool is_likely : {true, false}) {
    GuessingModel guessing;
    const auto session =
        guessing.NewSession({.max_tokens = 4,
                             .min_tokens = 1,
                             .min_probability = probability + (is_likely ? -0.01f : 0.01f)});
    EXPECT_EQ(AnswerOf(*session, Counting(10), {.temperature = 0.0f}, 40),
              Expected(Counting(10), 40));
    EXPECT_EQ(session->stats().drafted_tokens > 0, is_likely);
  }
}

TEST(MtpDrafterTest, ALayerThatIsAlwaysWrongIsSeldomAsked) {
  size_t num_guesses = 0;
  GuessingModel guessing(1, [&](std::span<const int32_t> context) {
    ++num_guesses;
    ScriptedClock::Advance(std::chrono::microseconds(100));
    return AlwaysWrong(context);
  });
  guessing.model.after_forward = [] { ScriptedClock::Advance(std::chrono::milliseconds(1)); };
  const auto session = guessing.NewSession({});
  EXPECT_EQ(AnswerOf(*session, Counting(10), {.temperature = 0.0f}, 200),
            Expected(Counting(10), 200));
  EXPECT_LT(session->stats().drafted_tokens, 40u);
  EXPECT_LT(num_guesses, 60u);
}

}  // namespace
}  // namespace cria
