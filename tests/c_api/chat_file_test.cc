// Chats that are kept in files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "c_api/c_api_fixture.h"
#include "c_api/fixture_models.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class ChatFileTest : public testing::Test {
 protected:
  void Save(const ChatPtr& chat) const {
    ASSERT_EQ(cria_chat_save(chat.get(), path_.c_str()), CRIA_OK) << cria_error_message();
  }

  ChatPtr Load(const ModelPtr& model, bool is_context_restored) const {
    const cria_generation_options options = Greedy();
    cria_chat* chat = nullptr;
    int is_restored = 5;
    EXPECT_EQ(cria_chat_load(model.get(), path_.c_str(), &options, &chat, &is_restored), CRIA_OK)
        << cria_error_message();
    EXPECT_EQ(is_restored, is_context_restored ? 1 : 0);
    return ChatPtr(chat);
  }

  void ExpectRefused(const ModelPtr& model, cria_status status, std::string_view words) const {
    cria_chat* chat = reinterpret_cast<cria_chat*>(1);
    int is_restored = 5;
    ExpectFailure(cria_chat_load(model.get(), path_.c_str(), nullptr, &chat, &is_restored), status,
                  words);
    EXPECT_EQ(chat, nullptr);
    EXPECT_EQ(is_restored, 0);
  }

  cria::support::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "chat.session";
};

TEST_F(ChatFileTest, GoesOnInAnotherModelWithoutReadingAgain) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model, Greedy(), "You are a friendly assistant.");
  Send(chat, "My name is Ann.");
  Save(chat);

  const ModelPtr later = LoadModel();
  const ChatPtr loaded = Load(later, true);
  EXPECT_EQ(cria_chat_num_messages(loaded.get()), 3u);
  EXPECT_GT(cria_chat_context_used(loaded.get()), 20u);
  const Answer expected = Send(chat, "What is my name?");
  const Answer answer = Send(loaded, "What is my name?");
  EXPECT_EQ(answer.text, expected.text);
  EXPECT_THAT(answer.text, HasSubstr("Ann"));
  EXPECT_EQ(answer.result.reused_tokens, expected.result.reused_tokens);
  EXPECT_EQ(answer.result.prompt_tokens, expected.result.prompt_tokens);
  // The system prompt is still one.
  EXPECT_EQ(cria_chat_reset(loaded.get()), CRIA_OK);
  EXPECT_EQ(cria_chat_num_messages(loaded.get()), 1u);
}

TEST_F(ChatFileTest, HasNothingOfAnotherChatInTheSameContext) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  Send(chat, "Hello!");
  const ChatPtr other = MakeChat(model);
  Send(other, "My name is Ann. What is my name? Please tell me my name, I have forgotten it.");
  Save(chat);
  const std::string shared_beginning = cria::support::ReadFile(path_);
  EXPECT_THAT(shared_beginning, Not(HasSubstr("Ann")));

  // As much is read as without the other chat, but for what the chats have in common.
  const ModelPtr later = LoadModel();
  const ChatPtr loaded = Load(later, true);
  const Answer answer = Send(loaded, kQuestion);
  EXPECT_LT(answer.result.reused_tokens, 10u);
  EXPECT_EQ(answer.text, Send(chat, kQuestion).text);
  Save(chat);
  EXPECT_GT(cria::support::ReadFile(path_).size(), 2 * shared_beginning.size());
}

TEST_F(ChatFileTest, HasNothingOfADroppedTurn) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  Send(chat, "Hello!");
  Save(chat);
  const auto bytes = std::filesystem::file_size(path_);
  Send(chat, "My name is Ann.");
  ASSERT_EQ(cria_chat_drop_last_turn(chat.get()), CRIA_OK);
  Save(chat);
  // It may have the token or two that end the first answer.
  EXPECT_LT(static_cast<double>(std::filesystem::file_size(path_)),
            1.1 * static_cast<double>(bytes));
}

