#include "cli/eval/choice_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cria::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ChoiceQuestions, AreReadFromLines) {
  const auto questions = ReadChoiceQuestions(
      "{\"context\": \"Two and two are\", \"choices\": [\"four\", \"f\\u00fcnf\"], \"label\": 1}\n"
      "\n \t\r\n"
      "{\"id\": 7, \"label\": 0, \"choices\": [\"a\", \"b\", \"c\"], \"context\": \"\"}",
      "file");
  ASSERT_TRUE(questions) << questions.error().message();
  ASSERT_EQ(questions->size(), 2u);
  EXPECT_EQ((*questions)[0].context, "Two and two are");
  EXPECT_THAT((*questions)[0].choices, ElementsAre("four", "fünf"));
  EXPECT_EQ((*questions)[0].label, 1u);
  EXPECT_THAT((*questions)[1].choices, ElementsAre("a", "b", "c"));
}

TEST(ChoiceQuestions, ErrorsNameTheLine) {
  const std::string good = R"({"context": "", "choices": ["a", "b"], "label": 0})"
                           "\n\n";
  const auto expect_error = [&](const std::string& line, const char* problem) {
    const auto questions = ReadChoiceQuestions(good + line, "file");
    ASSERT_FALSE(questions) << line;
    EXPECT_EQ(questions.error().code(), ErrorCode::kInvalidFile);
    EXPECT_THAT(questions.error().message(), HasSubstr("file: line 3: "));
    EXPECT_THAT(questions.error().message(), HasSubstr(problem)) << line;
  };
  expect_error("{", "is not JSON");
  expect_error("[1]", "is not an object");
  expect_error(R"({"choices": ["a", "b"], "label": 0})", "has no context");
  expect_error(R"({"context": 1, "choices": ["a", "b"], "label": 0})", "has no context");
  expect_error(R"({"context": "", "choices": "ab", "label": 0})", "has no choices");
  expect_error(R"({"context": "", "choices": ["a", 1], "label": 0})", "not a text");
  expect_error(R"({"context": "", "choices": ["a", ""], "label": 0})", "an empty choice");
  expect_error(R"({"context": "", "choices": ["a"], "label": 0})", "fewer than two");
  expect_error(R"({"context": "", "choices": ["a", "b"]})", "has no label");
  expect_error(R"({"context": "", "choices": ["a", "b"], "label": "a"})", "has no label");
  expect_error(R"({"context": "", "choices": ["a", "b"], "label": 2})", "choices 0 to 1");
  expect_error(R"({"context": "", "choices": ["a", "b"], "label": -1})", "choices 0 to 1");
}

TEST(ChoiceQuestions, AFileWithoutQuestionsIsAnError) {
  for (const char* lines : {"", "\n\n"}) EXPECT_FALSE(ReadChoiceQuestions(lines, "file"));
}

}  // namespace
}  // namespace cria::cli
