// The options of drafts: what is refused, what the plan and the figures tell, and that the text
// stays the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/emulation.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using nlohmann::json;
using support::RunProgram;
using support::RunResult;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using Arguments = std::vector<std::string>;

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class DraftOptionsOfCria : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory = new support::TemporaryDirectory;
    Convert("model", support::SpecGqa());
    Convert("draft", support::SpecQwen3Biases());
    support::CheckpointSpec other = support::SpecGqa();
    other.config.vocab_size += 10;
    support::SetTokenIds(other);
    Convert("other", other);
    std::ofstream(directory->path() / "text") << "one two three one two three one two three";
  }
  static void TearDownTestSuite() { delete directory; }

  static void Convert(const std::string& name, const support::CheckpointSpec& spec) {
    const std::string checkpoint = Path(name);
    support::WriteHuggingFaceDirectory(support::MakeModel(spec), checkpoint, {});
    const RunResult converted = RunProgram({support::kModelConverter, "--fast", checkpoint, "-o",
                                            Path(name + ".cria"), "--weights", "int4"});
    ASSERT_EQ(converted.exit_code, 0) << converted.error;
  }
  static std::string Path(const std::string& name) { return directory->path() / name; }

  static RunResult Cria(const std::string& command, const Arguments& more) {
    return RunProgram(
        Arguments{support::kCriaProgram, command, "-m", Path("model.cria")} +
        (command == "plan" ? Arguments{} : Arguments{"--pack-cache", Path("packed")}) + more);
  }
  static json Json(const std::string& command, const Arguments& more) {
    const RunResult result = Cria(command, more + Arguments{"--json"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json::parse(result.output);
  }
  // The bytes of the plan's lines.
  static std::map<std::string, uint64_t> Lines(const json& plan) {
    std::map<std::string, uint64_t> lines;
    for (const json& line : plan["lines"]) lines[line["name"]] = line["bytes"];
    return lines;
  }

  static support::TemporaryDirectory* directory;
};

support::TemporaryDirectory* DraftOptionsOfCria::directory = nullptr;

TEST_F(DraftOptionsOfCria, WhatMakesNoSenseIsRefused) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--draft-ngram", "17"}, "ngram_tokens is 17, but must be 0 to 16"},
      {{"--draft-ngram", "many"}, "--draft-ngram"},
      {{"--draft-max", "0"}, "the longest draft is 0, but must be 1 to 32"},
      {{"--draft-max", "33"}, "the longest draft is 33"},
      {{"--draft-max", "4", "--draft-min", "5"}, "the shortest draft is 5, but must be 0 to 4"},
      {{"--draft-p-min", "1.5"}, "must be 0 to 1"},
      {{"-md", Path("other.cria")}, "another vocabulary"},
      {{"-md", Path("none.cria")}, "none.cria"},
  };
  for (const auto& [arguments, words] : cases) {
    // Both read the same options.
    for (const char* command : {"bench", "plan"}) {
      if (support::IsEmulated() && command == std::string("plan")) continue;
      const RunResult result = Cria(command, arguments);
      EXPECT_NE(result.exit_code, 0) << words;
      EXPECT_THAT(result.output, IsEmpty()) << words;
      EXPECT_THAT(result.error, HasSubstr(words));
    }
  }
}

TEST_F(DraftOptionsOfCria, ThePlanHasTheLinesOfBothModels) {
  const auto without = Lines(Json("plan", {"-c", "128"}));
  const auto ngrams = Lines(Json("plan", {"-c", "128", "--draft-ngram", "2", "--draft-max", "3"}));
  const auto both =
      Lines(Json("plan", {"-c", "128", "--draft-ngram", "2", "-md", Path("draft.cria")}));
  // Each token of a draft has a row of logits, and a token of the context two places in a table. A
  // region is a multiple of 64 bytes.
  EXPECT_NEAR(static_cast<double>(ngrams.at("logits")),
              4.0 * static_cast<double>(without.at("logits")), 4 * 64.0);
  EXPECT_EQ(ngrams.at("session"), without.at("session") + 256 * sizeof(uint32_t));
  EXPECT_EQ(ngrams.size(), without.size());
  const std::string prefix = "draft model: ";
  size_t num_lines = 0;
  for (const auto& [name, bytes] : both) num_lines += name.starts_with(prefix) ? 1 : 0;
  EXPECT_GE(num_lines, 8u);
  EXPECT_GT(both.at(prefix + "packed weights"), 0u);
  EXPECT_GT(both.at(prefix + "KV cache"), 0u);
  EXPECT_EQ(both.at(prefix + "logits"), without.at("logits"));
  EXPECT_EQ(both.at("packed weights"), without.at("packed weights"));
}