TEST_F(ChatFileTest, MessagesAreReadAgainIfTheCacheCannotBeUsed) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  Send(chat, "My name is Ann.");
  Save(chat);
  cria_model_options options = DemoOptions();
  options.kv_type = CRIA_KV_F16;
  const ModelPtr other = LoadModel(options);
  const ChatPtr loaded = Load(other, false);
  EXPECT_EQ(cria_chat_context_used(loaded.get()), 0u);
  const Answer answer = Send(loaded, "What is my name?");
  EXPECT_THAT(answer.text, HasSubstr("Ann"));
  EXPECT_EQ(answer.result.reused_tokens, 0u);
  // The flag is only for who wants to know.
  cria_chat* again = nullptr;
  EXPECT_EQ(cria_chat_load(other.get(), path_.c_str(), nullptr, &again, nullptr), CRIA_OK);
  cria_chat_free(again);
}

TEST_F(ChatFileTest, KeepsVariables) {
  cria_model_options options = DemoOptions();
  options.path = kVariablesModel;
  const ModelPtr model = LoadModel(options);
  const ChatPtr chat = MakeChat(model);
  constexpr const char* kVariables = R"({"name": "Ann"})";
  ASSERT_EQ(cria_chat_set_variables(chat.get(), kVariables, CRIA_ZERO_TERMINATED), CRIA_OK);
  Send(chat, "Hello!");
  Save(chat);
  EXPECT_THAT(cria::support::ReadFile(path_), HasSubstr(kVariables));
  const ChatPtr loaded = Load(model, true);
  EXPECT_GT(Send(loaded, "Hello!").result.reused_tokens, 3u);
}

TEST_F(ChatFileTest, WhatIsWrongIsRefused) {
  const ModelPtr model = LoadModel();
  ExpectRefused(model, CRIA_ERROR_NOT_FOUND, path_);
  const ChatPtr chat = MakeChat(model);
  Send(chat, "Hello!");
  Save(chat);
  cria_model_options options = DemoOptions();
  options.path = kVariablesModel;
  ExpectRefused(LoadModel(options), CRIA_ERROR_UNSUPPORTED, "another model");
  std::string bytes = cria::support::ReadFile(path_);
  bytes[bytes.size() / 2] ^= 1;
  cria::support::WriteFile(path_, bytes);
  ExpectRefused(model, CRIA_ERROR_INVALID_FILE, "damaged");
  // The model can still be used.
  EXPECT_EQ(Send(chat, kQuestion).status, CRIA_OK);

  cria_chat* none = nullptr;
  ExpectFailure(cria_chat_save(nullptr, path_.c_str()), CRIA_ERROR_USAGE, "chat is NULL");
  ExpectFailure(cria_chat_save(chat.get(), nullptr), CRIA_ERROR_USAGE, "path is NULL");
  ExpectFailure(cria_chat_load(nullptr, path_.c_str(), nullptr, &none, nullptr), CRIA_ERROR_USAGE,
                "model is NULL");
  ExpectFailure(cria_chat_load(model.get(), nullptr, nullptr, &none, nullptr), CRIA_ERROR_USAGE,
                "path is NULL");
  ExpectFailure(cria_chat_load(model.get(), path_.c_str(), nullptr, nullptr, nullptr),
                CRIA_ERROR_USAGE, "chat is NULL");
  ExpectFailure(cria_chat_save(chat.get(), (folder_ / "missing/file").c_str()), CRIA_ERROR_IO,
                "missing");
}

TEST_F(ChatFileTest, NotDuringAnAnswer) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  Send(chat, "Hello!");
  Save(chat);
  Send(chat, kQuestion, [&](std::string_view) {
    ExpectFailure(cria_chat_save(chat.get(), path_.c_str()), CRIA_ERROR_USAGE, "");
    ExpectRefused(model, CRIA_ERROR_USAGE, "");
    return true;
  });
}

}  // namespace
}  // namespace cria_test
