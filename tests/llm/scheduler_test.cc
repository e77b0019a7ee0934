// Several sessions of one model: who runs with whom, and who waits.

#include "llm/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "llm/scheduler_fixture.h"
#include "llm/scripted_clock.h"
#include "support/sleeping_thread.h"

namespace cria {
namespace {

using std::chrono::milliseconds;

TEST_F(SchedulerTest, SessionsGenerateTogetherInOneForward) {
  constexpr size_t kSessions = 4;
  Load(kSessions, kContext, 16, ScriptedClock::Now);
  std::array<std::atomic<pid_t>, kSessions> ids = {};
  std::latch begun(kSessions);
  // A Forward ends when all other sessions wait for the next one. By the scripted clock it takes so
  // long that the next one waits for the sessions that it ran.
  model_->after_forward = [&] {
    for (const pid_t id : ids) {
      if (id != support::ThisThread()) support::AwaitSleep(id);
    }
    ScriptedClock::Advance(std::chrono::minutes(1));
  };
  std::vector<Outcome> outcomes(kSessions);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
      threads.emplace_back([&, i] {
        Session session(*scheduler_);
        ids[i] = support::ThisThread();
        begun.arrive_and_wait();
        outcomes[i] = Answer(session, Prompt(10 + i, static_cast<int32_t>(i)), 40);
      });
    }
  }
  for (size_t i = 0; i < kSessions; ++i) {
    EXPECT_EQ(outcomes[i].error, "");
    EXPECT_EQ(outcomes[i].generated, Expected(Prompt(10 + i, static_cast<int32_t>(i)), 40)) << i;
  }
  // If each had run alone, there were 4 * 40 Forwards. Their prompts are read one after the other.
  EXPECT_LT(model_->sequences_run.size(), 50u);
  EXPECT_GT(std::ranges::count(model_->sequences_run, kSessions), 30);
}

TEST_F(SchedulerTest, ARequestIsLimitedByItsShareOrWhatItAsksFor) {
  Load(4);  // 8 pages, two for each.
  Session session(*scheduler_);
  EXPECT_EQ(session.share_tokens(), 128u);
  EXPECT_EQ(session.context_tokens(), kContext);
  Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
  const auto generate = [&](size_t prompt_tokens, size_t max_tokens) {
    Turn turn(session, {.max_tokens = max_tokens});
    EXPECT_TRUE(turn.Prefill(Prompt(prompt_tokens, 9)));
    size_t count = 0;
    const auto reason = Generate(turn, {.max_tokens = max_tokens}, sampler,
                                 [&](const GeneratedToken&) { return ++count > 0; });
    EXPECT_TRUE(reason);
    return std::pair(count, reason.value_or(StopReason::kCancelled));
  };
  EXPECT_EQ(generate(100, 0), std::pair(size_t{29}, StopReason::kContextFull));
  EXPECT_EQ(generate(100, 200), std::pair(size_t{200}, StopReason::kMaxTokens));
  EXPECT_EQ(generate(200, 0), std::pair(size_t{129}, StopReason::kContextFull));
  EXPECT_EQ(generate(500, 100), std::pair(size_t{13}, StopReason::kContextFull));
}

TEST_F(SchedulerTest, WhoFindsNoRoomWaitsAndNobodyLosesItsPlace) {
  constexpr size_t kSessions = 8;
  Load(3, 512);
  std::vector<Outcome> outcomes(kSessions);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
      threads.emplace_back([&, i] {
        Session session(*scheduler_);
        // Two of these never fit at once.
        outcomes[i] = Answer(session, Prompt(200, static_cast<int32_t>(i)), 100);
      });
    }
  }
  for (size_t i = 0; i < kSessions; ++i) {
    EXPECT_EQ(outcomes[i].error, "");
    EXPECT_EQ(outcomes[i].generated, Expected(Prompt(200, static_cast<int32_t>(i)), 100)) << i;
  }
  size_t reused = 0;  // Prompts may begin with the same token.
  for (const Outcome& outcome : outcomes) reused += outcome.reused;
  EXPECT_EQ(model_->tokens_run() + reused, kSessions * 299u);
}

