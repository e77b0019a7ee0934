// Runs cria eval like a user.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/svg_reader.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using nlohmann::json;
using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class EvalCommandTest : public testing::Test {
 protected:
  // The models are made once for all tests.
  static void SetUpTestSuite() {
    directory_ = new support::TemporaryDirectory;
    support::WriteRandomCheckpoint(support::SpecGqa(), *directory_ / "checkpoint");
    for (const char* weights : {"f32", "int8"}) {
      const RunResult converted =
          RunProgram({support::kModelConverter, "--fast", *directory_ / "checkpoint", "-o",
                      PathOf(weights + std::string(".cria")), "--weights", weights, "--no-verify"});
      ASSERT_EQ(converted.exit_code, 0) << converted.error;
      // So that no evaluation says that it packs.
      const RunResult packed =
          RunProgram({support::kCriaProgram, "pack", "-m", PathOf(weights + std::string(".cria"))});
      ASSERT_EQ(packed.exit_code, 0) << packed.error;
    }
    std::string text;
    for (int i = 0; i < 60; ++i) text += "word " + std::to_string(i * i) + " of a text. ";
    support::WriteFile(*directory_ / "text", text);
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string PathOf(const std::string& name) { return *directory_ / name; }
  static RunResult Eval(std::vector<std::string> arguments, const std::string& model = "int8") {
    arguments.insert(arguments.begin(),
                     {support::kCriaProgram, "eval", "-m", PathOf(model + ".cria"), "-t", "1"});
    return RunProgram(arguments);
  }
  static json EvalJson(std::vector<std::string> arguments, const std::string& model = "int8") {
    arguments.insert(arguments.end(), {"--json", "-q"});
    const RunResult result = Eval(std::move(arguments), model);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, IsEmpty());
    return json::parse(result.output);
  }
  static void ExpectUsageError(const std::vector<std::string>& arguments, const char* words) {
    const RunResult result = Eval(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.error, HasSubstr(words));
  }

  static support::TemporaryDirectory* directory_;
};

support::TemporaryDirectory* EvalCommandTest::directory_ = nullptr;

TEST_F(EvalCommandTest, WithoutABaseItIsPerplexity) {
  const json figures = EvalJson({"-f", PathOf("text"), "-c", "64"});
  const RunResult perplexity =
      RunProgram({support::kCriaProgram, "perplexity", "-m", PathOf("int8.cria"), "-f",
                  PathOf("text"), "-c", "64", "-t", "1", "--json"});
  const json expected = json::parse(perplexity.output);
  EXPECT_EQ(figures["tokens"], expected["tokens"]);
  EXPECT_EQ(figures["context_tokens"], 64);
  EXPECT_NEAR(figures["mean_negative_log_likelihood"].get<double>(),
              expected["mean_negative_log_likelihood"].get<double>(), 1e-6);
  EXPECT_GT(figures["perplexity_standard_error"], 0.0);
  EXPECT_FALSE(figures.contains("mean_kl"));
  const RunResult text = Eval({"-f", PathOf("text"), "-c", "64"});
  EXPECT_THAT(text.output, HasSubstr("perplexity: "));
  EXPECT_THAT(text.error, HasSubstr(" tokens, "));
}

TEST_F(EvalCommandTest, TheBaseItselfDoesNotDiffer) {
  const json figures = EvalJson({"-f", PathOf("text"), "-c", "64", "--base", PathOf("int8.cria")});
  EXPECT_EQ(figures["mean_kl"], 0.0);
  EXPECT_EQ(figures["nll_difference"], 0.0);
  EXPECT_EQ(figures["top1_agreement"], 1.0);
}

TEST_F(EvalCommandTest, SavedLogitsGiveWhatTheBaseGives) {
  const std::string saved = PathOf("saved");
  const RunResult saving = Eval({"-f", PathOf("text"), "-c", "64", "--save-logits", saved}, "f32");
  EXPECT_EQ(saving.exit_code, 0) << saving.error;
  EXPECT_THAT(saving.error, HasSubstr(saved + " will have "));
  const json live = EvalJson({"-f", PathOf("text"), "-c", "64", "--base", PathOf("f32.cria")});
  // The text and the context are in the file.
  const json from_file = EvalJson({"--logits", saved});
  EXPECT_EQ(from_file["tokens"], live["tokens"]);
  EXPECT_EQ(from_file["context_tokens"], 64);
  EXPECT_GT(live["mean_kl"], 0.0);
  EXPECT_NEAR(from_file["mean_kl"].get<double>(), live["mean_kl"].get<double>(),
              0.02 * live["mean_kl"].get<double>());
  EXPECT_NEAR(from_file["nll_difference"].get<double>(), live["nll_difference"].get<double>(),
              1e-6);
  const std::string top = PathOf("top");
  EXPECT_EQ(Eval({"-f", PathOf("text"), "-c", "64", "--save-logits", top, "--save-top", "16", "-q"},
                 "f32")
                .exit_code,
            0);
  const json bound = EvalJson({"--logits", top, "-f", PathOf("text"), "-c", "64"});
  EXPECT_GT(bound["mean_kl"], 0.0);
  EXPECT_LT(bound["mean_kl"], live["mean_kl"]);

  ExpectUsageError({"--logits", saved, "-c", "32"}, "is of a context of 64 tokens");
  support::WriteFile(PathOf("other"), "Another text.");
  ExpectUsageError({"--logits", saved, "-f", PathOf("other")}, "is of another text or tokenizer");
}

