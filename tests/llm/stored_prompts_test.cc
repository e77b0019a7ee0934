// What the cache of a scheduler gives up goes to a store, and comes back from there.

#include "llm/stored_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "llm/common_beginning.h"
#include "llm/leaving_text.h"
#include "llm/scheduler_fixture.h"
#include "support/sleeping_thread.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Keeps texts in memory, and checks that the sequence has what is written.
class MemoryStore final : public PromptStore {
 public:
  MemoryStore(ScriptedModel& model, bool needs_whole) : model_(model), needs_whole_(needs_whole) {}

  size_t Find(std::span<const int32_t> tokens) override {
    const std::lock_guard lock(mutex_);
    size_t longest = 0;
    for (const Tokens& text : texts) {
      const size_t common = CommonBeginning(text, tokens);
      if (!needs_whole_ || common == text.size()) longest = std::max(longest, common);
    }
    return longest;
  }
  Status Read(std::span<const int32_t> tokens, SequenceId sequence) override {
    if (on_read) on_read();
    const std::lock_guard lock(mutex_);
    ++num_reads;
    if (fails) return Fail(ErrorCode::kInvalidFile, "it is damaged");
    model_.WriteTokens(sequence, tokens);
    return {};
  }
  bool Wants(std::span<const int32_t> tokens) override {
    return Find(tokens) + LeavingText::kMinTokens <= tokens.size();
  }
  void Write(std::span<const int32_t> tokens, SequenceId sequence) override {
    if (on_write) on_write();
    const std::lock_guard lock(mutex_);
    ++num_writes;
    if (fails) return;
    const Tokens kept = model_.TokensIn(sequence);
    EXPECT_TRUE(std::ranges::equal(std::span(kept).first(tokens.size()), tokens));
    texts.emplace_back(tokens.begin(), tokens.end());
  }

  std::vector<Tokens> texts;
  size_t num_reads = 0;
  size_t num_writes = 0;
  bool fails = false;
  std::function<void()> on_read;
  std::function<void()> on_write;

 private:
  ScriptedModel& model_;
  const bool needs_whole_;
  std::mutex mutex_;
};

class StoredPromptsTest : public SchedulerTest {
 protected:
  void Load(size_t num_sequences, size_t context_tokens, const ScriptedLayers& layers = {}) {
    SchedulerTest::Load(num_sequences, context_tokens, 64, Scheduler::Clock::now, layers);
    store_ = std::make_unique<MemoryStore>(*model_, layers.max_state_rows != 0);
    stored_ = &scheduler_->UseStore(*store_);
  }
  ~StoredPromptsTest() override { scheduler_.reset(); }

