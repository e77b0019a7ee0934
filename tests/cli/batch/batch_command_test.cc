// A file of prompts, and what becomes of it when it is stopped or wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/demo_model.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using nlohmann::json;
using support::RunResult;
using testing::HasSubstr;

class BatchCommand : public testing::Test {
 protected:
  RunResult Batch(std::vector<std::string> more = {}, const support::RunOptions& options = {}) {
    std::vector<std::string> arguments = {support::kCriaProgram,
                                          "batch",
                                          "-m",
                                          tests::DemoModel(),
                                          "-f",
                                          Prompts(),
                                          "-o",
                                          Answers(),
                                          "-n",
                                          "24",
                                          "-c",
                                          "512",
                                          "--temp",
                                          "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return support::RunProgram(arguments, options);
  }
  std::vector<json> Read() const {
    std::vector<json> answers;
    std::string text = support::ReadFile(Answers());
    for (size_t end = 0; (end = text.find('\n')) != text.npos; text.erase(0, end + 1)) {
      answers.push_back(json::parse(text.substr(0, end)));
    }
    EXPECT_EQ(text, "") << "the last line is not complete";
    return answers;
  }
  // Questions that differ, so that answers that changed places would be noticed.
  std::string Questions(int count) const {
    const char* const names[] = {"Ann", "Bob", "Eve", "Max", "Tom"};
    std::string lines;
    for (int i = 0; i < count; ++i) {
      const json line = {
          {"messages", {{{"role", "user"}, {"content", std::string("I am ") + names[i % 5]}}}},
          {"id", i}};
      lines += line.dump() + "\n";
    }
    return lines;
  }
  std::string Prompts() const { return folder_ / "prompts.jsonl"; }
  std::string Answers() const { return folder_ / "answers.jsonl"; }

  support::TemporaryDirectory folder_;
};

TEST_F(BatchCommand, SeveralAtOnceAnswerAsOneAfterAnother) {
  support::WriteFile(Prompts(), Questions(20));
  ASSERT_EQ(Batch({"-np", "1"}).exit_code, 0);
  const std::string alone = support::ReadFile(Answers());
  std::filesystem::remove(Answers());
  const RunResult together = Batch({"-np", "4"});
  ASSERT_EQ(together.exit_code, 0) << together.error;
  EXPECT_THAT(together.error, HasSubstr("20 answers, 0 of them errors"));
  const std::vector<json> answers = Read();
  ASSERT_EQ(answers.size(), 20u);
  std::filesystem::rename(Answers(), folder_ / "together");
  support::WriteFile(Answers(), alone);
  const std::vector<json> expected = Read();
  ASSERT_EQ(expected.size(), 20u);
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i]["index"], i);
    EXPECT_EQ(answers[i]["id"], i);
    EXPECT_EQ(answers[i]["content"], expected[i]["content"]) << i;
    EXPECT_FALSE(answers[i]["content"].get<std::string>().empty());
  }
  EXPECT_THAT(answers[1]["content"].get<std::string>(), HasSubstr("Bob"));
}

