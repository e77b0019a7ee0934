// Several sessions of one model: what they share of texts, and which texts stay in the cache.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "llm/scheduler.h"
#include "llm/scheduler_fixture.h"
#include "support/sleeping_thread.h"

namespace cria {
namespace {

class KeptTextsTest : public SchedulerTest {};

TEST_F(KeptTextsTest, ACommonBeginningIsRunAndStoredOnce) {
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

TEST_F(KeptTextsTest, AnIdleSessionGivesWayAndReadsItsTextAgain) {
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

TEST_F(KeptTextsTest, ASessionGoesOnWithoutAPromptAfterItLostItsPlace) {
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

TEST_F(KeptTextsTest, TheTokensOfASessionThatEndedAreFound) {
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
TEST_F(KeptTextsTest, ALongBeginningStaysWhileShortTextsComeAndGo) {
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
TEST_F(KeptTextsTest, AnotherTextTakesTheSequenceThatIsMissedLeast) {
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
TEST_F(KeptTextsTest, KeptTextsGiveTheirPagesToThoseThatRun) {
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

// The only sequence may fill the whole context, but takes the room of kept texts when it needs it.
TEST_F(KeptTextsTest, TheOnlySequenceLeavesKeptTextsTheirRoomUntilItNeedsIt) {
  Load(1, 2048, 64, Scheduler::Clock::now, {.num_kept_sequences = 6});
  Session session(*scheduler_);
  const Tokens system = Prompt(500, 1);
  EXPECT_EQ(Answer(session, system, 3).error, "");
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Answer(session, Prompt(30, 100 + i), 100).error, "");
  }
  EXPECT_EQ(Answer(session, system, 3).reused, 499u);
  const Tokens longest = Prompt(1000, 2);
  EXPECT_EQ(Answer(session, longest, 1048).generated, Expected(longest, 1048));
  EXPECT_EQ(Answer(session, system, 3).generated, Expected(system, 3));
  EXPECT_EQ(session.stats().reused_tokens, 0u);
}

TEST_F(KeptTextsTest, SeveralWhoReadTheSameReadItOnce) {
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
TEST_F(KeptTextsTest, WhoWaitsForAReaderIsNotLeftBehind) {
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

}  // namespace
}  // namespace cria
