#include "llm/turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <new>

#include "llm/session_fixture.h"

namespace cria {
namespace {

class TurnTest : public SessionTest {};

TEST_F(TurnTest, ASecondTurnOfTheSessionIsRefusedAndChangesNothing) {
  Turn turn(session_);
  ASSERT_TRUE(turn.Prefill(Counting(6)));
  {
    Turn second(session_, {.max_tokens = 1});
    const Status refusals[] = {second.Prefill(Counting(3)), second.Drop(0, 1),
                               second.Logits().transform([](const LogitRows&) {}),
                               second.HoldCache().transform([](size_t) {})};
    for (const Status& refused : refusals) {
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code(), ErrorCode::kInternal);
      EXPECT_THAT(refused.error().message(), testing::HasSubstr("has not ended"));
    }
  }
  EXPECT_EQ(context(), Counting(6));
  // The first one goes on, and still has the logits behind its prompt or runs the last token again.
  Sampler sampler = Greedy();
  Tokens generated;
  ASSERT_TRUE(cria::Generate(turn, {.max_tokens = 2}, sampler, CollectInto(generated)));
  EXPECT_EQ(generated, Expected(Counting(6), 2));
}

TEST_F(TurnTest, OneAfterAnotherFindsTheLogitsOfTheLast) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(6)));
  const size_t run = model_.tokens_run();
  Turn turn(session_);
  ASSERT_TRUE(turn.Logits());
  EXPECT_EQ(model_.tokens_run(), run);
  // They are taken once, because who has them may change them.
  ASSERT_TRUE(turn.Logits());
  EXPECT_EQ(model_.tokens_run(), run + 1);
}

TEST_F(TurnTest, TakesItsSequenceWithTheFirstCallAndGivesItBack) {
  Session other(scheduler_);
  Turn idle(other);
  {
    Turn turn(session_);
    ASSERT_TRUE(turn.Prefill(Counting(4)));
    EXPECT_EQ(turn.max_length(), 32u);
    EXPECT_EQ(*turn.HoldCache(), 4u);
  }
  // There is one sequence.
  EXPECT_TRUE(idle.Prefill(Counting(8, 50)));
}

TEST_F(TurnTest, LogitsBehindDraftsAreThoseOfTheTokensAfterThem) {
  ScriptedModel model(kVocabSize, 64, 16, NextOf);
  Scheduler scheduler(model);
  Session session(scheduler);
  Turn turn(session);
  Tokens tokens = Counting(5);
  ASSERT_TRUE(turn.Prefill(tokens));
  turn.Append(NextOf(tokens), TokenOrigin::kChosen);
  tokens.push_back(NextOf(tokens));
  const Tokens drafts = {7, 8};
  const Result<LogitRows> rows = turn.Logits({.drafts = drafts});
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 3u);
  for (size_t row = 0; row < rows->size(); ++row) {
    EXPECT_EQ((*rows)[row][static_cast<size_t>(NextOf(tokens))], 8.0f) << row;
    if (row < drafts.size()) tokens.push_back(drafts[row]);
  }
  EXPECT_EQ(session.tokens().size(), 6u) << "drafts are not part of the context";
  turn.Append(7, TokenOrigin::kDraft);
  EXPECT_EQ(session.stats().accepted_tokens, 1u);
  EXPECT_EQ(*turn.HoldCache(), 7u) << "an accepted draft is in the cache";
}

// As after an exception that has passed through the library: the turn is not destroyed.
TEST_F(TurnTest, ASessionCanEndATurnThatIsLost) {
  alignas(Turn) std::byte memory[sizeof(Turn)];
  Turn* const lost = new (memory) Turn(session_);
  ASSERT_TRUE(lost->Prefill(Counting(4)));
  session_.EndTurn();
  Session other(scheduler_);
  EXPECT_TRUE(Turn(other).Prefill(Counting(8, 50))) << "the sequence is free";
  ASSERT_TRUE(Turn(session_).Prefill(Counting(9)));
  EXPECT_EQ(Generate({.max_tokens = 3}, StopReason::kMaxTokens), Expected(Counting(9), 3));
}

}  // namespace
}  // namespace cria
