// Runs cria template like a user.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Writes turns as Llama 3 does, and has a switch for reasoning.
constexpr std::string_view kTemplate =
    "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content }}"
    "<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant"
    "<|end_header_id|>\n\n{% if enable_thinking %}<think>\n{% endif %}{% endif %}";

class TemplateCommandTest : public testing::Test {
 protected:
  // One vocabulary for all tests.
  static void SetUpTestSuite() {
    directory_ = new support::TemporaryDirectory;
    const auto checkpoint = *directory_ / "checkpoint";
    support::WriteRandomCheckpoint(support::SpecMha(), checkpoint);
    support::WriteFile(*directory_ / "template.jinja", kTemplate);
    for (const std::string name : {"template.jinja", "none"}) {
      const bool is_file = name != "none";
      const RunResult converted =
          RunProgram({support::kModelConverter, "--fast", checkpoint, "-o",
                      *directory_ / (is_file ? "model.cria" : "none.cria"), "--vocab-only",
                      "--chat-template", is_file ? (*directory_ / name).string() : name});
      ASSERT_EQ(converted.exit_code, 0) << converted.error;
    }
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string PathOf(const std::string& name) { return *directory_ / name; }
  static RunResult Template(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {support::kCriaProgram, "template", "-m", PathOf("model.cria")});
    return RunProgram(arguments);
  }
  static std::string Turn(const std::string& role, const std::string& content) {
    return "<|start_header_id|>" + role + "<|end_header_id|>\n\n" + content;
  }

  static support::TemporaryDirectory* directory_;
};

support::TemporaryDirectory* TemplateCommandTest::directory_ = nullptr;

TEST_F(TemplateCommandTest, APipeGetsTheTextAlone) {
  const RunResult result = Template({"-sys", "Be kind.", "-p", "a\x1b[1m\nb"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.output, Turn("system", "Be kind.<|eot_id|>") +
                               Turn("user", "a\x1b[1m\nb<|eot_id|>") + Turn("assistant", ""));
  EXPECT_THAT(result.error, IsEmpty());
  EXPECT_EQ(Template({"-p", "Hi", "--no-generation-prompt"}).output, Turn("user", "Hi<|eot_id|>"));
}

TEST_F(TemplateCommandTest, WithoutMessagesAnExampleIsShown) {
  const RunResult result = Template({});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  for (const char* role : {"user", "assistant"}) {
    EXPECT_THAT(result.output, HasSubstr("<|start_header_id|>" + std::string(role)));
  }
  EXPECT_THAT(result.output, EndsWith(Turn("assistant", "")));
}

TEST_F(TemplateCommandTest, ReadsMessages) {
  support::WriteFile(PathOf("messages.json"),
                     R"({"messages": [{"role": "user", "content": "one"},
                                      {"role": "assistant", "content": "two"}]})");
  const RunResult result =
      Template({"--messages", PathOf("messages.json"), "-sys", "S", "-p", "three"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.output, Turn("system", "S<|eot_id|>") + Turn("user", "one<|eot_id|>") +
                               Turn("assistant", "two<|eot_id|>") +
                               Turn("user", "three<|eot_id|>") + Turn("assistant", ""));
}

TEST_F(TemplateCommandTest, VariablesReachTheTemplate) {
  const RunResult result =
      Template({"-p", "Hi", "--chat-template-kwargs", R"({"enable_thinking": true})"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, EndsWith("\n\n<think>\n"));
}

TEST_F(TemplateCommandTest, ThinkTurnsReasoningOnAndOff) {
  EXPECT_THAT(Template({"-p", "Hi", "--think", "on"}).output, EndsWith("\n\n<think>\n"));
  EXPECT_THAT(Template({"-p", "Hi", "--think", "hide"}).output, EndsWith("\n\n<think>\n"));
  EXPECT_THAT(Template({"-p", "Hi", "--think", "off"}).output,
              EndsWith("assistant<|end_header_id|>\n\n"));
  const RunResult twice = Template(
      {"-p", "Hi", "--think", "on", "--chat-template-kwargs", R"({"enable_thinking": false})"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.error, HasSubstr("is set twice"));
}

TEST_F(TemplateCommandTest, JsonHasTheTokens) {
  const RunResult result =
      Template({"-p", "\xC3\xA9<|eot_id|>", "--json", "--chat-template-kwargs", "{}"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["text"], Turn("user", "\xC3\xA9<|eot_id|><|eot_id|>") + Turn("assistant", ""));
  EXPECT_EQ(json["thinking_variable"], "enable_thinking");
  EXPECT_EQ(json["opens_reasoning"], false);
  ASSERT_EQ(json["num_tokens"], json["tokens"].size());
  // The user's text is no special token.
  const auto is_end = [](const auto& token) { return token["text"] == "<|eot_id|>"; };
  EXPECT_EQ(std::ranges::count_if(json["tokens"], is_end), 1);
  // The ids are those of cria tokenize, with the BOS token that this vocabulary wants.
  const RunResult ids =
      RunProgram({support::kCriaProgram, "tokenize", "-m", PathOf("model.cria"), "--ids", "-p",
                  Turn("user", "x<|eot_id|>") + Turn("assistant", "")});
  std::string listed;
  const auto same = nlohmann::json::parse(Template({"-p", "x", "--json"}).output);
  for (const auto& token : same["tokens"]) listed += token["id"].dump() + "\n";
  EXPECT_EQ(listed, ids.output);
}

TEST_F(TemplateCommandTest, ATerminalGetsTheTokensToo) {
  const std::string program = support::kCriaProgram;
  if (program.contains(' ') || RunProgram({"sh", "-c", "command -v script"}).exit_code != 0) {
    GTEST_SKIP() << "there is no program `script`, which makes a terminal";
  }
  const RunResult result = RunProgram(
      {"script", "-qec", program + " template -m " + PathOf("model.cria") + " -p 'a\x1b[1m'",
       "/dev/null"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("a\\x1b[1m<|eot_id|>"));
  EXPECT_THAT(result.output, testing::ContainsRegex("\n[0-9]+ tokens:\r?\n"));
  EXPECT_THAT(result.output, HasSubstr("'<|start_header_id|>'"));
  EXPECT_THAT(result.output, Not(HasSubstr("\x1b[1m")));
}

TEST_F(TemplateCommandTest, WithoutATemplateContentsAreJoined) {
  const RunResult result = RunProgram(
      {support::kCriaProgram, "template", "-m", PathOf("none.cria"), "-sys", "a", "-p", "b"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.output, "ab");
  EXPECT_THAT(result.error, HasSubstr("has no chat template"));
}

TEST_F(TemplateCommandTest, ErrorsSayWhatIsWrong) {
  const auto expect_error = [](const RunResult& result, int exit_code, const std::string& words) {
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(result.error, HasSubstr(words));
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
  };
  expect_error(Template({"--chat-template-kwargs", "{"}), 2, "variables are not JSON");
  expect_error(Template({"--chat-template-kwargs", R"({"messages": 1})"}), 2,
               "the template's variable messages cannot be set");
  expect_error(Template({"--messages", "/nowhere.json"}), 1, "/nowhere.json: cannot read");
  support::WriteFile(PathOf("system.json"), R"([{"role": "system", "content": "a"}])");
  expect_error(Template({"--messages", PathOf("system.json"), "-sys", "b"}), 2,
               "system.json: begins with a system prompt; leave out -sys");
  support::WriteFile(PathOf("bad.json"), R"([{"role": "user"}])");
  expect_error(Template({"--messages", PathOf("bad.json")}), 1,
               "bad.json: messages[0].content is missing");
}

}  // namespace
}  // namespace cria
