// Runs cria like a user: what it prints to which output, and its exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/emulation.h"
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
using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class CriaProgram : public testing::Test {
 protected:
  // One model for all tests, because making it takes most of their time.
  static void SetUpTestSuite() {
    directory_ = new support::TemporaryDirectory;
    const auto checkpoint = directory_->path() / "checkpoint";
    support::WriteHuggingFaceDirectory(support::MakeModel(support::SpecGqa()), checkpoint, {});
    const RunResult converted = RunProgram(
        {support::kModelConverter, "--fast", checkpoint, "-o", ModelPath(), "--weights", "int8"});
    ASSERT_EQ(converted.exit_code, 0) << converted.error;
    // So that no other command says that it packs.
    const RunResult packed = RunProgram({support::kCriaProgram, "pack", "-m", ModelPath()});
    ASSERT_EQ(packed.exit_code, 0) << packed.error;
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string ModelPath() { return directory_->path() / "model.cria"; }

  static RunResult Cria(std::vector<std::string> arguments, const RunOptions& options = {}) {
    arguments.insert(arguments.begin(), support::kCriaProgram);
    return RunProgram(arguments, options);
  }

  // Expects a failure: one sentence on standard error, and nothing on standard output.
  static void ExpectError(const RunResult& result, const std::string& words) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(result.error, StartsWith("cria: error: "));
    EXPECT_THAT(result.error, HasSubstr(words));
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
  }

  static support::TemporaryDirectory* directory_;
};

support::TemporaryDirectory* CriaProgram::directory_ = nullptr;

TEST_F(CriaProgram, AModelInThePlaceOfACommandChats) {
  const std::vector<std::string> more = {"-p", "abc", "-n", "4", "--temp", "0", "-q"};
  std::vector<std::string> arguments = {"chat", "-m", ModelPath()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunResult chat = Cria(arguments);
  ASSERT_EQ(chat.exit_code, 0) << chat.error;
  arguments.erase(arguments.begin(), arguments.begin() + 2);
  const RunResult named = Cria(arguments);
  EXPECT_EQ(named.exit_code, 0) << named.error;
  EXPECT_EQ(named.output, chat.output);
  const std::string gguf = directory_->path() / "model.gguf";
  support::WriteFile(gguf, "GGUF");
  ExpectError(Cria({"info", gguf}), "is a GGUF file and not a Cria model file; convert it with: ");
  const RunResult not_asked = Cria({gguf});
  EXPECT_EQ(not_asked.exit_code, 2);
  EXPECT_THAT(not_asked.error, HasSubstr("; -y converts it, and so does cria pull "));
  ExpectError(Cria({"missing.cria"}), "missing.cria");
  const RunResult unknown = Cria({"missing"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.error, HasSubstr("there is no command \"missing\""));
}

TEST_F(CriaProgram, RunPrintsPromptAndContinuationAlone) {
  const RunResult result = Cria({"run", "-m", ModelPath(), "-p", "abc", "-n", "5", "--temp", "0",
                                 "--ignore-eos", "--no-pack-cache"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, StartsWith("abc"));
  EXPECT_THAT(result.error, HasSubstr("tok/s"));
  EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
}

TEST_F(CriaProgram, TheSameSeedGivesTheSameText) {
  const std::vector<std::string> arguments = {"run", "-m", ModelPath(), "-p", "abc",
                                              "-n",  "20", "-s",        "7",  "--ignore-eos"};
  std::vector<std::string> other_seed = arguments;
  other_seed[8] = "8";
  const std::string first = Cria(arguments).output;
  EXPECT_EQ(Cria(arguments).output, first);
  EXPECT_NE(Cria(other_seed).output, first);
}

TEST_F(CriaProgram, ThePrintedSeedGivesTheSameTextAgain) {
  const auto run = [](const std::string& seed) {
    return Cria({"run", "-m", ModelPath(), "-p", "abc", "-n", "20", "--ignore-eos", "-s", seed});
  };
  const RunResult random = run("-1");
  const size_t begin = random.error.rfind("seed ");
  ASSERT_NE(begin, std::string::npos) << random.error;
  const RunResult again = run(random.error.substr(begin + 5, random.error.size() - begin - 6));
  EXPECT_EQ(again.exit_code, 0) << again.error;
  EXPECT_EQ(again.output, random.output);
}

TEST_F(CriaProgram, TextsComeFromStandardInput) {
  const std::string text = "a\\n\xC3\xB6\n";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"tokenize", "-m", ModelPath()},
        {"run", "-m", ModelPath(), "-n", "4", "--temp", "0", "--ignore-eos"}}) {
    std::vector<std::string> with_text = arguments;
    with_text.insert(with_text.end(), {"-p", text});
    std::vector<std::string> with_file = arguments;
    with_file.insert(with_file.end(), {"-f", "-"});
    const RunResult expected = Cria(with_text, {.input = "not this"});
    ASSERT_EQ(expected.exit_code, 0) << expected.error;
    EXPECT_EQ(Cria(arguments, {.input = text}).output, expected.output);
    EXPECT_EQ(Cria(with_file, {.input = text}).output, expected.output);
  }
}