  static Tokens Joined(Tokens first, const Tokens& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  std::unique_ptr<MemoryStore> store_;
  StoredPrompts* stored_ = nullptr;
};

TEST_F(StoredPromptsTest, WhatIsGivenUpIsWrittenOnceAndReadAgain) {
  Load(1, 1024);
  Session session(*scheduler_);
  const Tokens a = Prompt(500, 1), b = Prompt(600, 2);
  const Tokens answer = Answer(session, a, 3).generated;
  EXPECT_THAT(store_->texts, IsEmpty());
  EXPECT_EQ(Answer(session, b, 3).error, "");
  // The last token of an answer is not run.
  EXPECT_THAT(store_->texts, ElementsAre(Joined(a, {answer[0], answer[1]})));
  const size_t run = model_->tokens_run();
  const Outcome again = Answer(session, a, 3);
  EXPECT_EQ(again.reused, 499u);
  EXPECT_EQ(again.generated, answer);
  // The last token of the prompt, and two of the answer.
  EXPECT_EQ(model_->tokens_run() - run, 3u);
  EXPECT_EQ(scheduler_->stats().num_stored_tokens, 499u);
  EXPECT_EQ(Answer(session, b, 3).reused, 599u);
  EXPECT_EQ(store_->num_writes, 2u);
  EXPECT_EQ(store_->num_reads, 2u);
}

TEST_F(StoredPromptsTest, PagesThatAreNeededAreWrittenFirst) {
  Load(2, 1024, {.num_kept_sequences = 6});
  Session session(*scheduler_);
  const Tokens a = Prompt(400, 1), b = Prompt(500, 2), c = Prompt(600, 3);
  for (const Tokens& prompt : {a, b, c}) {
    EXPECT_EQ(Answer(session, prompt, 3).generated, Expected(prompt, 3));
  }
  EXPECT_EQ(store_->num_writes, 2u);
  EXPECT_EQ(Answer(session, b, 3).reused, 499u);
  EXPECT_EQ(Answer(session, b, 3).generated, Expected(b, 3));
}

TEST_F(StoredPromptsTest, ShortTextsAndWhatOthersHaveAreNotWritten) {
  Load(2, 2048);
  Session first(*scheduler_), second(*scheduler_);
  const Tokens system = Prompt(500, 1);
  for (int32_t i = 0; i < 10; ++i) {
    Session& session = i % 2 == 0 ? first : second;
    EXPECT_EQ(Answer(session, Joined(system, Prompt(100, 10 + i)), 3).error, "");
  }
  for (int32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(Answer(second, Prompt(200, 20 + i), 3).error, "");
  }
  EXPECT_EQ(store_->num_writes, 0u);
}

// Only what is much longer in the store than in the cache is read.
TEST_F(StoredPromptsTest, TheCacheComesFirst) {
  Load(2, 2048);
  const Tokens system = Prompt(500, 1);
  store_->texts = {Joined(system, Prompt(100, 2))};
  Session first(*scheduler_), second(*scheduler_);
  EXPECT_EQ(Answer(first, system, 3).reused, 499u);
  EXPECT_EQ(Answer(second, Joined(system, Prompt(50, 3)), 3).reused, 500u);
  EXPECT_EQ(store_->num_reads, 1u);
  EXPECT_EQ(Answer(second, Joined(system, Prompt(100, 2)), 3).reused, 500u);
  EXPECT_EQ(store_->num_reads, 1u);
  store_->texts.push_back(Joined(system, Prompt(300, 4)));
  const Tokens longer = Joined(system, Prompt(300, 4));
  const Outcome outcome = Answer(first, longer, 3);
  EXPECT_EQ(outcome.reused, 799u);
  EXPECT_EQ(outcome.generated, Expected(longer, 3));
}

TEST_F(StoredPromptsTest, AShortBeginningIsComputed) {
  Load(1, 1024);
  const Tokens a = Prompt(500, 1);
  store_->texts = {a};
  Session session(*scheduler_);
  EXPECT_EQ(Answer(session, Joined({a.begin(), a.begin() + 127}, Prompt(50, 2)), 3).reused, 0u);
  EXPECT_EQ(Answer(session, Joined({a.begin(), a.begin() + 128}, Prompt(50, 9)), 3).reused, 127u);
  EXPECT_EQ(store_->num_reads, 0u);
  Session other(*scheduler_);
  EXPECT_EQ(Answer(other, Prompt(300, 4), 3).reused, 0u);
  EXPECT_EQ(Answer(other, Joined({a.begin(), a.begin() + 128}, Prompt(50, 5)), 3).reused, 128u);
  EXPECT_EQ(store_->num_reads, 1u);
}

TEST_F(StoredPromptsTest, WhatCannotBeReadIsComputed) {
  Load(1, 1024);
  const Tokens a = Prompt(500, 1);
  store_->texts = {a};
  store_->fails = true;
  Session session(*scheduler_);
  const Outcome outcome = Answer(session, a, 3);
  EXPECT_EQ(outcome.reused, 0u);
  EXPECT_EQ(outcome.generated, Expected(a, 3));
  // What cannot be written is given up all the same, after one attempt.
  const Tokens b = Prompt(500, 2);
  EXPECT_EQ(Answer(session, b, 3).generated, Expected(b, 3));
  EXPECT_EQ(store_->num_writes, 0u);  // The store has it already.
  const Tokens c = Prompt(500, 3);
  EXPECT_EQ(Answer(session, c, 3).generated, Expected(c, 3));
  EXPECT_EQ(store_->num_writes, 1u);
}

TEST_F(StoredPromptsTest, OthersGoOnWhileATextIsWrittenOrRead) {
  Load(2, 1024);
  Session large(*scheduler_), other(*scheduler_);
  const Tokens a = Prompt(700, 1), b = Prompt(720, 2), short_prompt = Prompt(30, 3);
  EXPECT_EQ(Answer(large, a, 3).error, "");
  EXPECT_EQ(Answer(other, short_prompt, 3).error, "");
  size_t num_calls = 0;
  const auto answer_other = [&] {
    // It goes on from its own text: neither the mutex nor the model is held.
    Outcome outcome;
    std::thread([&] { outcome = Answer(other, short_prompt, 40); }).join();
    EXPECT_EQ(outcome.generated, Expected(short_prompt, 40));
    ++num_calls;
  };
  store_->on_write = answer_other;
  EXPECT_EQ(Answer(large, b, 3).generated, Expected(b, 3));
  EXPECT_EQ(num_calls, 1u);
  store_->on_write = nullptr;
  store_->on_read = answer_other;
  EXPECT_EQ(Answer(large, a, 3).generated, Expected(a, 3));
  EXPECT_EQ(num_calls, 2u);
}

// The session whose text is being written waits for its end, and goes on from it.
TEST_F(StoredPromptsTest, ATextThatIsWrittenIsNotChanged) {
  Load(2, 1024);
  Session owner(*scheduler_), other(*scheduler_);
  const Tokens a = Prompt(700, 1), b = Prompt(720, 2);
  EXPECT_EQ(Answer(owner, a, 3).error, "");
  Outcome again;
  std::jthread thread;
  store_->on_write = [&] {
    if (thread.joinable()) return;
    std::atomic<pid_t> id = 0;
    thread = std::jthread([&] {
      id = support::ThisThread();
      again = Answer(owner, a, 3);
    });
    support::Await([&] { return id != 0 && support::IsAsleep(id); });
  };
  EXPECT_EQ(Answer(other, b, 3).generated, Expected(b, 3));
  thread.join();
  EXPECT_EQ(again.reused, 699u);
  EXPECT_EQ(again.generated, Expected(a, 3));
}

TEST_F(StoredPromptsTest, SeveralWhoWantTheSameReadItOnce) {
  constexpr size_t kSessions = 4;
  Load(kSessions, 8192);
  const Tokens prompt = Prompt(1000, 1);
  store_->texts = {prompt};
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
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.generated, Expected(prompt, 3));
    EXPECT_EQ(outcome.reused, 999u);
  }
  EXPECT_EQ(store_->num_reads, 1u);
  EXPECT_EQ(model_->tokens_run(), kSessions * 3);
}

