// --session of `cria chat` and `cria run`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunOptions;
using support::RunProgram;
using support::RunResult;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class SessionOption : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    models_ = new support::TemporaryDirectory;
    support::CheckpointSpec spec = support::SpecGqa();
    spec.config.max_position_embeddings = 1024;
    support::WriteHuggingFaceDirectory(support::MakeModel(spec), models_->path() / "checkpoint",
                                       {});
    const RunResult converted =
        RunProgram({support::kModelConverter, "--fast", models_->path() / "checkpoint", "-o",
                    ModelPath(), "--weights", "int8"});
    ASSERT_EQ(converted.exit_code, 0) << converted.error;
  }
  static void TearDownTestSuite() { delete models_; }

  static std::string ModelPath() { return models_->path() / "model.cria"; }

  RunResult Cria(const char* command, const std::vector<std::string>& more,
                 const std::string& input = "") const {
    std::vector<std::string> arguments = {support::kCriaProgram, command, "-m",     ModelPath(),
                                          "--session",           path_,   "--temp", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments, {.input = input});
  }
  RunResult Chat(const std::string& input, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--lines", "-n", "8", "-c", "1024"});
    return Cria("chat", more, input);
  }
  // Without a prompt if it is empty.
  RunResult Run(const std::string& prompt, std::vector<std::string> more = {"-n", "8"}) const {
    more.push_back("--ignore-eos");
    if (!prompt.empty()) more.insert(more.end(), {"-p", prompt});
    return Cria("run", more);
  }

  // The number of tokens of the prompt that were computed, from the line of figures.
  static std::string PromptTokens(const RunResult& result) {
    const size_t begin = result.error.rfind("prompt ");
    return begin == std::string::npos
               ? result.error
               : result.error.substr(begin, result.error.find(',', begin) - begin);
  }

  static support::TemporaryDirectory* models_;
  support::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "kept.session";
};

support::TemporaryDirectory* SessionOption::models_ = nullptr;

TEST_F(SessionOption, ChatGoesOnWhereItEnded) {
  const RunResult whole = Chat("first\nsecond\nthird\n", {"-sys", "Be brief."});
  ASSERT_EQ(whole.exit_code, 0) << whole.error;
  std::filesystem::remove(path_);

  const RunResult begun = Chat("first\nsecond\n", {"-sys", "Be brief."});
  ASSERT_EQ(begun.exit_code, 0) << begun.error;
  EXPECT_THAT(whole.output, StartsWith(begun.output));
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
  // The file has the system prompt.
  const RunResult ended = Chat("third\n");
  ASSERT_EQ(ended.exit_code, 0) << ended.error;
  EXPECT_EQ(begun.output + ended.output, whole.output);
  EXPECT_THAT(ended.error, HasSubstr("kept.session: 5 messages, "));

  const RunResult other_prompt = Chat("third\n", {"-sys", "Be long."});
  EXPECT_EQ(other_prompt.exit_code, 2);
  EXPECT_THAT(other_prompt.error, HasSubstr("another system prompt"));
  EXPECT_EQ(Chat("", {"-sys", "Be brief."}).exit_code, 0);
}

TEST_F(SessionOption, KeepsTheFieldsOfMessages) {
  const std::string messages = folder_ / "messages.json";
  support::WriteFile(messages, R"([{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "reasoning_content": "so it is"},
      {"role": "user", "content": "c"}])");
  const RunResult begun = Cria("chat", {"--messages", messages, "-n", "8"});
  ASSERT_EQ(begun.exit_code, 0) << begun.error;
  const std::string kept = R"({"reasoning_content":"so it is"})";
  EXPECT_TRUE(support::ReadFile(path_).contains(kept));
  const RunResult ended = Chat("second\n");
  ASSERT_EQ(ended.exit_code, 0) << ended.error;
  EXPECT_TRUE(support::ReadFile(path_).contains(kept));
}

TEST_F(SessionOption, ChatReadsAgainWhatCannotBeUsedAndSaysSo) {
  ASSERT_EQ(Chat("first\n", {"--kv", "f16"}).exit_code, 0);
  const RunResult again = Chat("second\n", {"--kv", "f32"});
  EXPECT_EQ(again.exit_code, 0) << again.error;
  EXPECT_THAT(again.error, HasSubstr("2 messages, which are read again with the next one, because "
                                     "its KV cache has the type f16"));
  EXPECT_THAT(Chat("").error, HasSubstr("its KV cache has the type f32"));
}

