// Several sessions of one model: who runs with whom, who waits, what is shared.

#include "llm/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "llm/scripted_clock.h"
#include "llm/session_fixture.h"
#include "support/sleeping_thread.h"

namespace cria {
namespace {

using std::chrono::milliseconds;

// Sessions of a scripted model.
class SchedulerTest : public testing::Test {
 protected:
  static constexpr size_t kContext = 512;

  void Load(size_t num_sequences, size_t context_tokens = kContext, size_t chunk_tokens = 16,
            Scheduler::NowFunction now = Scheduler::Clock::now, const ScriptedLayers& layers = {}) {
    model_ = std::make_unique<ScriptedModel>(kVocabSize, context_tokens, chunk_tokens, NextOf,
                                             num_sequences, layers);
    scheduler_ = std::make_unique<Scheduler>(*model_, now);
  }

  struct Outcome {
    Tokens generated;
    size_t reused = 0;
    std::string error;
  };

  // Reads a prompt and generates, as one request.
  static Outcome Answer(Session& session, const Tokens& prompt, size_t max_tokens,
                        const std::function<void()>& on_token = nullptr,
                        const std::atomic<bool>* cancel = nullptr) {
    Outcome outcome;
    Turn turn(session, {.max_tokens = max_tokens, .cancel = cancel});
    if (const Status read = turn.Prefill(prompt); !read) {
      outcome.error = read.error().message();
      return outcome;
    }
    outcome.reused = session.stats().reused_tokens;
    Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
    const auto reason = Generate(turn, {.max_tokens = max_tokens, .cancel = cancel}, sampler,
                                 [&](const GeneratedToken& token) {
                                   outcome.generated.push_back(token.id);
                                   if (on_token) on_token();
                                   return true;
                                 });
    if (!reason) outcome.error = reason.error().message();
    return outcome;
  }

  Tokens Prompt(size_t count, int32_t seed) const {
    Tokens tokens(count);
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % kVocabSize);
    return tokens;
  }

  size_t NumUsedPages() const {
    size_t used = 0;
    for (uint32_t page = 0; page < model_->sequences().pages().num_pages(); ++page) {
      used += model_->sequences().pages().num_holders(page) != 0 ? 1 : 0;
    }
    return used;
  }

  std::unique_ptr<ScriptedModel> model_;
  std::unique_ptr<Scheduler> scheduler_;
};

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

TEST_F(SchedulerTest, ACommonBeginningIsRunAndStoredOnce) {
  constexpr size_t kChats = 10;
  Load(kChats, 2048, 64);
  const Tokens system = Prompt(500, 1);
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.reserve(kChats);
  for (size_t i = 0; i < kChats; ++i) {
    Tokens prompt = system;
    prompt.push_back(static_cast<int32_t>(i));
    sessions.push_back(std::make_unique<Session>(*scheduler_));
    const Outcome outcome = Answer(*sessions.back(), prompt, 3);
    EXPECT_EQ(outcome.generated, Expected(prompt, 3)) << i;
    EXPECT_EQ(outcome.reused, i == 0 ? 0u : 500u);
  }
  // Three tokens more for each chat: its message and two of the answer.
  EXPECT_EQ(model_->tokens_run(), 500u + kChats * 3u);
  // Seven whole pages are shared; each chat has the rest on a page of its own.
  EXPECT_EQ(NumUsedPages(), 7u + kChats);
  EXPECT_EQ(scheduler_->stats().num_shared_tokens, (kChats - 1) * 500u);
}

TEST_F(SchedulerTest, AnIdleSessionGivesWayAndReadsItsTextAgain) {
  Load(2);
  Session a(*scheduler_), b(*scheduler_), c(*scheduler_);
  EXPECT_EQ(Answer(a, Prompt(20, 1), 5).error, "");
  EXPECT_EQ(Answer(b, Prompt(20, 2), 5).error, "");
  EXPECT_EQ(Answer(c, Prompt(20, 3), 5).generated, Expected(Prompt(20, 3), 5));
  // The oldest, a, has lost its place; b has not.
  const Outcome again_b = Answer(b, Prompt(20, 2), 5);
  EXPECT_EQ(again_b.reused, 19u);
  const Outcome again_a = Answer(a, Prompt(20, 1), 5);
  EXPECT_EQ(again_a.reused, 0u);
  EXPECT_EQ(again_a.generated, Expected(Prompt(20, 1), 5));
}

TEST_F(SchedulerTest, ASessionGoesOnWithoutAPromptAfterItLostItsPlace) {
  Load(1);
  Session a(*scheduler_), b(*scheduler_);
  EXPECT_EQ(Answer(a, Prompt(20, 1), 5).error, "");
  EXPECT_EQ(Answer(b, Prompt(30, 2), 5).error, "");
  Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
  Tokens generated;
  ASSERT_TRUE(Generate(a, {.max_tokens = 3}, sampler, [&](const GeneratedToken& token) {
    generated.push_back(token.id);
    return true;
  }));
  const Tokens all = Expected(Prompt(20, 1), 8);
  EXPECT_EQ(generated, Tokens(all.begin() + 5, all.end()));
}

TEST_F(SchedulerTest, TheTokensOfASessionThatEndedAreFound) {
  Load(2);
  {  // Its place is taken over with what is in it.
    Session a(*scheduler_);
    EXPECT_EQ(Answer(a, Prompt(100, 1), 5).error, "");
  }
  Session b(*scheduler_);
  EXPECT_EQ(Answer(b, Prompt(100, 1), 5).reused, 99u);
  EXPECT_EQ(scheduler_->stats().num_shared_tokens, 0u);
}

// A long text that many begin with is missed more than short ones, however many these are.
TEST_F(SchedulerTest, ALongBeginningStaysWhileShortTextsComeAndGo) {
  Load(2, 2048, 64, Scheduler::Clock::now, {.num_kept_sequences = 6});
  Session a(*scheduler_), b(*scheduler_);
  const Tokens system = Prompt(500, 1);
  EXPECT_EQ(Answer(a, system, 3).error, "");
  for (int32_t i = 0; i < 40; ++i) {
    EXPECT_EQ(Answer(i % 2 == 0 ? a : b, Prompt(30, 100 + i), 3).error, "");
  }
  const Outcome again = Answer(b, system, 3);
  EXPECT_EQ(again.reused, 499u);
  EXPECT_EQ(again.generated, Expected(system, 3));
}

// Without sequences that only keep their tokens, too.
TEST_F(SchedulerTest, AnotherTextTakesTheSequenceThatIsMissedLeast) {
  Load(3, 2048);
  Session a(*scheduler_), b(*scheduler_), c(*scheduler_);
  const Tokens system = Prompt(300, 1);
  EXPECT_EQ(Answer(a, system, 3).error, "");
  EXPECT_EQ(Answer(b, Prompt(80, 2), 3).error, "");
  EXPECT_EQ(Answer(c, Prompt(70, 3), 3).error, "");
  EXPECT_EQ(Answer(a, Prompt(90, 4), 3).error, "");
  EXPECT_EQ(Answer(b, system, 3).reused, 299u);
}

// Pages are taken from the text that was used least recently.
TEST_F(SchedulerTest, KeptTextsGiveTheirPagesToThoseThatRun) {
  Load(2, 512, 64, Scheduler::Clock::now, {.num_kept_sequences = 6});
  Session session(*scheduler_);
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Answer(session, Prompt(100, i), 3).error, "");
  }
  EXPECT_EQ(NumUsedPages(), 8u);
  const Tokens large = Prompt(300, 9);
  EXPECT_EQ(Answer(session, large, 3).generated, Expected(large, 3));
  EXPECT_EQ(Answer(session, Prompt(100, 3), 3).reused, 99u);
  EXPECT_EQ(Answer(session, Prompt(100, 0), 3).reused, 0u);
}