TEST_F(StoredPromptsTest, AtTheEndAllThatIsWantedIsWritten) {
  Load(2, 4096, {.num_kept_sequences = 6});
  Session session(*scheduler_);
  const Tokens a = Prompt(300, 1), b = Prompt(900, 2);
  for (const Tokens& prompt : {a, Prompt(100, 3), b, Joined(a, Prompt(50, 4))}) {
    EXPECT_EQ(Answer(session, prompt, 1).error, "");
  }
  stored_->WriteAll(std::chrono::steady_clock::now());
  EXPECT_THAT(store_->texts, IsEmpty());
  stored_->WriteAll(std::chrono::steady_clock::time_point::max());
  EXPECT_THAT(store_->texts, ElementsAre(b, Joined(a, Prompt(50, 4))));
}

// Whoever gives up waiting leaves the writing to others, and nothing stays undone.
TEST_F(StoredPromptsTest, WhoeverWaitsWrites) {
  Load(1, 1024);
  Session first(*scheduler_), second(*scheduler_);
  const Tokens a = Prompt(500, 1);
  EXPECT_EQ(Answer(first, a, 3).error, "");
  std::atomic<bool> is_cancelled = true;
  EXPECT_THAT(Answer(second, Prompt(500, 2), 3, nullptr, &is_cancelled).error,
              testing::HasSubstr("stopped"));
  EXPECT_EQ(Answer(second, Prompt(600, 3), 3).generated, Expected(Prompt(600, 3), 3));
  EXPECT_EQ(store_->num_writes, 1u);
}

// The state of a recurrent model is that of all tokens: what is kept ends where texts have parted.
TEST_F(StoredPromptsTest, ARecurrentModelKeepsWhereTextsPart) {
  Load(2, 2048, {.max_state_rows = 1, .num_checkpoints = 6});
  const Tokens system = Prompt(500, 1);
  {
    Session first(*scheduler_), second(*scheduler_);
    for (int32_t i = 0; i < 3; ++i) {
      const Tokens prompt = Joined(system, Prompt(40, 10 + i));
      EXPECT_EQ(Answer(i % 2 == 0 ? first : second, prompt, 3).generated, Expected(prompt, 3));
    }
  }
  stored_->WriteAll(std::chrono::steady_clock::time_point::max());
  ASSERT_FALSE(store_->texts.empty());
  EXPECT_EQ(store_->texts.front(), system);
  const std::vector<Tokens> texts = store_->texts;
  Load(2, 2048, {.max_state_rows = 1, .num_checkpoints = 6});
  store_->texts = texts;
  Session later(*scheduler_), other(*scheduler_);
  const Tokens prompt = Joined(system, Prompt(40, 20));
  const Outcome outcome = Answer(later, prompt, 3);
  EXPECT_EQ(outcome.reused, 500u);
  EXPECT_EQ(outcome.generated, Expected(prompt, 3));
  // Others begin there, too.
  const Tokens next = Joined(system, Prompt(40, 21));
  EXPECT_EQ(Answer(other, next, 3).reused, 500u);
  EXPECT_EQ(store_->num_reads, 1u);
}

}  // namespace
}  // namespace cria
