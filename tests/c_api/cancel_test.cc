// Stopping an answer from its callback and from another thread, and the error of a second caller.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "c_api/c_api_fixture.h"

namespace cria_test {
namespace {

// Goes on until it is stopped.
cria_generation_options Endless() {
  cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
  options.temperature = 4.0f;
  options.top_k = 0;
  options.top_p = 1.0f;
  options.min_p = 0.0f;
  options.when_full = CRIA_WHEN_FULL_SHIFT;
  return options;
}

class CancelTest : public testing::Test {
 protected:
  const ModelPtr model_ = LoadModel();
};

TEST_F(CancelTest, ACallbackStopsTheAnswerAtThatPiece) {
  const ChatPtr chat = MakeChat(model_);
  int pieces = 0;
  const Answer answer =
      Send(chat, "Hello! Who are you?", [&](std::string_view) { return ++pieces < 3; });
  EXPECT_EQ(answer.status, CRIA_OK) << cria_error_message();
  EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_CANCELLED);
  EXPECT_EQ(pieces, 3);
  EXPECT_GE(answer.result.generated_tokens, 3u);
  // The next is not stopped.
  const Answer next = Send(chat, "Hello! Who are you?");
  EXPECT_EQ(next.result.stop_reason, CRIA_STOP_END);
}

TEST_F(CancelTest, WhatWasSaidBeforeItWasStoppedIsKept) {
  const ChatPtr chat = MakeChat(model_);
  const Answer stopped = Send(chat, "Hello!", [](std::string_view) { return false; });
  const Answer next = Send(chat, "Where do you run?");
  EXPECT_GE(next.result.reused_tokens + 2, stopped.result.context_used_tokens);
}

TEST_F(CancelTest, AnotherThreadStopsAnAnswer) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> has_begun = false;
    std::thread stopper([&] {
      while (!has_begun) std::this_thread::yield();
      cria_model_cancel(model_.get());
    });
    const Answer answer = Complete(model_, "llama", Endless(), [&](std::string_view) {
      has_begun = true;
      return true;
    });
    stopper.join();
    EXPECT_EQ(answer.status, CRIA_OK) << cria_error_message();
    EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_CANCELLED);
  }
}

TEST_F(CancelTest, StoppedWhileAMessageIsReadTheChatIsAsItWas) {
  cria_model_options options = DemoOptions();
  options.chunk_tokens = 1;
  const ModelPtr model = LoadModel(options);
  const ChatPtr chat = MakeChat(model);
  EXPECT_EQ(Send(chat, "Hello! Who are you?").status, CRIA_OK);
  std::string message;
  for (int i = 0; i < 300; ++i) message += "a ";
  bool was_stopped = false;
  // It is not known when the thread runs: it may be too early or too late.
  for (int attempt = 0; attempt < 200 && !was_stopped; ++attempt) {
    std::atomic<bool> ends = false;
    std::thread stopper([&] {
      while (!ends) cria_model_cancel(model.get());
    });
    const Answer answer = Send(chat, message.c_str(), [](std::string_view) { return false; });
    ends = true;
    stopper.join();
    was_stopped = answer.status == CRIA_ERROR_CANCELLED;
    if (was_stopped) {
      EXPECT_STRNE(cria_error_message(), "");
    } else {
      ASSERT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
      Send(chat, "Hello! Who are you?");
    }
  }
  EXPECT_TRUE(was_stopped);
  EXPECT_EQ(Send(chat, "Where do you run?").status, CRIA_OK);
}

TEST_F(CancelTest, AChatsAnswerIsStoppedAndThoseAfterItUntilThatIsCleared) {
  const ChatPtr chat = MakeChat(model_, Endless());
  const ChatPtr other = MakeChat(model_);
  std::atomic<bool> has_begun = false;
  std::thread stopper([&] {
    while (!has_begun) std::this_thread::yield();
    cria_chat_cancel(chat.get());
  });
  const Answer answer = Send(chat, "Hello!", [&](std::string_view) {
    has_begun = true;
    return true;
  });
  stopper.join();
  EXPECT_EQ(answer.status, CRIA_OK) << cria_error_message();
  EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_CANCELLED);
  EXPECT_EQ(cria_chat_num_messages(chat.get()), 2u);
  // Other chats and completions of the model go on.
  EXPECT_EQ(Send(other, "Hello!").result.stop_reason, CRIA_STOP_END);
  EXPECT_EQ(Complete(model_, "Hello! I am").status, CRIA_OK);

  const cria_generation_options greedy = Greedy();
  ASSERT_EQ(cria_chat_set_options(chat.get(), &greedy), CRIA_OK);
  for (int i = 0; i < 2; ++i) {
    const Answer stopped = Send(chat, "Hello!");
    ExpectFailure(stopped.status, CRIA_ERROR_CANCELLED, "stopped");
    EXPECT_EQ(stopped.text, "");
    ExpectFailure(cria_chat_regenerate(chat.get(), nullptr, nullptr), CRIA_ERROR_CANCELLED,
                  "stopped");
    EXPECT_EQ(cria_chat_num_messages(chat.get()), 2u);
  }
  cria_chat_clear_cancel(chat.get());
  EXPECT_EQ(Send(chat, "Hello!").result.stop_reason, CRIA_STOP_END);
}

