// Chats: what they answer, that they share a model by turns, and what a full context does to them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "c_api/c_api_fixture.h"

namespace cria_test {
namespace {

using testing::HasSubstr;

class ChatTest : public testing::Test {
 protected:
  const ModelPtr model_ = LoadModel();
};

TEST_F(ChatTest, ReadsOnlyWhatIsNewOfAConversation) {
  const ChatPtr chat = MakeChat(model_);
  const Answer first = Send(chat, "My name is Ann.");
  ASSERT_EQ(first.status, CRIA_OK) << cria_error_message();
  EXPECT_EQ(first.result.stop_reason, CRIA_STOP_END);
  EXPECT_EQ(first.result.reused_tokens, 0u);
  const Answer second = Send(chat, "What is my name?");
  EXPECT_THAT(second.text, HasSubstr("Ann"));
  // All but the last token of the first answer, which ended with it.
  EXPECT_GE(second.result.reused_tokens + 1, first.result.context_used_tokens);
  EXPECT_EQ(
      second.result.context_used_tokens,
      second.result.reused_tokens + second.result.prompt_tokens + second.result.generated_tokens);
}

TEST_F(ChatTest, PiecesAreTheWholeAnswerAndEndWithAZeroByte) {
  const ChatPtr chat = MakeChat(model_);
  std::string pieces;
  const Answer answer = Send(chat, "Hello! Who are you?", [&](std::string_view piece) {
    EXPECT_FALSE(piece.empty());
    EXPECT_EQ(piece.data()[piece.size()], '\0');
    pieces += piece;
    return true;
  });
  EXPECT_EQ(answer.text, pieces);
  EXPECT_EQ(answer.text, "Hello! I am Cria, a baby llama. What would you like to talk about?");
}

TEST_F(ChatTest, TheContextUsedGrowsWhileAnAnswerIsMade) {
  const ChatPtr chat = MakeChat(model_);
  std::vector<uint32_t> used;
  const Answer answer = Send(chat, "Hello!", [&](std::string_view) {
    used.push_back(cria_chat_context_used(chat.get()));
    return true;
  });
  ASSERT_GT(used.size(), 2u);
  EXPECT_LT(used.front(), used.back());
  EXPECT_EQ(cria_chat_context_used(chat.get()), answer.result.context_used_tokens);
}

TEST_F(ChatTest, ChatsOfOneModelDoNotHearEachOther) {
  const char* const questions[] = {"What is my name?", "Where do you run?", "Goodbye!"};
  const auto hold = [&](const char* introduction) {
    const ChatPtr chat = MakeChat(model_);
    std::vector<std::string> answers = {Send(chat, introduction).text};
    for (const char* question : questions) answers.push_back(Send(chat, question).text);
    return answers;
  };
  const auto ann = hold("My name is Ann.");
  const auto bob = hold("My name is Bob.");
  EXPECT_NE(ann, bob);

  const ChatPtr chat_of_ann = MakeChat(model_);
  const ChatPtr chat_of_bob = MakeChat(model_);
  std::vector<std::string> to_ann = {Send(chat_of_ann, "My name is Ann.").text};
  std::vector<std::string> to_bob = {Send(chat_of_bob, "My name is Bob.").text};
  for (const char* question : questions) {
    to_ann.push_back(Send(chat_of_ann, question).text);
    Complete(model_, "Something else altogether");
    to_bob.push_back(Send(chat_of_bob, question).text);
  }
  EXPECT_EQ(to_ann, ann);
  EXPECT_EQ(to_bob, bob);
}

TEST_F(ChatTest, ResetForgetsAllButTheSystemPrompt) {
  const ChatPtr chat = MakeChat(model_, Greedy(), "You are a friendly assistant.");
  const Answer first = Send(chat, "Hello! Who are you?");
  Send(chat, "Where do you run?");
  ASSERT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
  EXPECT_EQ(cria_chat_context_used(chat.get()), 0u);
  const Answer again = Send(chat, "Hello! Who are you?");
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(again.result.context_used_tokens, first.result.context_used_tokens);
}

TEST_F(ChatTest, ASystemPromptTakesPlaceInTheContext) {
  const Answer with = Send(MakeChat(model_, Greedy(), "You are a friendly assistant."), "Hello!");
  const Answer without = Send(MakeChat(model_, Greedy(), ""), "Hello!");
  EXPECT_GT(with.result.prompt_tokens + with.result.reused_tokens,
            without.result.prompt_tokens + without.result.reused_tokens);
}

TEST_F(ChatTest, AChatOutlivesItsModelsHandle) {
  ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  model.reset();
  EXPECT_THAT(Send(chat, "Hello! Who are you?").text, HasSubstr("Cria"));
}

TEST_F(ChatTest, TheSeedDecidesWhatIsDrawn) {
  cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
  options.temperature = 3.0f;
  options.max_tokens = 20;
  const auto answers = [&](uint64_t seed) {
    options.seed = seed;
    const ChatPtr chat = MakeChat(model_, options);
    return Send(chat, "Hello!").text + Send(chat, "Hello!").text;
  };
  EXPECT_EQ(answers(1), answers(1));
  EXPECT_NE(answers(1), answers(2));
}

TEST_F(ChatTest, OptionsMayChangeBetweenMessages) {
  const ChatPtr chat = MakeChat(model_);
  cria_generation_options options = Greedy();
  options.max_tokens = 3;
  ASSERT_EQ(cria_chat_set_options(chat.get(), &options), CRIA_OK);
  const Answer answer = Send(chat, "Hello!");
  EXPECT_EQ(answer.result.generated_tokens, 3u);
  EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_MAX_TOKENS);
  // The default options have no limit.
  ASSERT_EQ(cria_chat_set_options(chat.get(), nullptr), CRIA_OK);
  EXPECT_EQ(Send(chat, "Hello!").result.stop_reason, CRIA_STOP_END);
}

class ShortContextTest : public testing::Test {
 protected:
  ShortContextTest() {
    cria_model_options options = DemoOptions();
    options.context_tokens = 96;
    model_ = LoadModel(options);
  }

