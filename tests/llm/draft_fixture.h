#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "llm/drafting.h"
#include "llm/session_fixture.h"

namespace cria {

// A script for what drafts: it is right where the model is, except at every fourth position.
inline int32_t OftenRight(std::span<const int32_t> context) {
  const int32_t right = NextOf(context);
  return context.size() % 4 == 3 ? (right + 1) % static_cast<int32_t>(kVocabSize) : right;
}

inline int32_t AlwaysWrong(std::span<const int32_t> context) {
  return (NextOf(context) + 1) % static_cast<int32_t>(kVocabSize);
}

inline Tokens AnswerOf(Session& session, const Tokens& prompt, const SamplerOptions& options,
                       size_t max_tokens = 100) {
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

using NewDraftingSession = std::function<std::unique_ptr<Session>(const DraftOptions&)>;

// Expects sessions of this scheduler to answer with drafts, of which some must be accepted and some
// refused, as without.
inline void ExpectTheSameText(Scheduler& scheduler, const NewDraftingSession& new_session) {
  for (const float temperature : {0.0f, 2.0f}) {
    const SamplerOptions options = {.repeat_penalty = 1.1f,
                                    .top_k = 0,
                                    .top_p = 1.0f,
                                    .min_p = 0.0f,
                                    .temperature = temperature,
                                    .seed = 11};
    Session plain(scheduler);
    const Tokens expected = AnswerOf(plain, Counting(30), options);
    for (size_t length = 1; length <= 16; length += 3) {
      for (const size_t ngram_tokens : {0u, 1u}) {
        const auto session =
            new_session({.ngram_tokens = ngram_tokens, .max_tokens = length, .min_tokens = length});
        EXPECT_EQ(AnswerOf(*session, Counting(30), options), expected) << length;
        EXPECT_GT(session->stats().accepted_tokens, 10u) << length;
        EXPECT_GT(session->stats().drafted_tokens, session->stats().accepted_tokens) << length;
      }
    }
    const auto adapting = new_session({.ngram_tokens = 2});
    EXPECT_EQ(AnswerOf(*adapting, Counting(30), options), expected);
  }
}

// Expects `count` sessions, each in a thread of its own, to answer with drafts as alone.
inline void ExpectTheSameTextsAtOnce(size_t count, const NewDraftingSession& new_session) {
  const auto prompt = [](size_t i) { return Counting(10, static_cast<int32_t>(20 * i)); };
  std::vector<Tokens> answers(count);
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        const auto session = new_session({.max_tokens = 5, .min_tokens = 5});
        answers[i] = AnswerOf(*session, prompt(i), {.temperature = 0.0f}, 60);
      });
    }
  }
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(answers[i], Expected(prompt(i), 60)) << i;
}

}  // namespace cria
