// A session of a model with windows in some layers, which give rows up.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "llm/session_fixture.h"

namespace cria {
namespace {

constexpr size_t kWindowedContext = 640;

Tokens Prompt(size_t count) {
  Tokens tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<int32_t>(i * i % kVocabSize);
  return tokens;
}

class SessionWindowTest : public SessionTest {
 protected:
  explicit SessionWindowTest(uint32_t window = 100)
      : SessionTest(kWindowedContext, 32, {.windows = {0, window}}) {
    EXPECT_EQ(model_.sequences().pages().num_groups(), 2u);
  }

  // Generates with a context that shifts, from a prompt that is read; compares with the script.
  void ExpectShifting(Tokens context, size_t keep, size_t count) {
    const GenerationOptions options = {
        .max_tokens = count, .make_room = [keep](Turn& turn) { return turn.DropHalfBehind(keep); }};
    const Tokens generated = Generate(options, StopReason::kMaxTokens);
    ASSERT_EQ(generated.size(), count);
    for (const int32_t token : generated) {
      ASSERT_EQ(token, NextOf(context));
      if (context.size() == kWindowedContext) {
        const auto first = context.begin() + static_cast<ptrdiff_t>(keep);
        context.erase(first, first + static_cast<ptrdiff_t>((context.size() - keep) / 2));
      }
      context.push_back(token);
    }
  }
};

TEST_F(SessionWindowTest, GeneratingGoesOnPastTheWindow) {
  ASSERT_TRUE(Turn(session_).Prefill(Prompt(50)));
  EXPECT_EQ(Generate({.max_tokens = 550}, StopReason::kMaxTokens), Expected(Prompt(50), 550));
  EXPECT_EQ(model_.tokens_run(), 599u);
}

TEST_F(SessionWindowTest, ABeginningIsReusedIfItsWindowIsThere) {
  ASSERT_TRUE(Turn(session_).Prefill(Prompt(600)));
  Tokens other = Prompt(600);
  other[590] = 99;
  ASSERT_TRUE(Turn(session_).Prefill(other));
  EXPECT_EQ(session_.stats().reused_tokens, 590u);
  EXPECT_EQ(Generate({.max_tokens = 9}, StopReason::kMaxTokens), Expected(other, 9));
  // The same prompt again: its last token is run for the logits.
  ASSERT_TRUE(Turn(session_).Prefill(other));
  EXPECT_EQ(session_.stats().reused_tokens, 599u);
}

TEST_F(SessionWindowTest, ABeginningWhoseWindowIsGoneIsReadAgain) {
  ASSERT_TRUE(Turn(session_).Prefill(Prompt(600)));
  Tokens other = Prompt(600);
  other[300] = 99;
  model_.calls.clear();
  ASSERT_TRUE(Turn(session_).Prefill(other));
  EXPECT_EQ(session_.stats().reused_tokens, 0u);
  EXPECT_EQ(model_.tokens_run(), 600u);
  EXPECT_EQ(Generate({.max_tokens = 20}, StopReason::kMaxTokens), Expected(other, 20));
}

TEST_F(SessionWindowTest, AShiftMovesTheRowsOfTheWindow) {
  ASSERT_TRUE(Turn(session_).Prefill(Prompt(600)));
  ExpectShifting(Prompt(600), 4, 1000);
  EXPECT_FALSE(model_.drops.empty());
  EXPECT_EQ(model_.tokens_run(), 600u + 999u) << "no token is run twice";
}

TEST_F(SessionWindowTest, AFailedShiftCanBeTriedAgain) {
  ASSERT_TRUE(Turn(session_).Prefill(Prompt(kWindowedContext)));
  model_.fail_moves = true;
  Sampler sampler = Greedy();
  const auto failed =
      cria::Generate(session_, {.make_room = [&](Turn& turn) { return turn.DropHalfBehind(4); }},
                     sampler, FailAtToken);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "the script says so");
  EXPECT_EQ(context(), Prompt(kWindowedContext));
  model_.fail_moves = false;
  ExpectShifting(Prompt(kWindowedContext), 4, 50);
}

TEST_F(SessionWindowTest, TokensThatAreDroppedFromTheEndAreForgotten) {
  ASSERT_TRUE(Turn(session_).Prefill(Prompt(600)));
  ASSERT_TRUE(Turn(session_).Drop(590, 10));
  EXPECT_EQ(Generate({.max_tokens = 5}, StopReason::kMaxTokens), Expected(Prompt(590), 5));
  // Farther back, the window is gone.
  ASSERT_TRUE(Turn(session_).Drop(200, 394));
  EXPECT_EQ(session_.tokens().size(), 201u);
  Tokens left = context();
  EXPECT_EQ(Generate({.max_tokens = 5}, StopReason::kMaxTokens), Expected(left, 5));
}

// After a shift, all tokens are in the window, the first ones as well.
class SessionLongWindowTest : public SessionWindowTest {
 protected:
  SessionLongWindowTest() : SessionWindowTest(400) {}
};

TEST_F(SessionLongWindowTest, AShiftThatNeedsRowsThatAreGoneReadsAgain) {
  ASSERT_TRUE(Turn(session_).Prefill(Prompt(600)));
  ExpectShifting(Prompt(600), 4, 1000);
  EXPECT_TRUE(model_.drops.empty());
  // After each of four shifts, 322 tokens and the new one are read.
  EXPECT_EQ(session_.stats().dropped_tokens, 4u * 318);
  EXPECT_EQ(model_.tokens_run(), 600u + 999u + 4u * 322);
  EXPECT_EQ(session_.stats().prompt_tokens, 600u + 4u * 323);
  EXPECT_EQ(session_.stats().decoded_tokens, 999u - 4u);
}

TEST_F(SessionLongWindowTest, ReadingAgainCanBeCancelled) {
  ASSERT_TRUE(Turn(session_).Prefill(Prompt(kWindowedContext)));
  model_.calls.clear();
  std::atomic<bool> cancel = false;
  model_.after_forward = [&] { cancel = model_.calls.size() == 2; };
  const GenerationOptions options = {
      .cancel = &cancel, .make_room = [&](Turn& turn) { return turn.DropHalfBehind(4); }};
  EXPECT_EQ(Generate(options, StopReason::kCancelled), Expected(Prompt(kWindowedContext), 1));
  EXPECT_EQ(model_.tokens_run(), 64u);
  model_.after_forward = nullptr;
  const Tokens left = context();
  EXPECT_EQ(left.size(), 323u);
  EXPECT_EQ(Generate({.max_tokens = 10}, StopReason::kMaxTokens), Expected(left, 10));
  EXPECT_EQ(model_.tokens_run(), 323u + 9u);
}

// Another session shares a beginning if its window is there, and reads it otherwise.
TEST(SessionsWithWindowsTest, ABeginningIsSharedIfItsWindowIsThere) {
  ScriptedModel model(kVocabSize, kWindowedContext, 32, NextOf, 2, {.windows = {0, 100}});
  ASSERT_EQ(model.sequences().pages().num_groups(), 2u);
  Scheduler scheduler(model);
  auto sampler = Sampler::Create({.temperature = 0.0f}, kVocabSize);
  ASSERT_TRUE(sampler);
  Session first(scheduler), second(scheduler);
  const auto expect_answer = [&](Session& session, const Tokens& prompt) {
    Tokens generated;
    ASSERT_TRUE(Turn(session).Prefill(prompt));
    ASSERT_TRUE(
        cria::Generate(session, {.max_tokens = 15}, *sampler, [&](const GeneratedToken& token) {
          generated.push_back(token.id);
          return true;
        }));
    EXPECT_EQ(generated, Expected(prompt, 15));
  };
  expect_answer(first, Prompt(290));
  for (const auto& [common, reused] : {std::pair<size_t, size_t>{280, 280}, {150, 0}}) {
    Tokens other = Prompt(290);
    other[common] = 99;
    second.Clear();
    expect_answer(second, other);
    EXPECT_EQ(second.stats().reused_tokens, reused);
    // The first one has its own rows still.
    expect_answer(first, Prompt(290));
    EXPECT_EQ(first.stats().reused_tokens, 289u);
  }
}

}  // namespace
}  // namespace cria