TEST_F(SchedulerTest, WaitingCanBeCancelled) {
  Load(1);
  Session a(*scheduler_), b(*scheduler_), c(*scheduler_);
  Turn turn(a, {});
  ASSERT_TRUE(turn.Prefill(Prompt(5, 1)));
  std::atomic<bool> cancel = false;
  Outcome outcome_b, outcome_c;
  {
    std::atomic<pid_t> id_b = 0, id_c = 0;
    const std::jthread waiting_b([&] {
      id_b = support::ThisThread();
      outcome_b = Answer(b, Prompt(5, 2), 3, nullptr, &cancel);
    });
    const std::jthread waiting_c([&] {
      id_c = support::ThisThread();
      outcome_c = Answer(c, Prompt(5, 3), 3, nullptr, &cancel);
    });
    support::Await([&] {
      return id_b != 0 && id_c != 0 && support::IsAsleep(id_b) && support::IsAsleep(id_c);
    });
    cancel = true;
  }
  EXPECT_THAT(outcome_b.error, testing::HasSubstr("stopped while"));
  EXPECT_THAT(outcome_c.error, testing::HasSubstr("stopped while"));
  EXPECT_EQ(model_->tokens_run(), 5u);
}

TEST_F(SchedulerTest, ASlowCallbackDelaysItsOwnSessionOnly) {
  Load(2);
  std::atomic<bool> is_other_done = false;
  Outcome slow, fast;
  {
    Session a(*scheduler_), b(*scheduler_);
    const std::jthread first([&] {
      slow = Answer(a, Prompt(5, 1), 3, [&] {
        while (!is_other_done) std::this_thread::sleep_for(milliseconds(1));
      });
    });
    const std::jthread second([&] {
      fast = Answer(b, Prompt(5, 2), 50);
      is_other_done = true;
    });
  }
  EXPECT_EQ(slow.generated, Expected(Prompt(5, 1), 3));
  EXPECT_EQ(fast.generated, Expected(Prompt(5, 2), 50));
}

TEST_F(SchedulerTest, PromptsAreReadInPartsWhileOthersGenerate) {
  Load(2, 2048, 128, ScriptedClock::Now);
  // A Forward takes half a millisecond, and as much again for each of its tokens.
  std::vector<size_t> sizes;
  size_t done = 0;
  model_->after_forward = [&] {
    const size_t run = model_->tokens_run();
    sizes.push_back(run - done);
    done = run;
    ScriptedClock::Advance(std::chrono::microseconds(500 * sizes.back() + 500));
  };
  // Both go on together: a generates a token for about each part of b's prompt.
  constexpr size_t kTokensBefore = 20;
  constexpr size_t kLead = 2;
  std::atomic<size_t> num_generated = 0;
  std::atomic<size_t> num_parts = 0;
  const auto set = [](std::atomic<size_t>& counter, size_t count) {
    counter = count;
    counter.notify_all();
  };
  const auto wait_for = [](const std::atomic<size_t>& counter, size_t count) {
    for (size_t now = counter; now < count; now = counter) counter.wait(now);
  };
  Session a(*scheduler_), b(*scheduler_);
  Tokens generated;
  {
    const std::jthread reader([&] {
      wait_for(num_generated, kTokensBefore);
      size_t parts = 0;
      EXPECT_TRUE(Turn(b).Prefill(Prompt(300, 2), [&](size_t tokens, size_t) {
        if (tokens == 0) return true;
        set(num_parts, ++parts);
        wait_for(num_generated, kTokensBefore + parts - std::min(parts, kLead));
        return true;
      }));
      set(num_parts, SIZE_MAX);
    });
    Turn turn(a, {.max_tokens = 1000});
    EXPECT_TRUE(turn.Prefill(Prompt(5, 1)));
    Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
    EXPECT_TRUE(Generate(turn, {.max_tokens = 1000}, sampler, [&](const GeneratedToken& token) {
      generated.push_back(token.id);
      set(num_generated, generated.size());
      wait_for(num_parts, generated.size() - std::min(generated.size(), kTokensBefore));
      return num_parts != SIZE_MAX;
    }));
    set(num_generated, SIZE_MAX);
  }
  EXPECT_EQ(generated, Expected(Prompt(5, 1), generated.size()));
  EXPECT_GT(generated.size(), kTokensBefore + 40);
  // Alone, the whole chunk of 128 would be read at once. A Forward of a single token takes a
  // millisecond, and three with four tokens of a prompt; a single token may come late. The first
  // part is a guess of 8 tokens.
  EXPECT_LE(std::ranges::max(sizes), 9u);
  EXPECT_GT(std::ranges::count_if(sizes, [](size_t size) { return size == 4 || size == 5; }), 40);
  EXPECT_LT(std::ranges::count_if(sizes, [](size_t size) { return size > 5; }), 5);
}

