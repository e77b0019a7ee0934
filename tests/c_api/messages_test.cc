// Messages in and out: chats that go on from them, dropping and replacing answers, and what the
// chat template makes of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "c_api/c_api_fixture.h"
#include "c_api/fixture_models.h"

namespace cria_test {
namespace {

using testing::HasSubstr;
using Messages = std::vector<std::pair<std::string, std::string>>;

std::vector<cria_message> ToC(const Messages& messages) {
  std::vector<cria_message> c_messages;
  for (const auto& [role, content] : messages) {
    c_messages.push_back({role.data(), content.data(), role.size(), content.size()});
  }
  return c_messages;
}

class MessagesTest : public testing::Test {
 protected:
  ChatPtr MakeChatFrom(const Messages& messages,
                       const cria_generation_options& options = Greedy()) {
    const std::vector<cria_message> c_messages = ToC(messages);
    cria_chat* chat = nullptr;
    EXPECT_EQ(cria_chat_create_from_messages(model_.get(), c_messages.data(), c_messages.size(),
                                             &options, &chat),
              CRIA_OK)
        << cria_error_message();
    return ChatPtr(chat);
  }

  static Messages MessagesOf(const ChatPtr& chat) {
    Messages messages;
    for (size_t i = 0; i < cria_chat_num_messages(chat.get()); ++i) {
      cria_message message = {};
      EXPECT_EQ(cria_chat_get_message(chat.get(), i, &message), CRIA_OK) << cria_error_message();
      EXPECT_EQ(message.role[message.role_bytes], '\0');
      EXPECT_EQ(message.content[message.content_bytes], '\0');
      messages.emplace_back(std::string(message.role, message.role_bytes),
                            std::string(message.content, message.content_bytes));
    }
    return messages;
  }

  static Answer Say(const ChatPtr& chat, const char* role, const std::string& content) {
    const cria_message message = {role, content.data(), CRIA_ZERO_TERMINATED, content.size()};
    return Generate([&](const cria_callbacks* callbacks, cria_result* result) {
      return cria_chat_answer(chat.get(), &message, callbacks, result);
    });
  }
  static Answer AnswerLast(const ChatPtr& chat) {
    return Generate([&](const cria_callbacks* callbacks, cria_result* result) {
      return cria_chat_answer(chat.get(), nullptr, callbacks, result);
    });
  }
  static Answer Regenerate(const ChatPtr& chat) {
    return Generate([&](const cria_callbacks* callbacks, cria_result* result) {
      return cria_chat_regenerate(chat.get(), callbacks, result);
    });
  }