TEST_F(SchedulerTest, SeveralWhoReadTheSameReadItOnce) {
  constexpr size_t kSessions = 4;
  constexpr size_t kPrompt = 1000;
  Load(kSessions, 8192, 16);
  const Tokens prompt = Prompt(kPrompt, 1);
  std::vector<Outcome> outcomes(kSessions);
  {
    std::latch begun(kSessions);
    std::vector<std::jthread> threads;
    threads.reserve(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
      threads.emplace_back([&, i] {
        Session session(*scheduler_);
        begun.arrive_and_wait();
        outcomes[i] = Answer(session, prompt, 3);
      });
    }
  }
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.generated, Expected(prompt, 3));
  // Who comes less than a page before the end does not wait. Each runs the last token, and two of
  // its answer.
  EXPECT_LE(model_->tokens_run(), kPrompt + (kSessions - 1) * kKvPageTokens + kSessions * 3);
}

// Who waits for what another one reads goes on alone if that one gives up, and others pass it.
TEST_F(SchedulerTest, WhoWaitsForAReaderIsNotLeftBehind) {
  Load(3, 4096, 16);
  const Tokens prompt = Prompt(600, 1);
  Session reader(*scheduler_), waiting(*scheduler_), other(*scheduler_);
  Outcome read, waited, passed;
  std::atomic<bool> is_cancelled = false;
  std::atomic<bool> is_begun = false;
  {
    std::atomic<pid_t> id = 0;
    const std::jthread first([&] {
      Turn turn(reader, {.max_tokens = 3});
      const Status status = turn.Prefill(prompt, [&](size_t done, size_t) {
        if (done < 32) return true;
        is_begun = true;
        support::Await([&] { return is_cancelled.load(); });
        return false;
      });
      if (!status) read.error = status.error().message();
    });
    support::Await([&] { return is_begun.load(); });
    const std::jthread second([&] {
      id = support::ThisThread();
      waited = Answer(waiting, prompt, 3);
    });
    support::Await([&] { return id != 0 && support::IsAsleep(id); });
    passed = Answer(other, Prompt(50, 2), 3);
    EXPECT_EQ(waited.generated, Tokens());
    is_cancelled = true;
  }
  EXPECT_THAT(read.error, testing::HasSubstr("stopped while"));
  EXPECT_EQ(passed.generated, Expected(Prompt(50, 2), 3));
  EXPECT_EQ(waited.generated, Expected(prompt, 3));
  EXPECT_EQ(waited.reused, 32u);
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
  // Alone, the whole chunk of 128 would be read at once. The first part is a guess of 8 tokens;
  // with the others, a Forward takes about three times as long as that of a single token.
  EXPECT_LE(std::ranges::max(sizes), 9u);
  EXPECT_EQ(std::ranges::count_if(sizes, [](size_t size) { return size > 6; }), 1);
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
