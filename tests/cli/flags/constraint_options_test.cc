// What a text must match, from the command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using nlohmann::json;
using support::RunProgram;
using support::RunResult;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

using Flags = std::vector<std::string>;

class ConstraintOptionsOfCria : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory = new support::TemporaryDirectory;
    const RunResult converted =
        RunProgram({support::kModelConverter, "--fast", support::kDemoCheckpoint, "-o",
                    Path("model.cria"), "--no-verify"});
    ASSERT_EQ(converted.exit_code, 0) << converted.error;
    Write("schema.json", R"({"type": "object", "properties": {"name": {"enum": ["Cria", "Pi"]}},
                             "required": ["name"], "additionalProperties": false})");
    Write("wrong.json", R"({"type": "array", "uniqueItems": true})");
    Write("grammar.gbnf", "root ::= (\"baa\" | \"moo\") \"!\"\n");
  }
  static void TearDownTestSuite() { delete directory; }

  static std::string Path(const std::string& name) { return directory->path() / name; }
  static void Write(const std::string& name, std::string_view text) {
    std::ofstream(Path(name)) << text;
  }

  static RunResult Cria(const std::string& command, const Flags& more) {
    Flags arguments = {support::kCriaProgram, command, "-m", Path("model.cria")};
    if (command != "plan") {
      arguments.insert(arguments.end(), {"--pack-cache", Path("packed"), "-t", "1"});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments);
  }
  static json Object(const std::string& command, Flags more) {
    more.push_back("--json");
    const RunResult result = Cria(command, more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json::parse(result.output);
  }

  static support::TemporaryDirectory* directory;
};

support::TemporaryDirectory* ConstraintOptionsOfCria::directory = nullptr;

TEST_F(ConstraintOptionsOfCria, TextsMatch) {
  const json chat = Object("chat", {"-p", "Who are you?", "--json-schema", Path("schema.json")});
  EXPECT_THAT(json::parse(chat["content"].get<std::string>())["name"].get<std::string>(),
              AnyOf("Cria", "Pi"));
  EXPECT_EQ(chat["stop_reason"], "stop_token");
  EXPECT_GT(chat["forced_tokens"], 0);
  const json run = Object("run", {"-p", "A llama says", "--grammar", Path("grammar.gbnf")});
  EXPECT_THAT(run["text"].get<std::string>(), AnyOf("baa!", "moo!"));
  EXPECT_THAT(Object("run", {"-p", "a", "--regex", "[0-9]{2} cm"})["text"].get<std::string>(),
              MatchesRegex("[0-9][0-9] cm"));
  // No text of this schema has so few tokens.
  Write("long.json", R"({"const": "a text that is longer than five tokens"})");
  for (const char* command : {"run", "chat"}) {
    EXPECT_THAT(Cria(command, {"-p", "a", "--json-schema", Path("long.json"), "-n", "5"}).error,
                HasSubstr("the answer ends before it is whole"));
    EXPECT_THAT(Cria(command, {"-p", "a", "--json-schema", Path("long.json"), "-n", "60"}).error,
                testing::Not(HasSubstr("before it is whole")));
  }
  const json any = Object("run", {"-p", "a", "--any-json", "-n", "30"});
  EXPECT_TRUE(json::accept(any["text"].get<std::string>())) << any["text"];
  const RunResult printed = Cria("chat", {"-p", "a", "--json-schema", Path("schema.json")});
  EXPECT_THAT(printed.error, HasSubstr("without a choice"));
}

TEST_F(ConstraintOptionsOfCria, EachAnswerOfAChatMatches) {
  const RunResult result =
      RunProgram({support::kCriaProgram, "chat", "-m", Path("model.cria"), "--pack-cache",
                  Path("packed"), "--lines", "-q", "--regex", "yes|no"},
                 {.input = "Hello!\nWho are you?\nGoodbye!\n"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, testing::MatchesRegex("((yes|no)\n+){3}"));
}

TEST_F(ConstraintOptionsOfCria, WhatMakesNoSenseIsRefused) {
  const auto expect_refused = [](const Flags& flags, std::string_view words) {
    Flags all = {"-p", "a"};
    all.insert(all.end(), flags.begin(), flags.end());
    for (const char* command : {"run", "chat"}) {
      const RunResult result = Cria(command, all);
      EXPECT_NE(result.exit_code, 0) << words;
      EXPECT_THAT(result.output, IsEmpty()) << words;
      EXPECT_THAT(result.error, HasSubstr(std::string(words)));
    }
  };
  expect_refused({"--any-json", "--regex", "a"}, "--regex");
  expect_refused({"--grammar", Path("grammar.gbnf"), "--json-schema", Path("schema.json")},
                 "--json-schema");
  expect_refused({"--json-schema", Path("none.json")}, "none.json");
  expect_refused({"--json-schema", Path("wrong.json")}, "wrong.json: ");
  expect_refused({"--json-schema", Path("wrong.json")}, "uniqueItems");
  expect_refused({"--regex", "(a"}, "--regex: ");
}

TEST_F(ConstraintOptionsOfCria, ThePlanHasALine) {
  const auto bytes_of_line = [](const json& plan) {
    for (const json& line : plan["lines"]) {
      if (line["name"] == "constraints") return line["bytes"].get<uint64_t>();
    }
    return uint64_t{0};
  };
  EXPECT_EQ(bytes_of_line(Object("plan", {})), 0u);
  EXPECT_GT(bytes_of_line(Object("plan", {"--any-json"})), 0u);
}

}  // namespace
}  // namespace cria