TEST_F(BatchCommand, EachLineHasItsOwnOptions) {
  support::WriteFile(
      Prompts(),
      R"({"prompt": "Hello", "max_tokens": 3}
{"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 2, "temperature": 1, "seed": 7}

{"prompt": "Hello", "stop": ["e", "a"], "max_tokens": 50}
{"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 30,
)"
      R"("json_schema": {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}})"
      "\n");
  // The third line of the text is empty, and the last object is divided into two lines.
  const RunResult divided = Batch();
  EXPECT_EQ(divided.exit_code, 0) << divided.error;
  std::vector<json> answers = Read();
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ(answers[0]["completion_tokens"], 3);
  EXPECT_EQ(answers[1]["completion_tokens"], 2);
  EXPECT_EQ(answers[2]["text"].get<std::string>().find_first_of("ea"), std::string::npos);
  EXPECT_THAT(answers[3]["error"].get<std::string>(), HasSubstr("is not JSON"));
  EXPECT_THAT(answers[4]["error"].get<std::string>(), HasSubstr("is not JSON"));
  support::WriteFile(
      Prompts(),
      R"({"messages": [{"role": "user", "content": "Hello!"}], "response_format": {"type": "json_schema", )"
      R"("json_schema": {"schema": {"type": "object", "properties": {"a": {"enum": [1]}}, )"
      R"("required": ["a"], "additionalProperties": false}}}})"
      "\n");
  std::filesystem::remove(Answers());
  const RunResult constrained = Batch();
  EXPECT_EQ(constrained.exit_code, 0) << constrained.error;
  answers = Read();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(json::parse(answers[0]["content"].get<std::string>()), json({{"a", 1}}));
}

TEST_F(BatchCommand, AWrongLineIsAnAnswerWithAnError) {
  const std::string question = R"("messages": [{"role": "user", "content": "Hello!"}])";
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"nonsense", "is not JSON"},
      {"[1]", "is not an object"},
      {"{}", "needs either a prompt or messages"},
      {"{" + question + R"(, "prompt": "x"})", "needs either a prompt or messages"},
      {R"({"messages": []})", "messages"},
      {"{" + question + R"(, "max_tokens": -1})", "max_tokens is not a whole number"},
      {"{" + question + R"(, "temperature": "hot"})", "temperature is not a number"},
      {"{" + question + R"(, "temprature": 1})", "temprature is not known"},
      {"{" + question + R"(, "stop": [1]})", "stop has something that is not a text"},
      {"{" + question + R"(, "response_format": {"type": "xml"}})", "response_format has a type"},
      {"{" + question + R"(, "json_schema": {"type": "nothing"}})", "json_schema: "},
  };
  std::string text;
  for (const auto& [line, words] : lines) text += line + "\n";
  support::WriteFile(Prompts(), text + "{" + question + "}\n");
  const RunResult result = Batch();
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("12 answers, 11 of them errors"));
  const std::vector<json> answers = Read();
  ASSERT_EQ(answers.size(), lines.size() + 1);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(answers[i]["index"], i);
    EXPECT_THAT(answers[i]["error"].get<std::string>(), HasSubstr(lines[i].second));
  }
  EXPECT_THAT(answers.back()["content"].get<std::string>(), HasSubstr("Hello!"));
}

TEST_F(BatchCommand, GoesOnWhereItWasStopped) {
  support::WriteFile(Prompts(), Questions(12));
  ASSERT_EQ(Batch().exit_code, 0);
  const std::string whole = support::ReadFile(Answers());
  const size_t third = whole.find('\n', whole.find('\n', whole.find('\n') + 1) + 1) + 1;
  // Whole lines, and half of one.
  for (const size_t bytes : {size_t{0}, size_t{10}, third, third + 10, whole.size() - 1}) {
    support::WriteFile(Answers(), whole.substr(0, bytes));
    const RunResult result = Batch();
    EXPECT_EQ(result.exit_code, 0) << result.error;
    // How much of a prompt the cache has depends on what was answered before, and nothing else
    // does.
    EXPECT_EQ(support::ReadFile(Answers()), whole) << bytes;
  }
  const RunResult nothing = Batch();
  EXPECT_EQ(nothing.exit_code, 0);
  EXPECT_THAT(nothing.error, HasSubstr("12 of 12 answers are there already"));
}

TEST_F(BatchCommand, CtrlCKeepsWhatIsAnswered) {
  // More answers than any machine gives until it is stopped.
  std::vector<std::string> endless = tests::EndlessAnswers();
  endless.insert(endless.end(), {"-np", "2"});
  support::WriteFile(Prompts(), Questions(4000));
  const RunResult stopped = Batch(endless, {.after_start = [&](int program) {
                                    support::AwaitProcessorTime(program, 0.3);
                                    kill(program, SIGINT);
                                  }});
  EXPECT_EQ(stopped.exit_code, 130) << stopped.error;
  EXPECT_THAT(stopped.error, HasSubstr("the same command goes on"));
  EXPECT_LT(Read().size(), 4000u);
}

TEST_F(BatchCommand, WrongFilesAreRefusedBeforeTheModelIsLoaded) {
  support::WriteFile(Prompts(), Questions(1));
  support::WriteFile(Answers(), "my notes\n");
  RunResult refused = Batch();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("has something else than answers"));
  EXPECT_EQ(support::ReadFile(Answers()), "my notes\n");
  support::WriteFile(Answers(), "{}\n{}\n");
  refused = Batch();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("has 2 answers, but there are 1 prompts"));
}

}  // namespace
}  // namespace cria
