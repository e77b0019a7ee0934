// Where the heap ends, a call fails: no exception leaves it, and what it was called on still works.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "c_api/c_api_fixture.h"
#include "c_api/failing_new.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"

namespace cria_test {
namespace {

using testing::HasSubstr;

class OutOfMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (cria::support::kHeapIsSanitized)
      GTEST_SKIP() << "the sanitizer's own operator new is in use, or its report of lost memory";
  }

  // Lets every request for memory of `call` fail once, or one of `step` of them. The last time,
  // none does. Returns how often it failed.
  template <typename Call>
  int FailEach(const Call& call, uint64_t step = 1) {
    int failures = 0;
    for (uint64_t request = 1; request < 1'000'000; request += step) {
      failing_request = request;
      const cria_status status = call();
      const bool has_failed = failing_request == 0;
      failing_request = 0;
      if (!has_failed) {
        EXPECT_EQ(status, CRIA_OK) << cria_error_message();
        return failures;
      }
      // Some can do without, as std::stable_sort.
      if (status == CRIA_OK) continue;
      ++failures;
      ExpectFailure(status, CRIA_ERROR_OUT_OF_MEMORY, "memory");
    }
    ADD_FAILURE() << "never succeeded";
    return failures;
  }
};

TEST_F(OutOfMemoryTest, Planning) {
  const cria_model_options options = DemoOptions();
  EXPECT_GT(FailEach([&] {
              cria_plan* plan = nullptr;
              const cria_status status = cria_plan_create(&options, &plan);
              EXPECT_EQ(plan != nullptr, status == CRIA_OK);
              cria_plan_free(plan);
              return status;
            }),
            10);
}

TEST_F(OutOfMemoryTest, Loading) {
  const cria_model_options options = DemoOptions();
  EXPECT_GT(FailEach(
                [&] {
                  cria_model* model = nullptr;
                  const cria_status status = cria_model_load(&options, &model);
                  EXPECT_EQ(model != nullptr, status == CRIA_OK);
                  cria_model_free(model);
                  return status;
                },
                /*step=*/7),
            5);
}

TEST_F(OutOfMemoryTest, Tokens) {
  const ModelPtr model = LoadModel();
  int32_t tokens[64];
  size_t count = 0;
  EXPECT_GT(FailEach([&] {
              return cria_tokenize(model.get(), "a baby llama, and another one", 1, 0, tokens, 64,
                                   &count);
            }),
            1);
  char text[256];
  size_t bytes = 0;
  FailEach([&] { return cria_detokenize(model.get(), tokens, count, text, sizeof text, &bytes); });
  EXPECT_STREQ(text, "a baby llama, and another one");
}

TEST_F(OutOfMemoryTest, Completing) {
  const ModelPtr model = LoadModel();
  cria_generation_options options = Greedy();
  options.max_tokens = 5;
  const std::string expected = Complete(model, "Hello! I am", options).text;
  EXPECT_GT(FailEach([&] {
              return cria_complete(model.get(), "Hello! I am", &options, nullptr, nullptr, nullptr);
            }),
            3);
  EXPECT_EQ(Complete(model, "Hello! I am", options).text, expected);
}

TEST_F(OutOfMemoryTest, KeepingChats) {
  const cria::support::TemporaryDirectory folder;
  const std::string path = folder / "session";
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  Send(chat, "Hello!");
  const std::string expected = Send(chat, kQuestion).text;
  ASSERT_EQ(cria_chat_drop_last_turn(chat.get()), CRIA_OK);
  EXPECT_GT(FailEach([&] { return cria_chat_save(chat.get(), path.c_str()); }), 10);
  EXPECT_GT(FailEach([&] {
              cria_chat* loaded = nullptr;
              const cria_status status =
                  cria_chat_load(model.get(), path.c_str(), nullptr, &loaded, nullptr);
              EXPECT_EQ(loaded != nullptr, status == CRIA_OK);
              cria_chat_free(loaded);
              // A context that was read in part is not used.
              const uint64_t left = std::exchange(failing_request, 0);
              EXPECT_EQ(Send(chat, kQuestion).text, expected);
              EXPECT_EQ(cria_chat_drop_last_turn(chat.get()), CRIA_OK);
              failing_request = left;
              return status;
            }),
            5);
}

TEST_F(OutOfMemoryTest, Chatting) {
  const ModelPtr model = LoadModel();
  EXPECT_GT(FailEach([&] {
              cria_chat* chat = nullptr;
              const cria_status status =
                  cria_chat_create(model.get(), "You are a friendly assistant.", nullptr, &chat);
              EXPECT_EQ(chat != nullptr, status == CRIA_OK);
              cria_chat_free(chat);
              return status;
            }),
            1);
  const ChatPtr chat = MakeChat(model);
  EXPECT_GT(FailEach([&] {
              cria_chat_reset(chat.get());
              return cria_chat_send(chat.get(), "Hello!", nullptr, nullptr, nullptr);
            }),
            3);
  EXPECT_THAT(Send(chat, "Hello! Who are you?").text, HasSubstr("Cria"));
}

TEST_F(OutOfMemoryTest, ChattingFromMessages) {
  const ModelPtr model = LoadModel();
  const cria_text stop = {"never said", CRIA_ZERO_TERMINATED};
  const cria_logit_bias bias = {3, 0.5f};
  cria_generation_options options = Greedy();
  options.stop_strings = &stop;
  options.num_stop_strings = 1;
  options.logit_bias = &bias;
  options.num_logit_bias = 1;
  options.max_tokens = 3;
  const cria_message messages[] = {{"system", "You are a friendly assistant.", 6, 29},
                                   {"user", kQuestion, 4, CRIA_ZERO_TERMINATED}};
  const char* const variables = R"({"tools": [{"name": "a name that is not short"}]})";
  EXPECT_GT(FailEach([&] {
              cria_chat* chat = nullptr;
              cria_status status =
                  cria_chat_create_from_messages(model.get(), messages, 2, &options, &chat);
              EXPECT_EQ(chat != nullptr, status == CRIA_OK);
              const ChatPtr freeing(chat);
              if (status == CRIA_OK) {
                status = cria_chat_set_variables(chat, variables, CRIA_ZERO_TERMINATED);
              }
              if (status == CRIA_OK) status = cria_chat_answer(chat, nullptr, nullptr, nullptr);
              if (status == CRIA_OK) status = cria_chat_regenerate(chat, nullptr, nullptr);
              return status;
            }),
            10);
  char text[512];
  size_t bytes = 0;
  EXPECT_GT(FailEach([&] {
              return cria_render_messages(model.get(), messages, 2, variables, CRIA_ZERO_TERMINATED,
                                          1, text, sizeof text, &bytes);
            }),
            3);
  EXPECT_THAT(text, HasSubstr(kQuestion));
}

TEST_F(OutOfMemoryTest, AnExceptionOfACallbackStaysInside) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  const auto expect_inside = [&](const PieceCallback& listener, const char* message) {
    ExpectFailure(Send(chat, "Hello!", listener).status, CRIA_ERROR_INTERNAL, message);
    ExpectFailure(Send(chat, "Hello!").status, CRIA_ERROR_USAGE, "reset the chat");
    ASSERT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
  };
  expect_inside(
      [](std::string_view) -> bool { throw std::runtime_error("a callback that must not throw"); },
      "a callback that must not throw");
  expect_inside([](std::string_view) -> bool { throw 1; }, "not a std::exception");
  EXPECT_THAT(Send(chat, "Hello! Who are you?").text, HasSubstr("Cria"));
}

}  // namespace
}  // namespace cria_test