TEST_F(DraftOptionsOfCria, TheTextIsTheSameAndTheFiguresTell) {
  for (const Arguments& sampling :
       {Arguments{"--top-k", "3", "-s", "7"}, Arguments{"--temp", "0"}}) {
    if (support::IsEmulated() && sampling.front() == "--temp") continue;
    const Arguments arguments =
        Arguments{"-p", "one two three one two three", "-n", "40", "-t", "1", "--ignore-eos"} +
        sampling;
    const json without = Json("run", arguments);
    EXPECT_EQ(without["drafted_tokens"], 0);
    EXPECT_EQ(without["draft_gain"], 1.0);
    const Arguments forced = {"--draft-min", "3", "--draft-max", "3"};
    const Arguments model = {"-md", Path("draft.cria")};
    const Arguments ngrams = {"--draft-ngram", "1"};
    for (const Arguments& drafts :
         {ngrams + forced, model + forced, model + ngrams + forced, model + ngrams,
          model + forced + Arguments{"--draft-p-min", "0.01"}}) {
      const json with = Json("run", arguments + drafts);
      EXPECT_EQ(with["text"], without["text"]);
      EXPECT_LE(with["accepted_tokens"], with["drafted_tokens"]);
      if (drafts == model + forced) {
        EXPECT_GT(with["drafted_tokens"], 3);
        EXPECT_GT(with["draft_gain"], 0.0);
      }
    }
  }
  const RunResult printed = Cria("run", {"-p", "one", "-n", "20", "--ignore-eos", "-md",
                                         Path("draft.cria"), "--draft-min", "2"});
  EXPECT_THAT(printed.error,
              testing::ContainsRegex("drafts [0-9]+ of [0-9]+ accepted, [0-9.]+ times as fast"));
}

TEST_F(DraftOptionsOfCria, BenchComparesEachRepetitionWithOneWithoutDrafts) {
  const Arguments arguments = {"-n",
                               "8",
                               "-d",
                               "0,30",
                               "-np",
                               "1,2",
                               "-t",
                               "1",
                               "-r",
                               "3",
                               "-md",
                               Path("draft.cria"),
                               "--draft-ngram",
                               "2",
                               "--draft-min",
                               "2",
                               "--draft-max",
                               "4"};
  const json rows = Json("bench", arguments);
  ASSERT_THAT(rows, SizeIs(4));
  for (const json& row : rows) {
    EXPECT_EQ(row["n_gen"], 8);
    EXPECT_EQ(row["draft_ngram"], 2);
    EXPECT_EQ(row["draft_max"], 4);
    EXPECT_EQ(row["draft_model_filename"], Path("draft.cria"));
    EXPECT_GT(row["drafted_tokens"], 0);
    EXPECT_LE(row["accepted_tokens"], row["drafted_tokens"]);
    const auto drafted = row["samples_ns"].get<std::vector<double>>();
    const auto undrafted = row["samples_undrafted_ns"].get<std::vector<double>>();
    ASSERT_THAT(drafted, SizeIs(3));
    ASSERT_THAT(undrafted, SizeIs(3));
    std::vector<double> gains(3);
    for (size_t i = 0; i < 3; ++i) gains[i] = undrafted[i] / drafted[i];
    std::ranges::sort(gains);
    EXPECT_NEAR(row["draft_gain"].get<double>(), gains[1], 1e-3 * gains[1]);
    EXPECT_NEAR(row["samples_ts"][0].get<double>(),
                8e9 * row["n_parallel"].get<double>() / drafted[0], 0.01);
    EXPECT_TRUE(row["bytes_per_token"].is_null());
  }
  const json without = Json("bench", {"-p", "0", "-n", "4", "-r", "1"})[0];
  for (const char* name : {"drafted_tokens", "accepted_tokens", "draft_gain"}) {
    EXPECT_TRUE(without[name].is_null()) << name;
  }
  EXPECT_THAT(without["samples_undrafted_ns"], IsEmpty());
}

TEST_F(DraftOptionsOfCria, BenchPrintsTheGain) {
  const Arguments arguments = {"-n",          "4",  "-r",         "1",   "-d",
                               "9",           "-f", Path("text"), "-md", Path("draft.cria"),
                               "--draft-min", "2"};
  const RunResult table = Cria("bench", arguments);
  EXPECT_EQ(table.exit_code, 0) << table.error;
  EXPECT_THAT(table.output, AllOf(HasSubstr("|   drafts accepted |  gain |\n"),
                                  testing::ContainsRegex(" [0-9]+ of [0-9]+ \\| +[0-9.]+ \\|"),
                                  HasSubstr("\ndrafts: from " + Path("draft.cria") +
                                            ", of up to 8 tokens; the gain is over ")));
  const RunResult csv = Cria("bench", arguments + Arguments{"-o", "csv"});
  EXPECT_THAT(csv.output, AllOf(HasSubstr("\"drafted_tokens\",\"accepted_tokens\",\"draft_gain\""),
                                Not(HasSubstr("samples_undrafted_ns"))));
}

TEST_F(DraftOptionsOfCria, BenchMeasuresTheMemoryOfBothModels) {
  const json memory = Json("bench", {"--memory", "-c", "128", "-t", "1", "--draft-ngram", "2",
                                     "-md", Path("draft.cria")});
  EXPECT_GT(Lines(memory["plan"]).at("draft model: KV cache"), 0u);
  EXPECT_EQ(memory["measured"].back()["after"], "full context");
}

TEST_F(DraftOptionsOfCria, BenchRefusesTestsWithoutDrafts) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--draft-ngram", "2", "-n", "0"}, "only tests that generate are run"},
      {{"--draft-ngram", "2", "--products"}, "exclude drafts"},
      {{"--draft-ngram", "2", "--profile"}, "exclude drafts"},
      {{"-f", Path("text"), "-p", "0", "-n", "4", "-d", "100"}, "but the tests read 101"},
      {{"-f", Path("none"), "-p", "0", "-n", "4"}, "none"},
  };
  for (const auto& [arguments, words] : cases) {
    const RunResult result = Cria("bench", arguments);
    EXPECT_NE(result.exit_code, 0) << words;
    EXPECT_THAT(result.output, IsEmpty()) << words;
    EXPECT_THAT(result.error, HasSubstr(words));
  }
}

}  // namespace
}  // namespace cria