  const ModelPtr model_ = LoadModel();
};

TEST_F(MessagesTest, AChatGoesOnFromMessages) {
  const ChatPtr held = MakeChat(model_, Greedy(), "You are a friendly assistant.");
  Send(held, "My name is Ann.");
  const Messages before = MessagesOf(held);
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(before[0], (std::pair<std::string, std::string>("system",
                                                            "You are a friendly "
                                                            "assistant.")));
  EXPECT_EQ(before[1].second, "My name is Ann.");
  EXPECT_EQ(before[2].first, "assistant");
  const ChatPtr given = MakeChatFrom(before);
  EXPECT_EQ(MessagesOf(given), before);
  const Answer answer = Send(given, "What is my name?");
  EXPECT_THAT(answer.text, HasSubstr("Ann"));
  EXPECT_EQ(answer.text, Send(held, "What is my name?").text);
  EXPECT_EQ(MessagesOf(given), MessagesOf(held));
  // The system prompt is the first message.
  ASSERT_EQ(cria_chat_reset(given.get()), CRIA_OK);
  EXPECT_EQ(MessagesOf(given), (Messages{before[0]}));
}

TEST_F(MessagesTest, TheLastMessageIsAnswered) {
  const ChatPtr chat = MakeChatFrom({{"user", kQuestion}});
  const Answer answer = AnswerLast(chat);
  EXPECT_EQ(answer.status, CRIA_OK) << cria_error_message();
  EXPECT_EQ(answer.text, kAnswer);
  EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_END);
  EXPECT_EQ(MessagesOf(chat), (Messages{{"user", kQuestion}, {"assistant", kAnswer}}));
  ExpectFailure(AnswerLast(chat).status, CRIA_ERROR_USAGE, "answer");
  // No message is there to answer.
  ExpectFailure(AnswerLast(MakeChatFrom({})).status, CRIA_ERROR_USAGE, "no message");
  ExpectFailure(AnswerLast(MakeChat(model_, Greedy(), "Be brief.")).status, CRIA_ERROR_USAGE,
                "no message");
}

TEST_F(MessagesTest, AMessageMayHaveAnotherRole) {
  const ChatPtr chat = MakeChat(model_);
  ASSERT_EQ(Say(chat, "user", kQuestion).text, kAnswer);
  EXPECT_EQ(Say(chat, "tool", "42").status, CRIA_OK) << cria_error_message();
  EXPECT_EQ(MessagesOf(chat)[2], (std::pair<std::string, std::string>("tool", "42")));
  ExpectFailure(Say(chat, "assistant", "So").status, CRIA_ERROR_USAGE, "answer");
  ExpectFailure(Say(chat, "", "So").status, CRIA_ERROR_USAGE, "role of a message is empty");
  EXPECT_EQ(cria_chat_num_messages(chat.get()), 4u);
}

TEST_F(MessagesTest, TheLastAnswerIsReplaced) {
  cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
  options.temperature = 3.0f;
  options.max_tokens = 20;
  const ChatPtr chat = MakeChat(model_, options);
  ExpectFailure(Regenerate(chat).status, CRIA_ERROR_USAGE, "not an answer");
  Send(chat, "Hello!");
  const Messages before = MessagesOf(chat);
  const Answer again = Regenerate(chat);
  EXPECT_EQ(again.status, CRIA_OK) << cria_error_message();
  EXPECT_EQ(MessagesOf(chat), (Messages{{"user", "Hello!"}, {"assistant", again.text}}));
  // The random numbers are the next ones.
  EXPECT_NE(again.text, before[1].second);
  // The question is still in the context.
  EXPECT_EQ(again.result.prompt_tokens, 1u);
  // Without chance, it is the same again.
  const cria_generation_options greedy = Greedy();
  ASSERT_EQ(cria_chat_set_options(chat.get(), &greedy), CRIA_OK);
  EXPECT_EQ(Regenerate(chat).text, Regenerate(chat).text);
}

TEST_F(MessagesTest, TurnsAreDroppedFromTheEnd) {
  const ChatPtr chat = MakeChat(model_, Greedy(), "You are a friendly assistant.");
  Send(chat, "My name is Ann.");
  const Messages one = MessagesOf(chat);
  Send(chat, "My name is Bob.");
  ASSERT_EQ(cria_chat_drop_last_turn(chat.get()), CRIA_OK);
  EXPECT_EQ(MessagesOf(chat), one);
  EXPECT_THAT(Send(chat, "What is my name?").text, HasSubstr("Ann"));
  ASSERT_EQ(cria_chat_drop_last_turn(chat.get()), CRIA_OK);
  ASSERT_EQ(cria_chat_drop_last_turn(chat.get()), CRIA_OK);
  EXPECT_EQ(cria_chat_num_messages(chat.get()), 1u);
  ExpectFailure(cria_chat_drop_last_turn(chat.get()), CRIA_ERROR_USAGE, "no message");
}

TEST_F(MessagesTest, TextsHaveLengths) {
  // Behind these, there is no zero byte.
  const std::string text = std::string("a\0b", 3) + "user" + kQuestion;
  const cria_message messages[] = {{text.data() + 3, text.data() + 7, 4, std::strlen(kQuestion)},
                                   {"user", text.data(), CRIA_ZERO_TERMINATED, 3},
                                   {"user", nullptr, 4, 0}};
  cria_chat* made = nullptr;
  ASSERT_EQ(cria_chat_create_from_messages(model_.get(), messages, 3, nullptr, &made), CRIA_OK)
      << cria_error_message();
  const ChatPtr chat(made);
  EXPECT_EQ(MessagesOf(chat),
            (Messages{{"user", kQuestion}, {"user", std::string("a\0b", 3)}, {"user", ""}}));
  EXPECT_EQ(Say(chat, "user", std::string("\0", 1)).status, CRIA_OK) << cria_error_message();
}

TEST_F(MessagesTest, MessagesThatCannotBeAreRefused) {
  cria_chat* chat = reinterpret_cast<cria_chat*>(1);
  const auto expect_refused = [&](const cria_message* messages, size_t count,
                                  std::string_view words) {
    ExpectFailure(cria_chat_create_from_messages(model_.get(), messages, count, nullptr, &chat),
                  CRIA_ERROR_USAGE, words);
    EXPECT_EQ(chat, nullptr);
    size_t bytes = 7;
    ExpectFailure(cria_render_messages(model_.get(), messages, count, "", 0, 1, nullptr, 0, &bytes),
                  CRIA_ERROR_USAGE, words);
    EXPECT_EQ(bytes, 0u);
  };
  const cria_message good = {"user", "Hi", 4, 2};
  expect_refused(nullptr, 1, "messages is NULL");
  expect_refused(&good, SIZE_MAX, "messages has");
  const cria_message no_role = {nullptr, "Hi", CRIA_ZERO_TERMINATED, 2};
  expect_refused(&no_role, 1, "role is NULL");
  const cria_message empty_role = {"", "Hi", 0, 2};
  expect_refused(&empty_role, 1, "role of a message is empty");
  const cria_message no_content = {"user", nullptr, 4, 2};
  expect_refused(&no_content, 1, "content is NULL");
  const cria_message huge = {"user", "Hi", 4, SIZE_MAX - 1};
  expect_refused(&huge, 1, "content has");
  ExpectFailure(cria_chat_create_from_messages(nullptr, &good, 1, nullptr, &chat), CRIA_ERROR_USAGE,
                "model is NULL");
  ExpectFailure(cria_chat_create_from_messages(model_.get(), &good, 1, nullptr, nullptr),
                CRIA_ERROR_USAGE, "chat is NULL");
  // Bytes that are not UTF-8 are texts.
  const ChatPtr odd = MakeChatFrom({{"\xff", "\xc3"}, {"user", "a\x80z"}});
  EXPECT_EQ(AnswerLast(odd).status, CRIA_OK) << cria_error_message();
  EXPECT_EQ(MessagesOf(odd)[1].second, "a\x80z");

  cria_message message = good;
  ExpectFailure(cria_chat_get_message(odd.get(), 3, &message), CRIA_ERROR_OUT_OF_RANGE,
                "message 3");
  EXPECT_EQ(message.role, nullptr);
  ExpectFailure(cria_chat_get_message(odd.get(), 0, nullptr), CRIA_ERROR_USAGE, "message is NULL");
  ExpectFailure(cria_chat_get_message(nullptr, 0, &message), CRIA_ERROR_USAGE, "chat is NULL");
  EXPECT_EQ(cria_chat_num_messages(nullptr), 0u);
  ExpectFailure(cria_chat_drop_last_turn(nullptr), CRIA_ERROR_USAGE, "chat is NULL");
  ExpectFailure(cria_chat_regenerate(nullptr, nullptr, nullptr), CRIA_ERROR_USAGE, "chat is NULL");
  ExpectFailure(cria_chat_answer(nullptr, &good, nullptr, nullptr), CRIA_ERROR_USAGE,
                "chat is NULL");
  ExpectFailure(cria_chat_set_variables(nullptr, "", 0), CRIA_ERROR_USAGE, "chat is NULL");
}

class TemplateTest : public MessagesTest {
 protected:
  TemplateTest() {
    cria_model_options options = DemoOptions();
    options.path = kVariablesModel;
    with_variables_ = LoadModel(options);
  }