TEST_F(CriaProgram, EscapesAreReadInThePromptAlone) {
  const auto ids = [](std::vector<std::string> arguments, const std::string& input) {
    arguments.insert(arguments.begin(), {"tokenize", "-m", ModelPath(), "--ids"});
    return Cria(arguments, {.input = input}).output;
  };
  EXPECT_EQ(ids({"-e", "-p", "a\\nb"}, ""), ids({"-p", "a\nb"}, ""));
  EXPECT_EQ(ids({"-e"}, "a\\nb"), ids({"-p", "a\\nb"}, ""));
  EXPECT_NE(ids({"-e"}, "a\\nb"), ids({"-p", "a\nb"}, ""));
}

TEST_F(CriaProgram, StopStringsAndBiasesReachTheRun) {
  const std::vector<std::string> arguments = {"run", "-m",           ModelPath(), "-p",
                                              "abc", "-n",           "12",        "--temp",
                                              "0",   "--ignore-eos", "--json",    "-q"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return nlohmann::json::parse(Cria(all).output);
  };
  const auto whole = run({});
  EXPECT_EQ(whole["stop_reason"], "max_tokens");
  const auto text = whole["text"].get<std::string>();
  const auto found = std::ranges::find_if(text, [](char c) { return c > ' ' && c < 0x7F; });
  ASSERT_NE(found, text.end());
  const auto stopped = run({"--stop", "never in this text", "--stop", std::string(1, *found)});
  EXPECT_EQ(stopped["stop_reason"], "stop_string");
  EXPECT_EQ(stopped["text"], std::string(text.begin(), found));
  // Two tokens have high biases, and the one with the higher bias is forbidden.
  const auto bias = [](const char* character, const std::string& addend) {
    const RunResult tokens =
        Cria({"tokenize", "-m", ModelPath(), "--json", "--ids", "-p", character});
    return nlohmann::json::parse(tokens.output)["ids"].back().dump() + addend;
  };
  const std::string higher = bias("x", "+2000");
  const std::string lower = bias("z", "+1000");
  const auto biased = run({"--logit-bias", higher, "--logit-bias", lower});
  const auto forbidden =
      run({"--logit-bias", higher, "--logit-bias", lower, "--logit-bias", bias("x", "-inf")});
  EXPECT_THAT(biased["text"].get<std::string>(), HasSubstr("xx"));
  EXPECT_THAT(forbidden["text"].get<std::string>(), AllOf(HasSubstr("zz"), Not(HasSubstr("x"))));
}