TEST_F(EvalCommandTest, ATableHasARowForEachToken) {
  const std::vector<std::string> base = {"-f",     PathOf("text"),     "-c",         "64",
                                         "--base", PathOf("f32.cria"), "--per-token"};
  std::vector<json> lists;
  for (const std::string ending : {"csv", "jsonl", "json"}) {
    const std::string path = PathOf("table." + ending);
    std::vector<std::string> arguments = base;
    arguments.push_back(path);
    const json figures = EvalJson(arguments);
    const std::string table = support::ReadFile(path);
    const auto rows = static_cast<size_t>(std::ranges::count(table, '\n'));
    if (ending == "csv") {
      EXPECT_EQ(rows, figures["tokens"].get<size_t>() + 1);
      EXPECT_THAT(table, StartsWith("position,token,text,nll,base_nll,kl,same_top1,in_top5\r\n0,"));
      continue;
    }
    json list = json::array();
    if (ending == "json") {
      list = json::parse(table);
    } else {
      size_t begin = 0;
      for (size_t i = 0; i < rows; ++i) {
        const size_t end = table.find('\n', begin);
        list.push_back(json::parse(table.substr(begin, end - begin)));
        begin = end + 1;
      }
    }
    double sum = 0.0;
    for (const json& row : list) sum += row["kl"].get<double>();
    EXPECT_NEAR(sum / static_cast<double>(list.size()), figures["mean_kl"].get<double>(), 1e-6);
    lists.push_back(std::move(list));
  }
  EXPECT_EQ(lists[0], lists[1]);
  ExpectUsageError({"-f", PathOf("text"), "--per-token", "x.txt"}, "must end in .csv");
}

TEST_F(EvalCommandTest, AStoppedEvaluationGoesOn) {
  const std::vector<std::string> arguments = {"-f",       PathOf("text"),    "-c",
                                              "32",       "--base",          PathOf("f32.cria"),
                                              "--resume", PathOf("progress")};
  const json whole = EvalJson(arguments);
  const std::string progress = support::ReadFile(PathOf("progress"));
  for (const size_t part : {progress.size() / 2, progress.size() - 1, size_t{40}}) {
    support::WriteFile(PathOf("progress"), progress.substr(0, part));
    json again = EvalJson(arguments);
    again["peak_resident_bytes"] = whole["peak_resident_bytes"];
    EXPECT_EQ(again, whole);
    EXPECT_EQ(support::ReadFile(PathOf("progress")), progress);
  }
  ExpectUsageError({"-f", PathOf("text"), "-c", "32", "--resume", PathOf("progress")},
                   "of an evaluation with another model, text or context");
}

// The probability of a choice is that of its tokens in the text of both.
TEST_F(EvalCommandTest, TheMostLikelyChoiceCounts) {
  const std::vector<std::string> choices = {"blue", "a longer choice", "of 7"};
  const std::string context = "The word is";
  std::vector<double> raw, by_length;
  for (const std::string& choice : choices) {
    support::WriteFile(PathOf("both"), context + " " + choice);
    support::WriteFile(PathOf("alone"), context);
    const size_t skipped = EvalJson({"-f", PathOf("alone")})["tokens"];
    EvalJson({"-f", PathOf("both"), "--per-token", PathOf("both.json")});
    double sum = 0.0;
    const json rows = json::parse(support::ReadFile(PathOf("both.json")));
    for (size_t i = skipped; i < rows.size(); ++i) sum -= rows[i]["nll"].get<double>();
    raw.push_back(sum);
    by_length.push_back(sum / static_cast<double>(choice.size()));
  }
  const auto best = [](const std::vector<double>& values) {
    return std::ranges::max_element(values) - values.begin();
  };
  for (ptrdiff_t label = 0; label < 3; ++label) {
    const json question = {{"context", context}, {"choices", choices}, {"label", label}};
    support::WriteFile(PathOf("questions"), question.dump() + "\n");
    const json figures = EvalJson({"--choices", PathOf("questions")});
    EXPECT_EQ(figures["questions"], 1);
    EXPECT_EQ(figures["accuracy"], best(raw) == label ? 1.0 : 0.0);
    EXPECT_EQ(figures["accuracy_by_length"], best(by_length) == label ? 1.0 : 0.0);
  }
}

