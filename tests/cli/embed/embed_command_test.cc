// cria embed: formats, pooling, norms, several texts at once, and input that is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
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
using Numbers = std::vector<double>;
using Words = std::vector<std::string>;

RunResult Embed(const Words& more, const support::RunOptions& options = {}) {
  Words arguments = {support::kCriaProgram, "embed", "-m", tests::DemoModel()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return support::RunProgram(arguments, options);
}

// The embeddings of --embd-output-format array.
std::vector<Numbers> ArrayOf(const Words& more, const support::RunOptions& options = {}) {
  Words words = {"--embd-output-format", "array", "-q"};
  words.insert(words.end(), more.begin(), more.end());
  const RunResult result = Embed(words, options);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  return json::parse(result.output).get<std::vector<Numbers>>();
}

double Product(const Numbers& a, const Numbers& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(EmbedCommand, TextsComeFromTheCommandLineAFileOrAPipe) {
  const support::TemporaryDirectory folder;
  support::WriteFile(folder / "texts", "Who are you?\r\nWhere do you run?\n");
  support::WriteFile(folder / "parts", "Who are you?<#sep#>Where do you\nrun?");
  const std::vector<Numbers> given = ArrayOf({"Who are you?", "-p", "Where do you run?"});
  ASSERT_EQ(given.size(), 2u);
  EXPECT_GT(given[0].size(), 16u);
  for (const Numbers& embedding : given) EXPECT_NEAR(Product(embedding, embedding), 1.0, 1e-5);
  EXPECT_LT(Product(given[0], given[1]), 0.9999);
  EXPECT_EQ(ArrayOf({"-f", folder / "texts"}), given);
  EXPECT_EQ(ArrayOf({}, {.input = "Who are you?\nWhere do you run?"}), given);
  const auto parts = ArrayOf({"-f", folder / "parts", "--embd-separator", "<#sep#>"});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0], given[0]);
  EXPECT_NE(parts[1], given[1]);
}

TEST(EmbedCommand, FormatsHaveTheSameNumbers) {
  const Words texts = {"Who are you?", "Where do you run?", "Name a colour."};
  const std::vector<Numbers> expected = ArrayOf(texts);
  const auto printed = [&](const char* format) {
    Words words = texts;
    words.insert(words.end(), {"-q", "--embd-output-format", format});
    return Embed(words).output;
  };
  json answer = json::parse(printed("json+"));
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "demo");
  EXPECT_GT(answer["usage"]["prompt_tokens"], 9);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"]);
  ASSERT_EQ(answer["data"].size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(answer["data"][i]["object"], "embedding");
    EXPECT_EQ(answer["data"][i]["index"], i);
    EXPECT_EQ(answer["data"][i]["embedding"].get<Numbers>(), expected[i]);
    for (size_t k = 0; k < texts.size(); ++k) {
      EXPECT_NEAR(answer["cosineSimilarity"][i][k].get<double>(), Product(expected[i], expected[k]),
                  1e-5);
    }
  }
  answer.erase("cosineSimilarity");
  EXPECT_EQ(json::parse(printed("json")), answer);

  std::string raw = printed("raw");
  for (const Numbers& embedding : expected) {
    std::string line = raw.substr(0, raw.find('\n'));
    raw.erase(0, line.size() + 1);
    for (const double number : embedding) {
      size_t end = 0;
      EXPECT_EQ(std::stod(line, &end), number);
      line.erase(0, end);
    }
    EXPECT_EQ(line, "");
  }
  EXPECT_EQ(raw, "");
}

TEST(EmbedCommand, TheTableIsForPeople) {
  const RunResult two = Embed({"Who are you?", "Who are you?"});
  EXPECT_EQ(two.exit_code, 0) << two.error;
  EXPECT_THAT(two.output, HasSubstr("embedding 0: "));
  EXPECT_THAT(two.output, HasSubstr(" …\nembedding 1: "));
  EXPECT_THAT(two.output, HasSubstr("cosine similarity matrix:\n\n     0      1 \n"
                                    "  1.00   1.00  0: Who are you?\n"));
  EXPECT_THAT(two.error, HasSubstr("2 texts, "));
  const RunResult one = Embed({"-q", "Who are you?"});
  EXPECT_THAT(one.output, testing::Not(HasSubstr("similarity")));
  EXPECT_THAT(one.output, testing::Not(HasSubstr("…")));
  EXPECT_EQ(one.error, "");
  // A long text is cut off between two characters, and none of it drives the terminal.
  const std::string umlauts(100, 'x');
  const RunResult odd = Embed({"-q", "\x1b[2J", "\u00e4" + umlauts});
  EXPECT_THAT(odd.output, HasSubstr("0: \\x1b[2J\n"));
  EXPECT_THAT(odd.output, HasSubstr("1: \u00e4" + umlauts.substr(0, 39) + "…\n"));
}