TEST_F(CriaProgram, ResultsCanBeJson) {
  const RunResult run = Cria({"run", "-m", ModelPath(), "-p", "a\xFF", "-n", "5", "--ignore-eos",
                              "--json", "-s", "18446744073709551615", "-q"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.error, IsEmpty());
  const auto figures = nlohmann::json::parse(run.output);
  EXPECT_EQ(figures["prompt"], "a\uFFFD");
  EXPECT_EQ(figures["seed"], 18446744073709551615U);
  EXPECT_EQ(figures["generated_tokens"], 5);
  EXPECT_EQ(figures["stop_reason"], "max_tokens");
  for (const char* field :
       {"prompt_tokens", "prompt_tokens_per_second", "generated_tokens_per_second", "load_ms",
        "first_token_ms", "threads", "peak_resident_bytes", "context_tokens"}) {
    EXPECT_GT(figures[field].get<double>(), 0.0) << field;
  }
  EXPECT_GE(figures["first_token_ms"], figures["load_ms"]);

  const auto tokens = nlohmann::json::parse(
      Cria({"tokenize", "-m", ModelPath(), "--json", "-p", "a\xC3\xB6"}).output);
  EXPECT_EQ(tokens["count"], tokens["ids"].size());
  EXPECT_EQ(tokens["count"], tokens["pieces"].size());
  EXPECT_FALSE(nlohmann::json::parse(
                   Cria({"tokenize", "-m", ModelPath(), "--json", "--ids", "-p", "a"}).output)
                   .contains("pieces"));
}

TEST_F(CriaProgram, AQuietRunPrintsTheTextAlone) {
  const std::vector<std::string> arguments = {
      "run", "-m",           ModelPath(),      "-p", "abc", "-n", "5", "--temp",
      "0",   "--ignore-eos", "--no-pack-cache"};
  std::vector<std::string> quiet = arguments;
  quiet.push_back("-q");
  const RunResult result = Cria(quiet);
  EXPECT_EQ(result.output, Cria(arguments).output);
  EXPECT_THAT(result.error, IsEmpty());
}

TEST_F(CriaProgram, ThreadsAndChunksGiveTheSameText) {
  const std::vector<std::string> arguments = {"run",    "-m", ModelPath(), "-p", "hello there",
                                              "--temp", "0",  "-n",        "16", "--ignore-eos",
                                              "-t",     "1",  "-b",        "128"};
  std::vector<std::string> three_threads = arguments;
  three_threads[11] = "3";
  std::vector<std::string> two_pools = arguments;
  two_pools.insert(two_pools.end(), {"-tb", "2"});
  const std::string text = Cria(arguments).output;
  EXPECT_EQ(Cria(three_threads).output, text);
  EXPECT_EQ(Cria(two_pools).output, text);
}

TEST_F(CriaProgram, RunStopsWhereTheContextEnds) {
  const std::vector<std::string> arguments = {"run", "-m", ModelPath(), "-p",
                                              "abc", "-n", "400",       "--temp",
                                              "0",   "-c", "32",        "--ignore-eos"};
  const RunResult result = Cria(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("cria: the context of 32 tokens is full; ask for a larger "
                                      "one with -c, or drop its oldest part with "
                                      "--context-full shift\n"));
  std::vector<std::string> said_so = arguments;
  said_so.insert(said_so.end(), {"--context-full", "stop"});
  EXPECT_EQ(Cria(said_so).output, result.output);
}

TEST_F(CriaProgram, RunGoesOnFarPastTheContextWhenTold) {
  const std::vector<std::string> arguments = {
      "run", "-m",           ModelPath(),      "-p",    "abc",
      "-n",  "400",          "--temp",         "0",     "-c",
      "32",  "--ignore-eos", "--context-full", "shift", "--no-pack-cache"};
  const RunResult result = Cria(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("decode 399 tokens"));
  EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
  EXPECT_EQ(Cria(arguments).output, result.output);
  for (const char* keep : {"0", "31", "-1"}) {
    std::vector<std::string> keeping = arguments;
    keeping.insert(keeping.end(), {"--keep", keep, "--kv", "int8"});
    const RunResult kept = Cria(keeping);
    EXPECT_EQ(kept.exit_code, 0) << kept.error;
    EXPECT_THAT(kept.error, HasSubstr("decode 399 tokens"));
  }
}

TEST_F(CriaProgram, KeepingTheWholeContextIsRefusedBeforeAnythingIsRun) {
  const auto run = [](const std::string& prompt, const std::string& keep) {
    return Cria({"run", "-m", ModelPath(), "-p", prompt, "-c", "64", "--keep", keep,
                 "--context-full", "shift"});
  };
  for (const char* keep : {"64", "9999999999"}) {
    const RunResult result = run("abc", keep);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(result.error, HasSubstr("--keep"));
  }
  ExpectError(run(std::string(400, 'q'), "-1"), "shorten it or ask for a larger context");
  EXPECT_EQ(Cria({"run", "-m", ModelPath(), "-p", "a", "--keep", "-2"}).exit_code, 2);
  EXPECT_EQ(Cria({"run", "-m", ModelPath(), "-p", "a", "--context-full", "x"}).exit_code, 2);
}

TEST_F(CriaProgram, InfoTellsEverything) {
  const RunResult text = Cria({"info", ModelPath(), "--check"});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.output, HasSubstr("layers.0.qkv_proj"));
  const RunResult json = Cria({"info", ModelPath(), "--json"});
  const auto parsed = nlohmann::json::parse(json.output);
  EXPECT_EQ(parsed["config"]["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(parsed["file_bytes"], std::filesystem::file_size(ModelPath()));
}

TEST_F(CriaProgram, InfoShowsTheKindsOfLayers) {
  const auto checkpoint = directory_->path() / "two-ropes";
  const std::string model = directory_->path() / "two-ropes.cria";
  support::WriteHuggingFaceDirectory(support::MakeModel(support::SpecTwoRopes()), checkpoint, {});
  const RunResult converted =
      RunProgram({support::kModelConverter, "--fast", checkpoint, "-o", model});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  const RunResult text = Cria({"info", model});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.output,
              HasSubstr("  layer_kinds[0]                   layers 0-1, sliding_window "
                        "12, rope_theta 10000.0, rope_scaling none\n"));
  EXPECT_THAT(text.output, HasSubstr("  layer_kinds[1]                   layers 2, rope_theta "
                                     "1000000.0, rope_scaling yarn, rope_scaling_factor 4.0, "));
  EXPECT_THAT(text.output, Not(HasSubstr("\n  rope_theta")));
  const auto config = nlohmann::json::parse(Cria({"info", model, "--json"}).output)["config"];
  EXPECT_FALSE(config.contains("rope_theta"));
  EXPECT_FALSE(config.contains("sliding_window"));
  ASSERT_EQ(config["layer_kinds"].size(), 2u);
  EXPECT_EQ(config["layer_kinds"][0]["layers"], (std::vector<int>{0, 1}));
  EXPECT_EQ(config["layer_kinds"][0]["sliding_window"], 12);
  EXPECT_EQ(config["layer_kinds"][1]["attention_factor"], 1.25);
  EXPECT_FALSE(config["layer_kinds"][1].contains("sliding_window"));
  // Cosines and sines of two tables of 64 positions and 8 pairs.
  const RunResult plan = Cria({"plan", "-m", model, "-c", "64"});
  EXPECT_THAT(plan.output, ContainsRegex("rope tables +8192 "));
  const RunResult run = Cria({"run", "-m", model, "-p", "a", "-n", "40", "-c", "64"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
}

TEST_F(CriaProgram, PerplexityGoesToStandardOutput) {
  const std::string text = directory_->path() / "text.txt";
  support::WriteFile(text, std::string(300, 'e') + " some words");
  const RunResult result = Cria({"perplexity", "-m", ModelPath(), "-f", text, "-c", "64"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("mean negative log-likelihood: "));
  const RunResult json =
      Cria({"perplexity", "-m", ModelPath(), "-f", text, "-c", "64", "--json", "-q"});
  EXPECT_THAT(json.error, IsEmpty());
  const auto figures = nlohmann::json::parse(json.output);
  EXPECT_THAT(result.output, HasSubstr("tokens: " + figures["tokens"].dump() + "\n"));
  EXPECT_GT(figures["perplexity"], 1.0);
}

// Text of users and files is escaped; answers are printed as they are.
TEST_F(CriaProgram, NamesCannotDriveTheTerminal) {
  const RunResult error = Cria({"info", "/nowhere/\x1b[2J\u202Egpj\xff.cria"});
  EXPECT_EQ(error.exit_code, 1);
  EXPECT_THAT(error.error, HasSubstr("/nowhere/\\x1b[2J\\u202egpj\\xff.cria: "));
  const RunResult tokens = Cria({"tokenize", "-m", ModelPath(), "-p", "a\x1b\n\u202E"});
  EXPECT_EQ(tokens.exit_code, 0) << tokens.error;
  EXPECT_THAT(tokens.output, AllOf(HasSubstr("'\\x1b'\n"), HasSubstr("'\\x0a'\n"),
                                   Not(HasSubstr("\x1b")), Not(HasSubstr("\u202E"))));
}

TEST_F(CriaProgram, APromptThatCannotFitTakesLittleMemory) {
  const std::string path = directory_->path() / "long.txt";
  const auto run = [&](const std::string& prompt) {
    support::WriteFile(path, prompt);
    return Cria({"run", "-m", ModelPath(), "-f", path, "-c", "64"});
  };
  const RunResult shortest = run("a");
  EXPECT_EQ(shortest.exit_code, 0) << shortest.error;
  // The tokens of a text that is a little too long are counted.
  constexpr size_t kCountedBytes = 65536;
  const RunResult one_word = run(std::string(kCountedBytes, 'q'));
  ExpectError(one_word, "more than 64 tokens, which do not fit into the context");
  std::string words;
  while (words.size() < kCountedBytes - 20) words += "some words ";
  ExpectError(run(words), "more than 64 tokens, which do not fit into the context");
  const RunResult long_text = run(std::string(size_t{4} << 20, 'q'));
  ExpectError(long_text,
              "long.txt: has more than the 65536 bytes that can fit the context of 64 "
              "tokens; shorten it, or ask for a larger context with -c");
  if (support::IsEmulated()) return;  // The emulator's memory would be counted.
  constexpr size_t kLittle = size_t{8} << 20;
  EXPECT_LT(one_word.peak_resident_bytes, shortest.peak_resident_bytes + kLittle);
  EXPECT_LT(long_text.peak_resident_bytes, shortest.peak_resident_bytes + kLittle);
}

TEST_F(CriaProgram, WithoutDescriptorsTheErrorSaysSo) {
  if (support::IsEmulated()) GTEST_SKIP() << "the emulator needs file descriptors of its own";
  const RunResult run = RunProgram({"/bin/sh", "-c", "exec 3>&-; ulimit -n 4; exec \"$@\"", "sh",
                                    support::kCriaProgram, "run", "-m", ModelPath(), "-p", "a",
                                    "-n", "1", "--no-pack-cache"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error,
              AnyOf(HasSubstr("no file descriptor is free"), HasSubstr("Too many open files"),
                    HasSubstr("error while loading shared libraries")));
  EXPECT_THAT(run.error, Not(HasSubstr("does not run on this processor")));
}

TEST_F(CriaProgram, HelpAndVersionSucceed) {
  EXPECT_EQ(Cria({"--help"}).exit_code, 0);
  EXPECT_THAT(Cria({"--version"}).output, StartsWith("cria 0."));
  for (const char* command : {"chat", "run", "info", "perplexity", "tokenize"}) {
    EXPECT_EQ(Cria({command, "--help"}).exit_code, 0) << command;
  }
}

TEST_F(CriaProgram, UsageErrorsExitWithTwo) {
  EXPECT_EQ(Cria({}).exit_code, 2);
  EXPECT_EQ(Cria({"sing"}).exit_code, 2);
  EXPECT_EQ(Cria({"run"}).exit_code, 2);
  EXPECT_EQ(Cria({"run", "-m", ModelPath(), "--kv", "f8"}).exit_code, 2);
  EXPECT_EQ(Cria({"run", "-m", ModelPath(), "-p", "a", "--temp", "-1"}).exit_code, 2);
  EXPECT_EQ(Cria({"run", "-m", ModelPath(), "-p", "a", "-c", "9999999"}).exit_code, 2);
  EXPECT_EQ(Cria({"inof", ModelPath()}).exit_code, 2);
}

TEST_F(CriaProgram, OptionsOfOtherProgramsAreNotMisread) {
  const std::pair<const char*, const char*> options[] = {
      {"-hf", "cria-convert hf:ORG/NAME"},
      {"-ngl", "leave it out"},
      {"-fa", "leave it out"},
      {"--no-mmap", "--no-pack-cache"},
      {"-ctk", "--kv"},
      {"-ub", "-b alone"},
      {"-qe", "there is no option -qe"},
      {"--chat-template", "cria-convert --chat-template"}};
  for (const auto& [option, words] : options) {
    const RunResult run = Cria({"chat", "-m", ModelPath(), "-p", "a", option, "x/y"});
    EXPECT_EQ(run.exit_code, 2) << option;
    EXPECT_EQ(run.output, "") << option;
    EXPECT_THAT(run.error, HasSubstr(words));
  }
  const RunResult hot = Cria({"run", "-m", ModelPath(), "-p", "a", "--temp", "99"});
  EXPECT_EQ(hot.exit_code, 2);
  EXPECT_THAT(hot.error, HasSubstr("--temp: \"99\" is not a number from 0 to 10"));
}

TEST_F(CriaProgram, AModelMayStandWithoutItsFlag) {
  EXPECT_EQ(Cria({"info", ModelPath()}).exit_code, 0);
  EXPECT_EQ(Cria({"plan", ModelPath()}).exit_code, 0);
  const RunResult run = Cria({"run", ModelPath(), "-p", "abc", "-n", "1", "--temp", "0"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(Cria({"run", "-p", "abc", "-m", ModelPath(), "-n", "1", "--temp", "0"}).output,
            run.output);
  EXPECT_EQ(Cria({"run", "-m", ModelPath(), ModelPath()}).exit_code, 2);
}

TEST_F(CriaProgram, ErrorsAreOneSentence) {
  ExpectError(Cria({"run", "-m", "/nowhere/model.cria", "-p", "a"}), "/nowhere/model.cria");
  ExpectError(Cria({"info", "/dev/null"}), "not a regular file");
  const std::string not_a_model = directory_->path() / "text.cria";
  support::WriteFile(not_a_model, std::string(1000, 'a'));
  ExpectError(Cria({"run", "-m", not_a_model, "-p", "a"}),
              "is not a Cria model file; make one with a matching cria-convert");
  ExpectError(Cria({"run", "-m", ModelPath(), "-p", std::string(400, 'q'), "-c", "64"}),
              "but the context holds 64; shorten it or ask for a larger context with -c");
  ExpectError(Cria({"run", "-m", ModelPath(), "-f", "/nowhere.txt"}), "/nowhere.txt");
  ExpectError(Cria({"run", "-m", ModelPath(), "-f", "/"}), "/: cannot read: Is a directory");
}

TEST_F(CriaProgram, DamagedWeightsAreFoundByCheck) {
  const std::string damaged = directory_->path() / "damaged.cria";
  std::string bytes = support::ReadFile(ModelPath());
  bytes[bytes.size() - 4096] ^= 1;
  support::WriteFile(damaged, bytes);
  const RunResult result = Cria({"info", damaged, "--check"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("checksum does not match"));
}

}  // namespace
}  // namespace cria