  std::string Render(const ModelPtr& model, const Messages& messages, bool add_generation_prompt,
                     std::string_view variables = "") {
    const std::vector<cria_message> c_messages = ToC(messages);
    const auto render = [&](char* text, size_t capacity, size_t* bytes) {
      return cria_render_messages(model.get(), c_messages.data(), c_messages.size(),
                                  variables.data(), variables.size(), add_generation_prompt, text,
                                  capacity, bytes);
    };
    size_t bytes = 0;
    if (render(nullptr, 0, &bytes) != CRIA_OK) return cria_error_message();
    std::string text(bytes + 2, '#');
    ExpectFailure(render(text.data(), bytes, &bytes), CRIA_ERROR_OUT_OF_RANGE, "buffer");
    EXPECT_EQ(text[0], '#');
    EXPECT_EQ(render(text.data(), bytes + 1, &bytes), CRIA_OK);
    EXPECT_EQ(text[bytes], '\0');
    EXPECT_EQ(text[bytes + 1], '#');
    text.resize(bytes);
    return text;
  }

  ModelPtr with_variables_;
};

TEST_F(TemplateTest, MessagesBecomeText) {
  EXPECT_EQ(Render(model_, {{"system", "Be kind."}, {"user", "Hi"}}, true),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(Render(model_, {{"user", "Hi"}}, false), "<|im_start|>user\nHi<|im_end|>\n");
  EXPECT_EQ(Render(model_, {}, false), "");
  ExpectFailure(cria_render_messages(model_.get(), nullptr, 0, "", 0, 1, nullptr, 0, nullptr),
                CRIA_ERROR_USAGE, "text_bytes is NULL");
  size_t bytes = 0;
  ExpectFailure(cria_render_messages(nullptr, nullptr, 0, "", 0, 1, nullptr, 0, &bytes),
                CRIA_ERROR_USAGE, "model is NULL");
  ExpectFailure(cria_render_messages(model_.get(), nullptr, 0, nullptr, 1, 1, nullptr, 0, &bytes),
                CRIA_ERROR_USAGE, "variables is NULL");
}

TEST_F(TemplateTest, VariablesReachTheTemplate) {
  EXPECT_EQ(Render(with_variables_, {}, false, R"({"note": "one\ntwo"})"),
            "<|im_start|>system\none\ntwo<|im_end|>\n");
  EXPECT_THAT(Render(with_variables_, {}, false, R"({"note": )"), HasSubstr("byte 9"));
  EXPECT_THAT(Render(with_variables_, {}, false, R"({"messages": []})"), HasSubstr("messages"));

  const ChatPtr chat = MakeChat(with_variables_);
  const Answer without = Send(chat, kQuestion);
  EXPECT_EQ(without.text, kAnswer);
  ASSERT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
  const char* const json = R"({"note": "You are a friendly assistant."})";
  ASSERT_EQ(cria_chat_set_variables(chat.get(), json, CRIA_ZERO_TERMINATED), CRIA_OK)
      << cria_error_message();
  const Answer with = Send(chat, kQuestion);
  EXPECT_GT(with.result.prompt_tokens + with.result.reused_tokens,
            without.result.prompt_tokens + without.result.reused_tokens + 5);
  // What is not JSON changes nothing.
  ExpectFailure(cria_chat_set_variables(chat.get(), "note", 4), CRIA_ERROR_USAGE, "JSON");
  ASSERT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
  EXPECT_EQ(Send(chat, kQuestion).result.context_used_tokens, with.result.context_used_tokens);
  ASSERT_EQ(cria_chat_set_variables(chat.get(), nullptr, 0), CRIA_OK);
  ASSERT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
  EXPECT_EQ(Send(chat, kQuestion).result.context_used_tokens, without.result.context_used_tokens);
}

TEST_F(TemplateTest, ARoleThatTheTemplateDoesNotKnowIsRefused) {
  EXPECT_THAT(Render(with_variables_, {{"cook", "Hi"}}, true), HasSubstr("unknown role cook"));
  const ChatPtr chat = MakeChat(with_variables_);
  Send(chat, kQuestion);
  ExpectFailure(Say(chat, "cook", "Hi").status, CRIA_ERROR_USAGE, "unknown role cook");
  EXPECT_EQ(cria_chat_num_messages(chat.get()), 2u);
  EXPECT_EQ(Send(chat, "Where do you run?").status, CRIA_OK) << cria_error_message();
}

}  // namespace
}  // namespace cria_test