TEST_F(EvalCommandTest, ChoicesResumeAndOverlongContextsLoseTheirBeginning) {
  std::string lines;
  for (int i = 0; i < 12; ++i) {
    const json question = {{"context", std::string(static_cast<size_t>(i) * 40, 'x') + " y "},
                           {"choices", {"one", " two", "three of them"}},
                           {"label", i % 3}};
    lines += question.dump() + "\n";
  }
  support::WriteFile(PathOf("many"), lines);
  const std::vector<std::string> arguments = {"--choices", PathOf("many"), "-c",
                                              "48",        "--resume",     PathOf("choices")};
  const json whole = EvalJson(arguments);
  EXPECT_EQ(whole["questions"], 12);
  EXPECT_GT(whole["accuracy_standard_error"], 0.0);
  const std::string progress = support::ReadFile(PathOf("choices"));
  support::WriteFile(PathOf("choices"), progress.substr(0, progress.size() - 20));
  json again = EvalJson(arguments);
  again["peak_resident_bytes"] = whole["peak_resident_bytes"];
  EXPECT_EQ(again, whole);
  EXPECT_THAT(Eval({"--choices", PathOf("many")}).output, HasSubstr("accuracy by length: "));
}

TEST_F(EvalCommandTest, APictureHasTheFiguresOfAllModels) {
  const std::string picture = PathOf("eval.svg");
  // The text comes from a pipe, which can be read once.
  const RunResult result = RunProgram(
      {"/bin/sh", "-c",
       "cat \"$1\" | \"$0\" eval -m \"$2\" -m \"$3\" -t 1 -c 64 -f - --base \"$3\" "
       "--plot \"$4\" --json -q",
       support::kCriaProgram, PathOf("text"), PathOf("int8.cria"), PathOf("f32.cria"), picture});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json figures = json::parse(result.output);
  const support::SvgNumbers read = support::ReadSvg(support::ReadFile(picture));
  ASSERT_EQ(figures.size(), 2u);
  ASSERT_EQ(read.series.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "int8.cria" : "f32.cria";
    EXPECT_EQ(figures[i]["model"], PathOf(name));
    EXPECT_EQ(read.series[i].name, name);
    EXPECT_NEAR(read.series[i].points.at(0).x, figures[i]["bits_per_weight"].get<double>(), 1e-3);
    EXPECT_NEAR(read.series[i].points.at(0).y, figures[i]["mean_kl"].get<double>(), 1e-6);
  }
  EXPECT_GT(figures[0]["bits_per_weight"], 8.0);
  EXPECT_LT(figures[0]["bits_per_weight"], 10.0);
  EXPECT_EQ(figures[1]["bits_per_weight"], 32.0);
  EXPECT_EQ(figures[1]["mean_kl"], 0.0);
  // Each alone has the same figures, and its tokens are those of the table.
  const json alone = EvalJson({"-f", PathOf("text"), "-c", "64", "--base", PathOf("f32.cria"),
                               "--per-token", PathOf("worst.json")});
  EXPECT_EQ(alone["mean_kl"], figures[0]["mean_kl"]);
  std::vector<json> rows = json::parse(support::ReadFile(PathOf("worst.json")));
  std::ranges::stable_sort(rows, [](const json& a, const json& b) { return a["kl"] > b["kl"]; });
  ASSERT_EQ(read.bars.size(), 16u);
  for (size_t i = 0; i < 8; ++i) {
    const auto& bar = read.bars[i];
    EXPECT_EQ(bar.chart, "Worst tokens of int8.cria");
    EXPECT_NEAR(bar.value, rows[i]["kl"].get<double>(), 1e-6);
    EXPECT_THAT(bar.name, testing::EndsWith(" at " + rows[i]["position"].dump()));
  }
  const RunResult text =
      RunProgram({support::kCriaProgram, "eval", PathOf("int8.cria"), PathOf("f32.cria"), "-t", "1",
                  "-c", "64", "-f", PathOf("text"), "-q"});
  EXPECT_THAT(text.output, HasSubstr("/int8.cria, "));
  EXPECT_THAT(text.output, HasSubstr("/f32.cria, 32.00 bits per weight\npredicted tokens: "));
}

TEST_F(EvalCommandTest, WhatCannotBeMeantIsRefused) {
  ExpectUsageError({"-f", PathOf("text"), "--plot", PathOf("none.svg")}, "--base or --logits");
  ExpectUsageError({"--choices", PathOf("text"), "--plot", PathOf("none.svg")}, "--plot");
  for (const char* option : {"--choices", "--save-logits", "--per-token", "--resume", "--packed"}) {
    std::vector<std::string> arguments = {"-m", PathOf("f32.cria"), option, PathOf("one.json")};
    if (option != std::string("--choices")) {
      arguments.insert(arguments.end(), {"-f", PathOf("text")});
    }
    ExpectUsageError(arguments, " is for one model");
  }
  ExpectUsageError({}, "give a text with --file or questions with --choices");
  ExpectUsageError({"-f", PathOf("text"), "--save-top", "4"}, "--save-top needs --save-logits");
  ExpectUsageError({"-f", PathOf("text"), "--choices", PathOf("text")}, "--choices");
  ExpectUsageError({"-f", PathOf("text"), "--base", "a", "--logits", "b"}, "--logits");
  ExpectUsageError({"-f", PathOf("text"), "--save-logits", "a", "--resume", "b"}, "--resume");
  ExpectUsageError({"-f", "/dev/null"}, "the text is empty");
}

}  // namespace
}  // namespace cria
