// Drafts of the model's own layer that guesses tokens. The model is scripted.

#include "llm/mtp_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "llm/scripted_clock.h"
#include "llm/session_fixture.h"

namespace cria {
namespace {

constexpr size_t kMtpContext = 256;

// Is right where the model is, except at every fourth position.
int32_t MostlyRight(std::span<const int32_t> context) {
  const int32_t right = NextOf(context);
  return context.size() % 4 == 3 ? (right + 1) % static_cast<int32_t>(kVocabSize) : right;
}

struct GuessingModel {
  explicit GuessingModel(size_t num_sequences = 1, ScriptedModel::Script guess = MostlyRight)
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

  ScriptedModel model;
  Scheduler scheduler;
};

Tokens TextOf(Session& session, const Tokens& prompt, const SamplerOptions& options,
              size_t max_tokens) {
  Sampler sampler = *Sampler::Create(options, kVocabSize);
  Turn turn(session, {.max_tokens = max_tokens});
  EXPECT_TRUE(turn.Prefill(prompt));
  Tokens generated;
  EXPECT_TRUE(Generate(turn, {.max_tokens = max_tokens}, sampler, [&](auto& token) {
    generated.push_back(token.id);
    return true;
  }));
  return generated;
}

TEST(MtpDrafterTest, TheTextIsTheSame) {
  for (const float temperature : {0.0f, 2.0f}) {
    const SamplerOptions options = {.repeat_penalty = 1.1f,
                                    .top_k = 0,
                                    .top_p = 1.0f,
                                    .min_p = 0.0f,
                                    .temperature = temperature,
                                    .seed = 11};
    GuessingModel guessing;
    Session plain(guessing.scheduler);
    const Tokens expected = TextOf(plain, Counting(30), options, 100);
    for (size_t length = 1; length <= 16; length += 3) {
      for (const size_t ngram_tokens : {0u, 1u}) {
        const auto session = guessing.NewSession(
            {.ngram_tokens = ngram_tokens, .max_tokens = length, .min_tokens = length});
        EXPECT_EQ(TextOf(*session, Counting(30), options, 100), expected) << length;
        EXPECT_GT(session->stats().accepted_tokens, 10u) << length;
        EXPECT_GT(session->stats().drafted_tokens, session->stats().accepted_tokens) << length;
      }
    }
  }
}

TEST(MtpDrafterTest, GoesOnBehindAFullContextAsWithoutDrafts) {
  GuessingModel guessing;
  const auto session = guessing.NewSession({.max_tokens = 8, .min_tokens = 1});
  const Tokens prompt = Counting(30);
  EXPECT_EQ(TextOf(*session, prompt, {.temperature = 0.0f}, kMtpContext - 30),
            Expected(prompt, kMtpContext - 30));
}

TEST(MtpDrafterTest, SessionsDraftAtTheSameTime) {
  constexpr size_t kSessions = 3;
  GuessingModel guessing(kSessions);
  std::vector<Tokens> answers(kSessions);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
      threads.emplace_back([&, i] {
        const auto session = guessing.NewSession({.max_tokens = 4, .min_tokens = 4});
        answers[i] =
            TextOf(*session, Counting(10, static_cast<int32_t>(20 * i)), {.temperature = 0.0f}, 40);
      });
    }
  }
  for (size_t i = 0; i < kSessions; ++i) {
    EXPECT_EQ(answers[i], Expected(Counting(10, static_cast<int32_t>(20 * i)), 40)) << i;
  }
}

TEST(MtpDrafterTest, WithoutTheLayerThereAreNoDrafts) {
  GuessingModel guessing(1, nullptr);
  const auto session = guessing.NewSession({.max_tokens = 4, .min_tokens = 1});
  EXPECT_EQ(TextOf(*session, Counting(10), {.temperature = 0.0f}, 20), Expected(Counting(10), 20));
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
    EXPECT_EQ(TextOf(*session, Counting(10), {.temperature = 0.0f}, 40),
              Expected(Counting(10), 40));
    EXPECT_EQ(session->stats().drafted_tokens > 0, is_likely);
  }
}

TEST(MtpDrafterTest, ALayerThatIsAlwaysWrongIsSeldomAsked) {
  size_t num_guesses = 0;
  GuessingModel guessing(1, [&](std::span<const int32_t> context) {
    ++num_guesses;
    ScriptedClock::Advance(std::chrono::microseconds(100));
    return (NextOf(context) + 1) % static_cast<int32_t>(kVocabSize);
  });
  guessing.model.after_forward = [] { ScriptedClock::Advance(std::chrono::milliseconds(1)); };
  const auto session = guessing.NewSession({});
  EXPECT_EQ(TextOf(*session, Counting(10), {.temperature = 0.0f}, 200),
            Expected(Counting(10), 200));
  EXPECT_LT(session->stats().drafted_tokens, 40u);
  EXPECT_LT(num_guesses, 60u);
}

}  // namespace
}  // namespace cria