  // The first answer that is not OK, or the last of twenty.
  Answer TalkAtLength(const ChatPtr& chat) {
    Answer answer;
    for (int i = 0; i < 20; ++i) {
      answer = Send(chat, "Hello! Who are you?");
      if (answer.status != CRIA_OK || answer.result.stop_reason != CRIA_STOP_END) break;
    }
    return answer;
  }

  ModelPtr model_;
};

TEST_F(ShortContextTest, StopsWhereTheContextIsFull) {
  const ChatPtr chat = MakeChat(model_);
  const Answer answer = TalkAtLength(chat);
  if (answer.status == CRIA_OK) {
    EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_CONTEXT_FULL);
    EXPECT_EQ(answer.result.context_used_tokens, 96u);
  } else {
    ExpectFailure(answer.status, CRIA_ERROR_OUT_OF_RANGE, "96");
  }
  EXPECT_FALSE(cria_chat_has_forgotten(chat.get()));
}

TEST_F(ShortContextTest, ForgetsTheOldestTurnsIfItMay) {
  cria_generation_options options = Greedy();
  options.when_full = CRIA_WHEN_FULL_SHIFT;
  const ChatPtr chat = MakeChat(model_, options);
  const Answer answer = TalkAtLength(chat);
  EXPECT_EQ(answer.status, CRIA_OK) << cria_error_message();
  EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_END);
  EXPECT_TRUE(cria_chat_has_forgotten(chat.get()));
}

TEST_F(ShortContextTest, AMessageThatDoesNotFitLeavesTheChatAsItWas) {
  const ChatPtr chat = MakeChat(model_);
  const Answer before = Send(chat, "My name is Ann.");
  std::string much;
  for (int i = 0; i < 100; ++i) much += "llama ";
  const Answer answer = Send(chat, much.c_str());
  ExpectFailure(answer.status, CRIA_ERROR_OUT_OF_RANGE, "96");
  EXPECT_EQ(answer.text, "");
  EXPECT_EQ(cria_chat_context_used(chat.get()), before.result.context_used_tokens);
  EXPECT_THAT(Send(chat, "What is my name?").text, HasSubstr("Ann"));
}

}  // namespace
}  // namespace cria_test