TEST(EmbedCommand, PoolingAndNormsAreAsAsked) {
  const std::string text = "Who are you?";
  const Numbers last = ArrayOf({text})[0];
  EXPECT_EQ(ArrayOf({text, "--pooling", "last"})[0], last);
  const Numbers mean = ArrayOf({text, "--pooling", "mean"})[0];
  EXPECT_LT(Product(last, mean), 0.9999);
  const Numbers plain = ArrayOf({text, "--embd-normalize", "-1"})[0];
  EXPECT_NEAR(Product(plain, last) / std::sqrt(Product(plain, plain)), 1.0, 1e-6);
  EXPECT_GT(std::abs(Product(plain, plain) - 1.0), 1e-3);
  double sum = 0.0;
  const Numbers ones = ArrayOf({text, "--embd-normalize", "1"})[0];
  for (const double number : ones) sum += std::abs(number);
  EXPECT_NEAR(sum, 1.0, 1e-5);
  double largest = 0.0;
  const Numbers integers = ArrayOf({text, "--embd-normalize", "0"})[0];
  for (const double number : integers) largest = std::max(largest, std::abs(number));
  EXPECT_NEAR(largest, 32760.0, 0.01);
  // The mean of a text of one token is its only hidden state, also if it is not normalized.
  const Words one = {"--embd-normalize", "-1", "-p", "a", "--pooling"};
  const auto with = [&](const char* pooling) {
    Words words = one;
    words.push_back(pooling);
    return ArrayOf(words);
  };
  const RunResult tokens = Embed({"-p", "a", "--embd-output-format", "json"});
  if (json::parse(tokens.output)["usage"]["total_tokens"] == 1) {
    EXPECT_EQ(with("mean"), with("last"));
  }
}

TEST(EmbedCommand, SeveralAtOnceAreAsOneAfterAnother) {
  std::string texts;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k <= i % 7; ++k) texts += "Who are you, " + std::to_string(i * k) + "? ";
    texts += '\n';
  }
  const auto alone = ArrayOf({"-np", "1"}, {.input = texts});
  ASSERT_EQ(alone.size(), 40u);
  EXPECT_EQ(ArrayOf({"-np", "4"}, {.input = texts}), alone);
  EXPECT_EQ(ArrayOf({"-np", "3", "-c", "256"}, {.input = texts}), alone);
}

TEST(EmbedCommand, WhatIsWrongIsSaidBeforeAnythingIsPrinted) {
  const auto expect_refused = [](const RunResult& result, int exit_code, const char* words) {
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.error, HasSubstr(words));
  };
  std::string long_text = "Hello!\n";
  for (int i = 0; i < 300; ++i) long_text += "Who are you? ";
  expect_refused(Embed({"-c", "256"}, {.input = long_text}), 1, "text 2: ");
  expect_refused(Embed({"-c", "256"}, {.input = long_text}), 1, "-c");
  expect_refused(Embed({}, {.input = ""}), 2, "there is no text to embed");
  expect_refused(Embed({"--pooling", "cls", "a"}), 2, R"("cls" is not last or mean)");
  expect_refused(Embed({"--embd-output-format", "xml", "a"}), 2, R"("xml" is not table, array)");
  expect_refused(Embed({"--embd-normalize", "-2", "a"}), 2, "is not a whole number from -1");
  expect_refused(Embed({"--embd-separator", "", "-f", "-"}), 2, "--embd-separator is empty");
  expect_refused(Embed({"a", "-f", "-"}), 2, "--file");
  expect_refused(Embed({"-f", "/no/such/file"}), 1, "/no/such/file: cannot read");
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "a\n";
  expect_refused(Embed({}, {.input = many}), 2, "1001 texts are too many to compare");
}

TEST(EmbedCommand, ThePlanHasTheTexts) {
  const RunResult refused = Embed({"--memory-limit", "2K"}, {.input = std::string(500'000, 'a')});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("embed: texts 500.0 kB"));
}

TEST(EmbedCommand, CtrlCStopsIt) {
  const support::TemporaryDirectory folder;
  std::string texts;
  for (int i = 0; i < 400'000; ++i) texts += "Who are you, and where do you run?\n";
  support::WriteFile(folder / "texts", texts);
  const RunResult stopped = Embed({"--embd-output-format", "raw", "-f", folder / "texts"},
                                  {.after_start = [](int program) {
                                    support::AwaitProcessorTime(program, 0.3);
                                    kill(program, SIGINT);
                                  }});
  EXPECT_EQ(stopped.exit_code, 130) << stopped.error;
}

}  // namespace
}  // namespace cria