TEST_F(SchedulerTest, OnlyTheSessionWhoseTokensFailEnds) {
  Load(2);
  const Tokens good = Prompt(5, 1);
  const Tokens all = Expected(good, 60);
  int32_t failing = 0;
  while (std::ranges::contains(all, failing) || std::ranges::contains(good, failing)) ++failing;
  model_->failing_token = failing;
  Session a(*scheduler_), b(*scheduler_);
  Outcome wrong;
  std::jthread other;
  std::atomic<pid_t> id = 0;
  size_t num_forwards = 0;
  // The other session comes while the sixth Forward of the first one runs, and waits for the next.
  model_->after_forward = [&] {
    if (++num_forwards != 6) return;
    other = std::jthread([&] {
      id = support::ThisThread();
      Tokens prompt(20, good[0]);
      prompt.push_back(failing);
      wrong = Answer(b, prompt, 3);
    });
    support::Await([&] { return id != 0 && support::IsAsleep(id); });
  };
  const Outcome right = Answer(a, good, 60);
  other.join();
  EXPECT_EQ(wrong.error, "the script says so");
  EXPECT_EQ(right.error, "");
  EXPECT_EQ(right.generated, all);
}

TEST_F(SchedulerTest, ADropTurnsACopyOfSharedPages) {
  Load(2);
  Session a(*scheduler_), b(*scheduler_);
  const Tokens prompt = Prompt(200, 1);
  EXPECT_EQ(Answer(a, prompt, 2).error, "");
  {
    Turn turn(b, {.max_tokens = 10, .kept_tokens = 4});
    ASSERT_TRUE(turn.Prefill(prompt));
    EXPECT_EQ(b.stats().reused_tokens, 199u);
    ASSERT_TRUE(turn.Drop(4, 64));
    Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
    Tokens shorter = prompt;
    shorter.erase(shorter.begin() + 4, shorter.begin() + 68);
    Tokens generated;
    ASSERT_TRUE(Generate(turn, {.max_tokens = 3}, sampler, [&](const GeneratedToken& token) {
      generated.push_back(token.id);
      return true;
    }));
    EXPECT_EQ(generated, Expected(shorter, 3));
  }
  const Outcome again = Answer(a, prompt, 2);
  EXPECT_EQ(again.reused, 199u);
  EXPECT_EQ(again.generated, Expected(prompt, 2));
}

// Random requests of several threads against what each would generate alone.
TEST_F(SchedulerTest, WhatRunsBesideChangesNoText) {
  constexpr size_t kThreads = 5;
  for (const size_t num_sequences : {1, 2, 4}) {
    Load(num_sequences, 1024);
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        std::mt19937 random(static_cast<uint32_t>(7 * i + num_sequences));
        Session session(*scheduler_);
        for (size_t step = 0; step < 40; ++step) {
          // Some begin alike.
          Tokens prompt = Prompt(100, static_cast<int32_t>(random() % 3));
          prompt.resize(1 + random() % 100);
          const Tokens rest = Prompt(random() % 60, static_cast<int32_t>(random() % 4));
          prompt.insert(prompt.end(), rest.begin(), rest.end());
          const size_t count = 1 + random() % 12;
          const std::atomic<bool> cancel = random() % 10 == 0;
          const Outcome outcome = Answer(session, prompt, count, nullptr, &cancel);
          if (cancel) {
            EXPECT_THAT(outcome.error, testing::HasSubstr("stopped while"));
          } else {
            EXPECT_EQ(outcome.error, "");
            EXPECT_EQ(outcome.generated, Expected(prompt, count));
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace cria
