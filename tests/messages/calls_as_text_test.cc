#include "messages/calls_as_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "messages/rules.h"

namespace cria {
namespace {

constexpr char kCalls[] =
    R"({"tool_calls":[{"id":"1","type":"function","function":{"name":"add","arguments":{"a":1}}},)"
    R"({"type":"function","function":{"name":"now","arguments":{}}}]})";

TEST(HasCallsTest, IsTrueForCallsAndForResults) {
  EXPECT_FALSE(HasCalls({{"user", "Hi"}, {"assistant", "Ho"}}));
  EXPECT_TRUE(HasCalls({{"user", "Hi"}, {"assistant", "", kCalls}}));
  EXPECT_TRUE(HasCalls({{"tool", "3"}}));
}

TEST(HasCallsTest, TextThatLooksLikeTheFieldIsNone) {
  EXPECT_FALSE(HasCalls({{"user", R"("tool_calls")"},
                         {"assistant", "", R"({"reasoning_content":"\"tool_calls\":"})"}}));
}

TEST(WriteCallsAsTextTest, CallsFollowWhatTheAssistantSaid) {
  std::vector<ChatMessage> messages = {{"assistant", "Wait.", kCalls}, {"assistant", "", kCalls}};
  WriteCallsAsText(messages, kRules);
  const std::string calls =
      "<tool_call>\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n</tool_call>\n"
      "<tool_call>\n{\"name\":\"now\",\"arguments\":{}}\n</tool_call>";
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].content, "Wait.\n" + calls);
  EXPECT_EQ(messages[1].content, calls);
  EXPECT_EQ(messages[1].fields, "");
}

TEST(WriteCallsAsTextTest, ResultsInARowAreOneMessageOfTheUser) {
  std::vector<ChatMessage> messages = {{"tool", "3", R"({"tool_call_id":"1"})"},
                                       {"tool", "noon"},
                                       {"assistant", "3."},
                                       {"tool", "4"}};
  WriteCallsAsText(messages, kRules);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].role, "user");
  EXPECT_EQ(messages[0].content,
            "<tool_response>\n3\n</tool_response>\n<tool_response>\nnoon\n</tool_response>");
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(messages[2].content, "<tool_response>\n4\n</tool_response>");
}

TEST(WriteCallsAsTextTest, OtherMessagesStayAsTheyAre) {
  std::vector<ChatMessage> messages = {{"system", "Be kind."}, {"user", "Hi"}};
  WriteCallsAsText(messages, kRules);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].content, "Be kind.");
  EXPECT_EQ(messages[1].role, "user");
}

}  // namespace
}  // namespace cria
