#include "llm/message_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "llm/common_beginning.h"
#include "llm/conversation_fixture.h"

namespace cria {
namespace {

class MessageHistoryTest : public ConversationTest {
 protected:
  static constexpr MessageHistory::Bound kWide = {.context_tokens = 10'000, .leaves_out = true};

  MessageHistory History(std::vector<ChatMessage> messages) {
    return MessageHistory(*tokenizer_, chat_template(), std::move(messages));
  }
  // Three turns, of which the second begins with two messages.
  MessageHistory ThreeTurns() {
    return History({{"system", "s"},
                    {"developer", "d"},
                    {"user", "1"},
                    {"assistant", "one"},
                    {"user", "2"},
                    {"user", "again"},
                    {"assistant", "two"},
                    {"user", "3"}});
  }
  static std::vector<std::string> Contents(const MessageHistory& history) {
    std::vector<std::string> contents;
    for (const ChatMessage& message : history.messages()) contents.push_back(message.content);
    return contents;
  }
};

TEST_F(MessageHistoryTest, KnowsItsTurns) {
  MessageHistory history = ThreeTurns();
  EXPECT_EQ(history.num_system_messages(), 2u);
  EXPECT_TRUE(history.has_turns());
  EXPECT_FALSE(history.ends_in_answer());
  EXPECT_EQ(history.OldTurns(), 2u);
  history.DropOldest(0);
  EXPECT_EQ(history.OldTurns(), 2u);
  history.DropLastTurn();
  EXPECT_EQ(history.TakeLast().content, "two");
  EXPECT_THAT(Contents(history), testing::ElementsAre("s", "d", "1", "one", "2", "again"));
  history.DropOldest(1);
  EXPECT_THAT(Contents(history), testing::ElementsAre("s", "d", "2", "again"));
  history.DropTurns();
  EXPECT_THAT(Contents(history), testing::ElementsAre("s", "d"));
  EXPECT_FALSE(history.has_turns());
}

TEST_F(MessageHistoryTest, LeavesOutAsFewTurnsAsPossible) {
  const MessageHistory history = ThreeTurns();
  std::vector<size_t> sizes;
  for (const size_t left_out : {0u, 1u, 2u}) {
    const auto rendering = history.Render(left_out, kWide);
    ASSERT_TRUE(rendering);
    EXPECT_EQ(rendering->left_out, left_out);
    sizes.push_back(rendering->tokens.size());
  }
  EXPECT_GT(sizes[0], sizes[1]);
  EXPECT_GT(sizes[1], sizes[2]);
  // It leaves out one at least.
  EXPECT_EQ(history.RenderWithin(sizes[0], kWide)->left_out, 1u);
  EXPECT_EQ(history.RenderWithin(sizes[1], kWide)->left_out, 1u);
  EXPECT_EQ(history.RenderWithin(sizes[1] - 1, kWide)->left_out, 2u);
  EXPECT_EQ(history.RenderWithin(1, kWide)->left_out, 2u) << "the last turn is never left out";
  EXPECT_FALSE(history.Render(0, {.context_tokens = 2, .leaves_out = false}));
}

TEST_F(MessageHistoryTest, TheBeginningDoesNotDependOnTheQuestion) {
  const MessageHistory one = History({{"system", "s"}, {"user", "what is this?"}});
  const MessageHistory other = History({{"system", "s"}, {"user", "and that?"}});
  const auto tokens = one.Render(0, kWide)->tokens;
  const auto before = one.TokensBeforeQuestion(tokens);
  ASSERT_TRUE(before);
  EXPECT_EQ(*before, CommonBeginning(tokens, other.Render(0, kWide)->tokens));
}

TEST_F(MessageHistoryTest, RefusesVariablesThatAreNone) {
  MessageHistory history = ThreeTurns();
  ASSERT_TRUE(history.SetVariables(R"({"a": 1})"));
  EXPECT_EQ(history.SetVariables("a").error().code(), ErrorCode::kUsage);
  EXPECT_EQ(history.variables(), R"({"a": 1})");
}

}  // namespace
}  // namespace cria