TEST_F(SessionOption, WhatWasForgottenInASmallContextDoesNotFillALargerOne) {
  const auto chat = [&](const char* context, size_t num_messages) {
    std::string input;
    for (size_t i = 0; i < num_messages; ++i) input += "one more message\n";
    return Cria("chat", {"--lines", "-n", "8", "-c", context}, input);
  };
  const RunResult small = chat("128", 10);
  ASSERT_EQ(small.exit_code, 0) << small.error;
  EXPECT_THAT(small.error, HasSubstr("the context of 128 tokens is full: the oldest turns"));
  const RunResult larger = chat("1024", 1);
  EXPECT_EQ(larger.exit_code, 0) << larger.error;
  EXPECT_THAT(larger.error, Not(HasSubstr("is full")));
  // When the larger one is full, that is said, too.
  EXPECT_THAT(chat("256", 10).error, HasSubstr("the context of 256 tokens is full: the oldest"));
}

TEST_F(SessionOption, ADamagedFileIsRefusedAndStays) {
  ASSERT_EQ(Chat("first\n").exit_code, 0);
  std::string bytes = support::ReadFile(path_);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  support::WriteFile(path_, bytes);
  for (const RunResult& refused : {Chat("second\n"), Run("abc")}) {
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.output, IsEmpty());
    EXPECT_THAT(refused.error, HasSubstr("kept.session: "));
  }
  EXPECT_EQ(support::ReadFile(path_), bytes);
}

TEST_F(SessionOption, AFileThatCannotBeWrittenIsAnErrorAtOnce) {
  const RunResult result = RunProgram(
      {support::kCriaProgram, "chat", "-m", ModelPath(), "--session", folder_ / "no/file"},
      {.input = "first\n"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, IsEmpty());
}

TEST_F(SessionOption, ChatOnAFullDiskGoesOnAndEndsWithTheError) {
  const RunResult result =
      RunProgram({support::kCriaProgram, "chat", "-m", ModelPath(), "--session", path_, "--lines",
                  "-n", "8", "--temp", "0", "-c", "1024"},
                 {.input = "first\nsecond\n", .file_size_limit_bytes = 1000});
  EXPECT_EQ(result.exit_code, 1);
  const size_t first_notice = result.error.find("(not saved: ");
  ASSERT_NE(first_notice, std::string::npos) << result.error;
  EXPECT_NE(result.error.find("(not saved: ", first_notice + 1), std::string::npos);
  EXPECT_THAT(Chat("").error, HasSubstr("kept.session: 0 messages"));
}

TEST_F(SessionOption, RunReadsTheKeptBeginningOnce) {
  const std::string prompt(300, 'a');
  const RunResult first = Run(prompt);
  ASSERT_EQ(first.exit_code, 0) << first.error;
  const RunResult again = Run(prompt);
  EXPECT_EQ(again.output, first.output);
  EXPECT_THAT(again.error, Not(HasSubstr("read again")));
  EXPECT_NE(PromptTokens(again), PromptTokens(first));
  // Another ending.
  const RunResult other = Run(prompt + "bcd");
  std::filesystem::remove(path_);
  EXPECT_EQ(other.output, Run(prompt + "bcd").output);
}

TEST_F(SessionOption, RunContinuesTheKeptText) {
  const RunResult whole = Run("abc", {"-n", "16"});
  ASSERT_EQ(whole.exit_code, 0) << whole.error;
  std::filesystem::remove(path_);
  ASSERT_EQ(Run("abc").exit_code, 0);
  const RunResult continued = Run("");
  EXPECT_EQ(continued.exit_code, 0) << continued.error;
  EXPECT_EQ(continued.output, whole.output);
  // Read again, it is the same text.
  ASSERT_EQ(Run("abc").exit_code, 0);
  const RunResult read_again = Run("", {"-n", "8", "--kv", "f16"});
  EXPECT_EQ(read_again.output, whole.output);
  EXPECT_THAT(read_again.error, HasSubstr("kept.session: its text is read again, because its KV "
                                          "cache has the type int8"));
}

TEST_F(SessionOption, ATextIsNoConversation) {
  ASSERT_EQ(Run("abc").exit_code, 0);
  EXPECT_THAT(Chat("first\n").error, HasSubstr("is not that of a conversation"));
  std::filesystem::remove(path_);
  ASSERT_EQ(Chat("first\n").exit_code, 0);
  EXPECT_THAT(Run("abc").error, HasSubstr("is not the session of a text"));
}

TEST_F(SessionOption, AnAnswerThatCtrlCStopsIsKept) {
  const RunResult stopped = RunProgram(
      {support::kCriaProgram, "run", "-m", ModelPath(), "--session", path_, "-p", "abc",
       "--ignore-eos", "--temp", "0", "-c", "1024", "--context-full", "shift"},
      // The text has no end.
      {.interrupt_when = [](const RunResult& so_far) { return so_far.output.size() > 9; }});
  ASSERT_EQ(stopped.exit_code, 130) << stopped.error;
  EXPECT_THAT(stopped.error, HasSubstr("cria: the answer was stopped\n"));
  EXPECT_THAT(Run("").error, HasSubstr("tok/s"));
}

}  // namespace
}  // namespace cria
