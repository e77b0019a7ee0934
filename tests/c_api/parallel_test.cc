// Several calls at once for one model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "c_api/c_api_fixture.h"
#include "support/sleeping_thread.h"

namespace cria_test {
namespace {

cria_model_options ParallelOptions(uint32_t num_sequences) {
  cria_model_options options = DemoOptions();
  options.num_sequences = num_sequences;
  options.context_tokens = 512;
  return options;
}

constexpr const char* kQuestions[] = {kQuestion, "Where do you run?", "Hello!",
                                      "What is the capital of France?"};
constexpr size_t kNumQuestions = std::size(kQuestions);

std::vector<std::string> AnswersAlone() {
  const ModelPtr model = LoadModel();
  std::vector<std::string> answers;
  for (const char* question : kQuestions) answers.push_back(Send(MakeChat(model), question).text);
  return answers;
}

class ParallelTest : public testing::TestWithParam<uint32_t> {};

// There are more chats than sequences.
TEST_P(ParallelTest, ChatsOfSeveralThreadsAnswerAsAlone) {
  const std::vector<std::string> alone = AnswersAlone();
  const ModelPtr model = LoadModel(ParallelOptions(GetParam()));
  std::vector<std::thread> threads;
  threads.reserve(2 * kNumQuestions);
  for (size_t i = 0; i < 2 * kNumQuestions; ++i) {
    threads.emplace_back([&, i] {
      const ChatPtr chat = MakeChat(model);
      for (size_t turn = 0; turn < 3; ++turn) {
        const size_t question = (i + turn) % kNumQuestions;
        const Answer answer = Send(chat, kQuestions[question]);
        EXPECT_EQ(answer.status, CRIA_OK) << cria_error_message();
        EXPECT_EQ(answer.text, alone[question]);
        EXPECT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(NumSequences, ParallelTest, testing::Values(0, 1, 2, 4));

TEST(Parallel, AChatIsRefusedWhileItAnswers) {
  const ModelPtr model = LoadModel(ParallelOptions(2));
  const ChatPtr chat = MakeChat(model);
  std::atomic<bool> has_begun = false;
  std::atomic<bool> may_end = false;
  std::thread first([&] {
    Send(chat, kQuestion, [&](std::string_view) {
      has_begun = true;
      while (!may_end) std::this_thread::yield();
      return true;
    });
  });
  while (!has_begun) std::this_thread::yield();
  ExpectFailure(Send(chat, "Hello!").status, CRIA_ERROR_USAGE, "the chat is in use");
  ExpectFailure(cria_chat_reset(chat.get()), CRIA_ERROR_USAGE, "the chat is in use");
  // Another one is not, although the callback of the first one takes long.
  EXPECT_EQ(Send(MakeChat(model), kQuestion).text, kAnswer);
  EXPECT_EQ(Complete(model, "Hello!").status, CRIA_OK);
  may_end = true;
  first.join();
}

TEST(Parallel, AModelsCancelStopsAllChatsAndThoseThatWait) {
  const ModelPtr model = LoadModel(ParallelOptions(1));
  cria_generation_options endless = Greedy();
  endless.max_tokens = 0;
  std::array<std::atomic<pid_t>, 3> ids = {};
  std::vector<std::thread> threads;
  threads.reserve(ids.size());
  std::atomic<bool> is_answering = false;
  std::atomic<bool> may_go_on = false;
  for (std::atomic<pid_t>& id : ids) {
    threads.emplace_back([&] {
      const ChatPtr chat = MakeChat(model, endless);
      id = cria::support::ThisThread();
      const Answer answer = Send(chat, kQuestion, [&](std::string_view) {
        is_answering = true;
        while (!may_go_on) std::this_thread::yield();
        return true;
      });
      // One was answering, the others were waiting.
      EXPECT_TRUE(answer.status == CRIA_ERROR_CANCELLED ||
                  answer.result.stop_reason == CRIA_STOP_CANCELLED);
    });
  }
  const auto waits = [](pid_t id) { return id != 0 && cria::support::IsAsleep(id); };
  cria::support::Await([&] { return is_answering && std::ranges::count_if(ids, waits) == 2; });
  cria_model_cancel(model.get());
  may_go_on = true;
  for (std::thread& thread : threads) thread.join();
}

// The system prompt takes more than a page of the context.
TEST(Parallel, ACommonSystemPromptIsReadOnce) {
  const ModelPtr model = LoadModel(ParallelOptions(4));
  std::string system_prompt;
  for (int i = 0; i < 12; ++i) system_prompt += "You are a friendly llama. ";
  const ChatPtr first = MakeChat(model, Greedy(), system_prompt.c_str());
  const ChatPtr second = MakeChat(model, Greedy(), system_prompt.c_str());
  const Answer one = Send(first, "Hello!");
  EXPECT_EQ(one.result.reused_tokens, 0u);
  EXPECT_GT(one.result.prompt_tokens, 64u);
  const Answer two = Send(second, "Where do you run?");
  EXPECT_GT(two.result.reused_tokens, 60u);
  EXPECT_LT(two.result.prompt_tokens, 30u);
}

TEST(Parallel, TooManySequencesAreRefused) {
  cria_model_options options = ParallelOptions(9);
  cria_model* model = nullptr;
  ExpectFailure(cria_model_load(&options, &model), CRIA_ERROR_USAGE, "has 8 pages");
  options.num_sequences = 1000;
  ExpectFailure(cria_model_load(&options, &model), CRIA_ERROR_USAGE, "outside 1 to 256");
  options.num_sequences = 1;
  options.reserved = 1;
  ExpectFailure(cria_model_load(&options, &model), CRIA_ERROR_UNSUPPORTED, "reserved");
}

}  // namespace
}  // namespace cria_test
