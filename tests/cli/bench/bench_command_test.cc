// Tests what cria bench prints in each format, and whether the numbers agree with each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "budget/generated_model.h"
#include "support/family_checkpoint.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using nlohmann::json;
using support::RunResult;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The fields of a line of CSV, which must all be quoted.
std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  size_t i = 0;
  while (i < line.size()) {
    if (line[i++] != '"') return {};
    std::string field;
    while (i < line.size() && !(line[i] == '"' && line.substr(i, 2) != "\"\"")) {
      if (line[i] == '"') ++i;
      field += line[i++];
    }
    fields.push_back(field);
    if (line.substr(i, 1) != "\"") return {};
    i += 1;
    if (i < line.size() && line[i++] != ',') return {};
  }
  return fields;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2.0;
}

// A model of 15 million weights: six layers, six heads of 48, and a context of 256.
class BenchCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = new budget::GeneratedModel({"--shape", "stories15m"}, {"--weights", "int8"});
  }
  static void TearDownTestSuite() { delete model_; }

  static RunResult Bench(std::vector<std::string> more) { return model_->Run("bench", more); }
  // Runs bench with these arguments and returns its rows.
  static json Rows(std::vector<std::string> more) {
    more.insert(more.begin(), {"-o", "json"});
    const RunResult result = Bench(more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json::parse(result.output);
  }
  // The rows of a run in which other processes took little of the time between operators, which no
  // operator's share counts; after five runs, those of the last one.
  static json RowsOfQuietRun(const std::vector<std::string>& arguments) {
    json rows;
    for (int run = 0; run < 5; ++run) {
      rows = Rows(arguments);
      const auto is_quiet = [](const json& row) { return row["profile_sum"].get<double>() > 0.97; };
      if (std::ranges::all_of(rows, is_quiet)) break;
    }
    return rows;
  }
  static void ExpectUsageError(const std::vector<std::string>& arguments,
                               const std::string& words) {
    const RunResult result = Bench(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.error;
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(result.error, HasSubstr(words));
  }

  static budget::GeneratedModel* model_;
};

budget::GeneratedModel* BenchCommand::model_ = nullptr;

TEST_F(BenchCommand, MarkdownHasARowForEveryTest) {
  const RunResult result =
      Bench({"-p", "16", "-n", "4", "-r", "2", "-t", "1,2", "-d", "0,32", "--kv", "int8"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, Not(HasSubstr("error")));
  const std::vector<std::string> lines = Lines(result.output);
  ASSERT_GE(lines.size(), 10u);
  EXPECT_THAT(lines[0], MatchesRegex("\\| model +\\| +size \\| +params \\| +kv \\| threads \\| "
                                     "+test \\| +t/s \\| +GB/s \\| +bus \\|"));
  EXPECT_THAT(lines[1], MatchesRegex("\\| -+ \\|( -+: \\|)+"));
  const char* const tests[] = {"pp16", "tg4", "pp16 @ d32", "tg4 @ d32"};
  for (size_t i = 0; i < 8; ++i) {
    const std::string& line = lines[2 + i];
    EXPECT_THAT(line, HasSubstr(std::string(" ") + tests[i % 4] + " |"));
    EXPECT_THAT(line, HasSubstr(i < 4 ? "| int8 |       1 |" : "| int8 |       2 |"));
    const bool is_prompt = i % 2 == 0;
    EXPECT_TRUE(std::regex_search(
        line, std::regex(is_prompt ? R"(\d+\.\d\d ± \d+\.\d\d \| +\| +\|$)"
                                   : R"(\d ± \d+\.\d\d \| +\d+\.\d\d \| +\d+\.\d% \|$)")))
        << line;
  }
  EXPECT_THAT(result.output, HasSubstr("\ncpu: "));
  EXPECT_THAT(result.output, HasSubstr("\nkernels: "));
  EXPECT_THAT(result.output, HasSubstr("\nthreads 1: loaded in "));
  EXPECT_THAT(result.output, HasSubstr("\nthreads 2: loaded in "));
}

TEST_F(BenchCommand, CsvHasTheSameFieldsInEveryLine) {
  const RunResult result = Bench({"-p", "16", "-n", "4,5", "-r", "2", "-o", "csv"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const std::vector<std::string> lines = Lines(result.output);
  ASSERT_THAT(lines, SizeIs(4));
  const std::vector<std::string> names = Fields(lines[0]);
  EXPECT_THAT(names, AllOf(Contains("cpu_info"), Contains("n_prompt"), Contains("avg_ts"),
                           Contains("bus_fraction")));
  for (const std::string& line : lines) EXPECT_THAT(Fields(line), SizeIs(names.size())) << line;
  const auto field = [&](size_t line, const std::string& name) {
    return Fields(lines[line])[static_cast<size_t>(std::ranges::find(names, name) - names.begin())];
  };
  EXPECT_EQ(field(1, "n_prompt"), "16");
  EXPECT_EQ(field(2, "n_gen"), "4");
  EXPECT_EQ(field(3, "n_gen"), "5");
  EXPECT_EQ(field(1, "bus_fraction"), "");
  EXPECT_GT(std::stod(field(2, "bus_fraction")), 0.0);
}

TEST_F(BenchCommand, CsvDoublesQuotes) {
  const support::TemporaryDirectory folder;
  const std::string path = folder.path() / "a \"large\", new model.cria";
  std::filesystem::create_symlink(model_->path(), path);
  const RunResult result =
      support::RunProgram({support::kCriaProgram, "bench", "-m", path, "-p", "0", "-n", "2", "-r",
                           "1", "-o", "csv", "--no-pack-cache"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const std::vector<std::string> lines = Lines(result.output);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(Fields(lines[1]), AllOf(SizeIs(Fields(lines[0]).size()), Contains(path)));
}

TEST_F(BenchCommand, JsonHasTheFieldsOfLlamaBenchWithItsMeanings) {
  const json rows = Rows({"-p", "16", "-n", "8", "-r", "3", "-t", "1", "-tb", "2", "-b", "5"});
  ASSERT_THAT(rows, SizeIs(2));
  for (const json& row : rows) {
    for (const char* name : {"cpu_info", "isa", "kernels", "model_filename", "model_type", "type_k",
                             "type_v", "test_time"}) {
      EXPECT_TRUE(row[name].is_string()) << name;
    }
    EXPECT_EQ(row["model_filename"], model_->path());
    EXPECT_THAT(row["model_type"].get<std::string>(), HasSubstr("qc8w"));
    EXPECT_EQ(row["type_k"], "int8");
    EXPECT_THAT(row["test_time"].get<std::string>(),
                MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"));
    // The embedding, which is also the output head; in each layer, four matrices of attention,
    // three of the feed-forward network and two norms; the last norm.
    EXPECT_EQ(row["model_n_params"],
              32000 * 288 + 6 * (4 * 288 * 288 + 3 * 288 * 768 + 2 * 288) + 288);
    EXPECT_EQ(row["n_batch"], 5);
    EXPECT_EQ(row["n_threads"], 1);
    EXPECT_EQ(row["n_threads_batch"], 2);
    EXPECT_EQ(row["n_depth"], 0);

    const auto samples_ns = row["samples_ns"].get<std::vector<double>>();
    const auto samples_ts = row["samples_ts"].get<std::vector<double>>();
    ASSERT_THAT(samples_ns, SizeIs(3));
    ASSERT_THAT(samples_ts, SizeIs(3));
    const double tokens = row["n_prompt"].get<double>() + row["n_gen"].get<double>();
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(samples_ts[i], 1e9 * tokens / samples_ns[i], 0.01);
    EXPECT_NEAR(row["avg_ns"].get<double>(), Mean(samples_ns), 1.0);
    EXPECT_NEAR(row["avg_ts"].get<double>(), Mean(samples_ts), 0.01);
    double squares = 0.0;
    for (const double rate : samples_ts) squares += std::pow(rate - Mean(samples_ts), 2);
    EXPECT_NEAR(row["stddev_ts"].get<double>(), std::sqrt(squares / 2.0), 0.01);
    EXPECT_THAT(row["samples_read_gb_per_s"], SizeIs(3));
    EXPECT_THAT(row["samples_read_gb_per_s_one_thread"], SizeIs(3));
    EXPECT_GT(row["load_ms"].get<double>(), 0.0);
    EXPECT_FALSE(row.contains("profile"));
    EXPECT_TRUE(row["products_fraction"].is_null());
  }
  EXPECT_EQ(rows[0]["n_prompt"], 16);
  EXPECT_EQ(rows[0]["n_gen"], 0);
  EXPECT_EQ(rows[1]["n_prompt"], 0);
  EXPECT_EQ(rows[1]["n_gen"], 8);
  // The first token takes the time of the prompt and of choosing a token.
  EXPECT_GE(rows[0]["first_token_ms"].get<double>() * 1e6,
            std::ranges::min(rows[0]["samples_ns"].get<std::vector<double>>()));
  EXPECT_TRUE(rows[0]["bytes_per_token"].is_null());
  EXPECT_TRUE(rows[0]["bus_fraction"].is_null());
  EXPECT_TRUE(rows[1]["first_token_ms"].is_null());
}

TEST_F(BenchCommand, TheBusIsComparedWithTheSameRepetitions) {
  const json row = Rows({"-p", "0", "-n", "8", "-r", "3"})[0];
  const auto rates = row["samples_ts"].get<std::vector<double>>();
  const auto read = row["samples_read_gb_per_s"].get<std::vector<double>>();
  std::vector<double> gb_per_s, fractions;
  for (size_t i = 0; i < 3; ++i) {
    gb_per_s.push_back(row["bytes_per_token"].get<double>() * rates[i] / 1e9);
    fractions.push_back(gb_per_s[i] / read[i]);
  }
  EXPECT_NEAR(row["gb_per_s"].get<double>(), Median(gb_per_s), 1e-6);
  EXPECT_NEAR(row["read_gb_per_s"].get<double>(), Median(read), 1e-6);
  EXPECT_NEAR(row["bus_fraction"].get<double>(), Median(fractions), 1e-6);
}

TEST_F(BenchCommand, ATokenReadsTheWeightsAndItsContext) {
  const auto bytes = [](std::vector<std::string> more) {
    more.insert(more.end(), {"-p", "0", "-n", "4", "-r", "1"});
    return Rows(more)[0]["bytes_per_token"].get<double>();
  };
  // Keys and values of six layers with six heads of 48. Four tokens attend to one to four
  // positions, or 64 more: the means are 2.5 and 66.5.
  constexpr double kHeads = 6 * 6 * 2;
  const double f32 = bytes({"--kv", "f32"});
  EXPECT_EQ(bytes({"--kv", "f32", "-d", "64"}) - f32, kHeads * 48 * 4 * 64);
  EXPECT_EQ(f32 - bytes({"--kv", "f16"}), kHeads * 48 * 2 * 2.5);
  EXPECT_EQ(f32 - bytes({}), kHeads * (48 * 4 - (48 + 4)) * 2.5);
  // int8 weights with a float for each row, and a few percent that packing adds.
  constexpr double kWeights =
      32000 * (288 + 4) + 6 * ((4 * 288 + 2 * 768) * (288 + 4) + 288 * (768 + 4));
  const double weights = f32 - kHeads * 48 * 4 * 2.5;
  EXPECT_GE(weights, kWeights);
  EXPECT_LE(weights, 1.05 * kWeights);
}

// In a mixture, a token reads the experts that it chooses, and several tokens some of them
// together.
TEST(BenchCommandOfMixtures, ATokenReadsTheExpertsItChooses) {
  const support::TemporaryDirectory folder;
  const std::string checkpoint = folder.path() / "checkpoint";
  const std::string model = folder.path() / "model.cria";
  support::WriteFamilyDirectory(support::WideMixture(), checkpoint);
  const support::RunResult converted =
      support::RunProgram({support::kModelConverter, "--fast", checkpoint, "-o", model, "--weights",
                           "f32", "--no-verify"});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  const support::RunResult ran =
      support::RunProgram({support::kCriaProgram, "bench", "-m", model, "--json", "--no-pack-cache",
                           "-t", "1", "-p", "0", "-n", "2", "-r", "1", "-np", "1,4"});
  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  const json rows = json::parse(ran.output);
  const json plan = json::parse(
      support::RunProgram({support::kCriaProgram, "plan", "-m", model, "--json"}).output);
  // 2 of 8 are chosen by a token, and 8 (1 - (3/4)^4) by four.
  const double expert = plan["token_expert_bytes"].get<double>() / 2;
  const double others = rows[0]["bytes_per_token"].get<double>() - 2 * expert;
  EXPECT_GT(others, 256 * 1024 * 4);  // The head.
  EXPECT_LT(others, 8 * expert);
  const double together = 8 * (1 - 0.31640625) * expert;
  EXPECT_NEAR(rows[1]["bytes_per_token"].get<double>(), (others + together) / 4, 0.01 * expert);
}

TEST_F(BenchCommand, ListsMultiply) {
  const json rows = Rows({"-p", "8,16", "-n", "2,0", "-d", "4,0", "-t", "2,1", "-r", "1"});
  std::vector<std::string> tests;
  for (const json& row : rows) {
    tests.push_back(std::to_string(row["n_threads"].get<int>()) + " d" +
                    std::to_string(row["n_depth"].get<int>()) + " " +
                    std::to_string(row["n_prompt"].get<int>()) + "+" +
                    std::to_string(row["n_gen"].get<int>()));
  }
  EXPECT_THAT(
      tests, ElementsAre("2 d4 8+0", "2 d4 16+0", "2 d4 0+2", "2 d0 8+0", "2 d0 16+0", "2 d0 0+2",
                         "1 d4 8+0", "1 d4 16+0", "1 d4 0+2", "1 d0 8+0", "1 d0 16+0", "1 d0 0+2"));
}

// Several sequences generate; the pages of their common depth are counted once.
TEST_F(BenchCommand, SequencesGenerateTogether) {
  const json rows = Rows({"-p", "8", "-n", "3", "-d", "130", "-np", "1,4", "-r", "1"});
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0]["n_prompt"], 8);
  EXPECT_EQ(rows[1]["n_parallel"], 1);
  EXPECT_EQ(rows[1]["kv_pages"], 3);
  EXPECT_EQ(rows[2]["n_parallel"], 4);
  // Two whole pages are shared, and each sequence has one of its own.
  EXPECT_EQ(rows[2]["kv_pages"], 2 + 4);
  EXPECT_NEAR(rows[2]["samples_ts"][0].get<double>(),
              4 * 3 * 1e9 / rows[2]["samples_ns"][0].get<double>(), 0.01);
  // The weights are read once for four tokens.
  const double weights = rows[1]["bytes_per_token"].get<double>();
  EXPECT_LT(rows[2]["bytes_per_token"].get<double>(), 0.5 * weights);
}

// What sequences of earlier tests had reserved must be free: the context is that of the largest
// test.
TEST_F(BenchCommand, SequencesLeaveTheirPagesToLaterTests) {
  const json rows = Rows({"-p", "100", "-n", "3", "-d", "0,130,20", "-np", "1,4", "-r", "1"});
  ASSERT_THAT(rows, SizeIs(9));
  EXPECT_EQ(rows[3]["n_depth"], 130);
  EXPECT_EQ(rows[3]["n_prompt"], 100);
}

TEST_F(BenchCommand, ZeroLeavesATestOut) {
  const json prompts = Rows({"-p", "8", "-n", "0", "-r", "1"});
  ASSERT_THAT(prompts, SizeIs(1));
  EXPECT_EQ(prompts[0]["n_prompt"], 8);
  const json generations = Rows({"-p", "0", "-n", "2", "-r", "1"});
  ASSERT_THAT(generations, SizeIs(1));
  EXPECT_EQ(generations[0]["n_gen"], 2);
  ExpectUsageError({"-p", "0", "-n", "0"}, "nothing to measure");
}

TEST_F(BenchCommand, RefusesWhatMakesNoSense) {
  ExpectUsageError({"-r", "0"}, "-r 0 leaves nothing to measure");
  ExpectUsageError({"-p", "8,many"}, "--n-prompt");
  ExpectUsageError({"-p", "-8"}, "--n-prompt");
  ExpectUsageError({"-t", "1,x"}, "--threads");
  ExpectUsageError({"-o", "xml"}, "--output");
  ExpectUsageError({"--memory", "-t", "1,2"}, "one number of threads");
  ExpectUsageError({"--memory", "-o", "csv"}, "md or json");
  ExpectUsageError({"--memory", "-p", "8"}, "--memory");
}

TEST_F(BenchCommand, TheContextIsWhatTheTestsNeed) {
  // All 256 positions of the model.
  EXPECT_THAT(Rows({"-p", "16", "-n", "4", "-d", "240", "-r", "1"}), SizeIs(2));
  EXPECT_THAT(Rows({"-p", "0", "-n", "4", "-d", "252", "-r", "1"}), SizeIs(1));
  ExpectUsageError({"-p", "16", "-n", "4", "-d", "0,241"},
                   "need a context of 257, but the model was made for 256");
  ExpectUsageError({"-d", "18446744073709551615"}, "need a context of 18446744073709551615");
  ExpectUsageError({"-p", "16", "-n", "4", "-d", "48", "-c", "63"},
                   "16 tokens at depth 48 need a context of 64, but -c asks for 63");
  EXPECT_THAT(Rows({"-p", "16", "-n", "4", "-d", "48", "-c", "64", "-r", "1"}), SizeIs(2));
}

TEST_F(BenchCommand, ProductsAreComparedWithTheRun) {
  const json rows = Rows({"-p", "40", "-b", "16", "-n", "20", "-r", "3", "--products"});
  ASSERT_THAT(rows, SizeIs(2));
  for (const json& row : rows) {
    const auto run = row["samples_ns"].get<std::vector<double>>();
    const auto products = row["samples_products_ns"].get<std::vector<double>>();
    ASSERT_THAT(products, SizeIs(3));
    EXPECT_THAT(products, Each(Gt(0.0)));
    std::vector<double> fractions;
    for (size_t i = 0; i < 3; ++i) fractions.push_back(products[i] / run[i]);
    EXPECT_NEAR(row["products_fraction"].get<double>(), Median(fractions), 1e-4);
    const double tokens = row["n_prompt"].get<double>() + row["n_gen"].get<double>();
    EXPECT_NEAR(row["products_ts"].get<double>() / (1e9 * tokens / Median(products)), 1.0, 1e-6);
  }
  EXPECT_THAT(Bench({"-p", "8", "-n", "2", "-r", "1", "--products"}).output,
              HasSubstr("| products |"));
}

TEST_F(BenchCommand, AProfileSumsUpToTheWhole) {
  for (const bool with_products : {false, true}) {
    std::vector<std::string> arguments = {"-p", "128", "-n", "32", "-r", "3", "--profile"};
    if (with_products) arguments.push_back("--products");
    const json rows = RowsOfQuietRun(arguments);
    ASSERT_THAT(rows, SizeIs(2));
    for (const json& row : rows) {
      EXPECT_NEAR(row["profile_sum"].get<double>(), 1.0, 0.03) << row["n_prompt"];
      EXPECT_THAT(row["profile"], SizeIs(16));
      double sum = 0.0;
      for (const double fraction : row["profile"]) sum += fraction;
      EXPECT_NEAR(sum, row["profile_sum"].get<double>(), 1e-9);
      for (const char* kind : {"embedding", "qkv_proj", "attention", "down_proj", "lm_head"}) {
        EXPECT_THAT(row["profile"][kind].get<double>(), Gt(0.0)) << kind;
      }
    }
    EXPECT_EQ(rows[0]["profile"]["sampling"], 0.0);
    EXPECT_GT(rows[1]["profile"]["sampling"].get<double>(), 0.0);
  }
}

TEST_F(BenchCommand, AProfileIsATable) {
  const RunResult result =
      Bench({"-p", "16", "-n", "4", "-r", "1", "-t", "1", "-d", "8", "--profile"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("| pp16 @ d8, t1 | tg4 @ d8, t1 |\n"));
  for (const char* name : {"attention", "lm_head", "products", "sum"}) {
    EXPECT_TRUE(std::regex_search(result.output, std::regex(std::string(R"(\n\| )") + name +
                                                            R"( +\| +\d+\.\d% \| +\d+\.\d% \|)")))
        << result.output;
  }
}

TEST_F(BenchCommand, StoppedItPrintsWhatIsMeasured) {
  const RunResult result = support::RunProgram(
      model_->Arguments("bench", {"-p", "1", "-n", "200", "-r", "20", "-o", "csv"}),
      {.interrupt_when = [](const RunResult& so_far) {
        // The output has the header and the line of the first test.
        return std::ranges::count(so_far.output, '\n') == 2;
      }});
  EXPECT_EQ(result.exit_code, 130) << result.error;
  // If this is the first test, the program packs the weights, too.
  EXPECT_THAT(result.error, EndsWith("cria: stopped before all tests were done\n"));
  EXPECT_THAT(Lines(result.output), SizeIs(2));
}

TEST_F(BenchCommand, MemoryIsMeasuredAsItWas) {
  const RunResult table = Bench({"--memory", "-c", "64", "-t", "2"});
  EXPECT_EQ(table.exit_code, 0) << table.error;
  EXPECT_THAT(table.output, HasSubstr("full context"));
  EXPECT_THAT(table.output, HasSubstr("private memory measured is "));
  for (const std::vector<std::string>& format :
       {std::vector<std::string>{"--json"}, {"-o", "json"}}) {
    std::vector<std::string> arguments = {"--memory", "-c", "64", "-t", "2"};
    arguments.insert(arguments.end(), format.begin(), format.end());
    const json memory = json::parse(Bench(arguments).output);
    EXPECT_EQ(memory["plan"]["options"]["context_tokens"], 64);
    EXPECT_EQ(memory["plan"]["options"]["num_threads"], 2);
    EXPECT_EQ(memory["measured"].back()["after"], "full context");
  }
}

}  // namespace
}  // namespace cria