TEST_F(CancelTest, AChatThatIsCancelledBeforeItsCallReadsNothing) {
  const ChatPtr chat = MakeChat(model_);
  cria_chat_cancel(chat.get());
  ExpectFailure(Send(chat, "Hello!").status, CRIA_ERROR_CANCELLED, "stopped");
  float logits[1536];
  size_t count = 0;
  cria_chat_clear_cancel(chat.get());
  const Answer answer = Send(chat, "Hello!");
  EXPECT_EQ(answer.result.reused_tokens, 0u);
  cria_chat_cancel(chat.get());
  ExpectFailure(cria_chat_get_logits(chat.get(), nullptr, logits, 1536, &count),
                CRIA_ERROR_CANCELLED, "stopped");
  // What does not run the model is not stopped.
  EXPECT_EQ(cria_chat_drop_last_turn(chat.get()), CRIA_OK) << cria_error_message();
  EXPECT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
  // From a callback, too.
  cria_chat_clear_cancel(chat.get());
  int pieces = 0;
  const Answer stopped = Send(chat, "Hello!", [&](std::string_view) {
    ++pieces;
    cria_chat_cancel(chat.get());
    return true;
  });
  EXPECT_EQ(stopped.result.stop_reason, CRIA_STOP_CANCELLED);
  EXPECT_EQ(pieces, 1);
  cria_chat_cancel(nullptr);
  cria_chat_clear_cancel(nullptr);
}

TEST_F(CancelTest, NothingUnderWayIsNothingToStop) {
  cria_model_cancel(model_.get());
  EXPECT_EQ(Complete(model_, "Hello! I am").result.stop_reason,
            Complete(model_, "Hello! I am").result.stop_reason);
  EXPECT_NE(Complete(model_, "Hello! I am").result.stop_reason, CRIA_STOP_CANCELLED);
}

TEST_F(CancelTest, ACallbackMayAskButNotGenerate) {
  const ChatPtr chat = MakeChat(model_);
  const ChatPtr other = MakeChat(model_);
  bool was_called = false;
  Send(chat, "Hello!", [&](std::string_view) {
    was_called = true;
    ExpectFailure(Send(other, "Hello!").status, CRIA_ERROR_USAGE, "in use");
    ExpectFailure(Complete(model_, "Hello!").status, CRIA_ERROR_USAGE, "in use");
    ExpectFailure(cria_chat_reset(chat.get()), CRIA_ERROR_USAGE, "in use");
    ExpectFailure(cria_chat_set_options(chat.get(), nullptr), CRIA_ERROR_USAGE, "in use");
    ExpectFailure(cria_chat_set_variables(chat.get(), "", 0), CRIA_ERROR_USAGE, "in use");
    ExpectFailure(cria_chat_drop_last_turn(chat.get()), CRIA_ERROR_USAGE, "in use");
    ExpectFailure(cria_chat_regenerate(other.get(), nullptr, nullptr), CRIA_ERROR_USAGE, "in use");
    ExpectFailure(cria_chat_answer(other.get(), nullptr, nullptr, nullptr), CRIA_ERROR_USAGE,
                  "in use");
    float logit = 0.0f;
    size_t num_logits = 0;
    ExpectFailure(cria_get_logits(model_.get(), "a", 1, 0, nullptr, &logit, 1536, &num_logits),
                  CRIA_ERROR_USAGE, "in use");
    EXPECT_EQ(cria_render_messages(model_.get(), nullptr, 0, "", 0, 1, nullptr, 0, &num_logits),
              CRIA_OK);
    size_t count = 0;
    EXPECT_EQ(cria_tokenize(model_.get(), "Hello!", 0, 0, nullptr, 0, &count), CRIA_OK);
    cria_model_info info = CRIA_MODEL_INFO_INIT;
    EXPECT_EQ(cria_model_get_info(model_.get(), &info), CRIA_OK);
    return false;
  });
  EXPECT_TRUE(was_called);
  EXPECT_EQ(Send(other, "Hello!").status, CRIA_OK);
}

TEST_F(CancelTest, EachThreadHasItsOwnMessage) {
  ExpectFailure(cria_model_get_info(nullptr, nullptr), CRIA_ERROR_USAGE, "model is NULL");
  std::thread other([] {
    EXPECT_STREQ(cria_error_message(), "");
    ExpectFailure(cria_plan_check(nullptr), CRIA_ERROR_USAGE, "plan is NULL");
  });
  other.join();
  EXPECT_STREQ(cria_error_message(), "model is NULL");
}

}  // namespace
}  // namespace cria_test
