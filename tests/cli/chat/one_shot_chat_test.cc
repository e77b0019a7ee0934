// Scripts and pipes: what `cria chat` prints where, and its exit codes, if nobody types.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/demo_model.h"
#include "support/emulation.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/terminal_program.h"

namespace cria {
namespace {

using support::RunOptions;
using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kQuestion = "Hello! Who are you?";
constexpr const char* kAnswer =
    "Hello! I am Cria, a baby llama. What would you like to talk about?\n";

class OneShotChat : public testing::Test {
 protected:
  static RunResult Chat(const std::vector<std::string>& more, const RunOptions& options = {}) {
    std::vector<std::string> arguments = {
        support::kCriaProgram, "chat", "-m", tests::DemoModel(), "--temp", "0", "-c", "512"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments, options);
  }
  std::string Write(const std::string& name, const std::string& text) const {
    support::WriteFile(folder_.path() / name, text);
    return folder_.path() / name;
  }

  support::TemporaryDirectory folder_;
};

TEST_F(OneShotChat, EveryWayToAskPrintsOneAnswerAndNothingElse) {
  const std::string file = Write("question.txt", std::string(kQuestion) + "\n");
  const std::string messages =
      Write("messages.json", R"([{"role": "user", "content": "Hello! Who are you?"}])");
  for (const auto& [arguments, input] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"-p", kQuestion}, ""},
           {{"-p", kQuestion}, "never read\n"},
           {{"-f", file}, "never read\n"},
           {{"--messages", messages}, "never read\n"},
           {{"-f", "-"}, kQuestion},
           {{}, kQuestion},
           {{}, std::string(kQuestion) + "\r\n"},
           {{"--lines"}, std::string(kQuestion) + "\n\n"},
           {{"-st"}, kQuestion},
           {{"-e", "-p", R"(Hello! Who are\x20you?)"}, ""}}) {
    const RunResult result = Chat(arguments, {.input = input});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.output, kAnswer);
    EXPECT_THAT(result.error, HasSubstr("tok/s"));
    EXPECT_THAT(result.error, HasSubstr("| seed "));
    EXPECT_THAT(result.error, Not(HasSubstr("/help")));
  }
}

TEST_F(OneShotChat, InputThatIsNotNeededIsLeftToTheScript) {
  const RunResult result =
      RunProgram({"sh", "-c", "while read q; do \"$0\" chat -m \"$1\" --temp 0 -q -p \"$q\"; done",
                  support::kCriaProgram, tests::DemoModel()},
                 {.input = "Hello! Who are you?\nThank you. Goodbye!\nHello! Who are you?\n"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.error, IsEmpty());
  EXPECT_EQ(std::ranges::count(result.output, '\n'), 3) << result.output;
  EXPECT_THAT(result.output, StartsWith(kAnswer));
  EXPECT_THAT(result.output, testing::EndsWith(kAnswer));
}

TEST_F(OneShotChat, TextFromAPipeIsOneMessageWithoutCommands) {
  const std::string session = folder_.path() / "session";
  const RunResult result =
      Chat({"--session", session}, {.input = "Summarize:\n/exit\n/reset\n\nthis text.\n"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(support::ReadFile(session).contains("Summarize:\n/exit\n/reset\n\nthis text."));
}

TEST_F(OneShotChat, LinesAreOneConversation) {
  const RunResult result =
      Chat({"--lines"}, {.input = "My name is Ann.\n/unknown words\nWhat is my name?\n"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(std::ranges::count(result.output, '\n'), 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("You are Ann.\n"));
  const RunResult alone = Chat({"--lines", "--json"}, {.input = "My name is Ann.\nHello!\n"});
  const size_t second = alone.output.find('\n') + 1;
  EXPECT_EQ(nlohmann::json::parse(alone.output.substr(0, second))["role"], "assistant");
  EXPECT_EQ(nlohmann::json::parse(alone.output.substr(second))["stop_reason"], "stop_token");
}

TEST_F(OneShotChat, MessagesArePrintedIfThatIsWanted) {
  const RunResult result =
      Chat({"--lines", "--display-prompt"}, {.input = "Hello! Who are you?\n"});
  EXPECT_EQ(result.output, std::string("> ") + kQuestion + "\n" + kAnswer);
  const std::string messages =
      Write("messages.json", R"([{"role": "user", "content": "Hello! Who are you?"}])");
  EXPECT_EQ(Chat({"--messages", messages, "--display-prompt"}).output,
            std::string("> ") + kQuestion + "\n" + kAnswer);
  EXPECT_EQ(Chat({"--display-prompt", "--json", "-p", kQuestion}).exit_code, 2);
  const std::string with_nul("Hello!\0 Who are you?", 21);
  EXPECT_THAT(Chat({"--display-prompt"}, {.input = with_nul}).output,
              StartsWith("> " + with_nul + "\n"));
}

// Otherwise, the next file that is opened takes the place of the stream: the model would be the
// message, and the answer would be written into the session file.
TEST_F(OneShotChat, StreamsThatAreClosedAreNotFilesThatItOpens) {
  if (support::IsEmulated()) GTEST_SKIP() << "an emulator opens files of its own in their place";
  const auto chat = [&](const std::string& more) {
    return RunProgram(
        {"sh", "-c", "\"$0\" chat -m \"$1\" -q " + more, support::kCriaProgram, tests::DemoModel()},
        {.working_directory = folder_.path()});
  };
  const RunResult no_input = chat("<&-");
  EXPECT_EQ(no_input.exit_code, 1);
  EXPECT_THAT(no_input.error, HasSubstr("standard input: cannot read"));
  const RunResult no_output = chat("-p 'My name is Ann.' --temp 0 --session kept >&-");
  EXPECT_EQ(no_output.exit_code, 1);
  EXPECT_THAT(no_output.error, HasSubstr("standard output cannot be written"));
  const RunResult kept = chat("-p 'What is my name?' --temp 0 --session kept");
  EXPECT_EQ(kept.output, "You are Ann.\n") << kept.error;
}

TEST_F(OneShotChat, JsonHasTheAnswerAndItsFigures) {
  const RunResult result = Chat({"-p", kQuestion, "--json", "-s", "77"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, IsEmpty());
  const auto object = nlohmann::json::parse(result.output);
  EXPECT_EQ(object["content"].get<std::string>() + "\n", kAnswer);
  EXPECT_EQ(object["stop_reason"], "stop_token");
  EXPECT_EQ(object["seed"], 77);
  EXPECT_EQ(object["context_tokens"], 512);
  EXPECT_GT(object["prompt_tokens"], 5);
  EXPECT_GT(object["generated_tokens"], 5);
  EXPECT_GT(object["first_token_ms"], 0);
  const RunResult cut = Chat({"-p", kQuestion, "--json", "-n", "2"});
  EXPECT_EQ(nlohmann::json::parse(cut.output)["stop_reason"], "max_tokens");
}

TEST_F(OneShotChat, AStopTextEndsTheAnswer) {
  const RunResult result = Chat({"-p", kQuestion, "-q", "--stop", "baby", "--stop", "never"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.output, "Hello! I am Cria, a \n");
  EXPECT_THAT(result.error, IsEmpty());
}

TEST_F(OneShotChat, TheSeedOfARandomAnswerGivesItAgain) {
  const auto ask = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"-p", kQuestion, "--json", "--temp", "3", "--top-k", "0", "--top-p",
                             "1", "--min-p", "0", "-n", "12"});
    std::vector<std::string> arguments = {support::kCriaProgram, "chat", "-m", tests::DemoModel()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return nlohmann::json::parse(RunProgram(arguments).output);
  };
  const auto first = ask({});
  const auto other = ask({});
  EXPECT_NE(first["seed"], other["seed"]);
  EXPECT_NE(first["content"], other["content"]);
  const auto again = ask({"-s", std::to_string(first["seed"].get<uint64_t>())});
  EXPECT_EQ(first["content"], again["content"]);
}

TEST_F(OneShotChat, MessagesComeBeforeThePrompt) {
  const std::string messages = Write("messages.json", R"([
      {"role": "user", "content": "My name is Ann."},
      {"role": "assistant", "content": "Hello, Ann! Nice to meet you. I am Cria."}])");
  const RunResult result = Chat({"--messages", messages, "-p", "What is my name?", "-q"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.output, "You are Ann.\n");
  const RunResult no_question = Chat({"--messages", messages});
  EXPECT_EQ(no_question.exit_code, 2);
  EXPECT_THAT(no_question.error, HasSubstr("the last message is an answer itself"));
  const std::string system = Write("system.json", R"([
      {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello!"}])");
  EXPECT_EQ(Chat({"--messages", system}).exit_code, 0);
  const RunResult two = Chat({"--messages", system, "-sys", "Be long."});
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_THAT(two.error, HasSubstr("leave one out"));
  const RunResult broken = Chat({"--messages", Write("broken.json", "[{]")});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.error, HasSubstr("broken.json: is not JSON"));
}

TEST_F(OneShotChat, ARefusedMessageIsAnError) {
  const std::string long_text(3000, 'q');
  const RunResult too_long = Chat({"-p", long_text});
  EXPECT_EQ(too_long.exit_code, 1);
  EXPECT_THAT(too_long.output, IsEmpty());
  EXPECT_THAT(too_long.error, HasSubstr("shorten it"));
  EXPECT_EQ(std::ranges::count(too_long.error, '\n'), 1) << too_long.error;
  // What would hold it is told, and does.
  std::vector<std::string> small = {"-p", std::string(300, 'q'), "-c", "128"};
  std::vector<std::string> arguments = {support::kCriaProgram, "chat", "-m", tests::DemoModel()};
  arguments.insert(arguments.end(), small.begin(), small.end());
  const RunResult refused = RunProgram(arguments);
  EXPECT_EQ(refused.exit_code, 1);
  const size_t flag = refused.error.find("-c ");
  ASSERT_NE(flag, std::string::npos) << refused.error;
  arguments.back() = std::to_string(std::stoi(refused.error.substr(flag + 3)));
  EXPECT_EQ(RunProgram(arguments).exit_code, 0);
  // The other lines are answered, and the exit code still tells.
  const RunResult lines = Chat({"--lines"}, {.input = long_text + "\nHello! Who are you?\n"});
  EXPECT_EQ(lines.exit_code, 1);
  EXPECT_EQ(lines.output, kAnswer);
}

// The template opens the reasoning, which the demo model does not close: all it writes is
// reasoning.
TEST_F(OneShotChat, ReasoningIsNoPartOfTheAnswer) {
  const std::string chat_template = Write(
      "think.jinja",
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>"
      "{% if enable_thinking is not defined or enable_thinking %}<think>{% endif %}{% endif %}");
  const std::string model = folder_.path() / "think.cria";
  const RunResult converted =
      RunProgram({support::kModelConverter, "--fast", support::kDemoCheckpoint, "-o", model,
                  "--chat-template", chat_template, "--no-verify", "--weights", "int8"});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  const auto ask = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {support::kCriaProgram, "chat", "-m", model, "--temp", "0", "-n", "8",
                               "-q", "-p", "Hello!"});
    return RunProgram(more);
  };
  const RunResult without = ask({"--think", "off"});
  EXPECT_EQ(without.exit_code, 0) << without.error;
  EXPECT_GT(without.output.size(), 3) << without.output;
  EXPECT_EQ(ask({"--chat-template-kwargs", R"({"enable_thinking": false})"}).output,
            without.output);
  for (const std::vector<std::string>& thinking :
       {std::vector<std::string>{}, {"--think", "on"}, {"--think", "hide"}}) {
    EXPECT_EQ(ask(thinking).output, "\n");
    std::vector<std::string> json = thinking;
    json.push_back("--json");
    const auto object = nlohmann::json::parse(ask(json).output);
    EXPECT_EQ(object["content"], "");
    EXPECT_GT(object["reasoning_content"].get<std::string>().size(), 3);
  }
  // A person sees the reasoning, unless it is hidden.
  const std::vector<std::string> typed = {
      support::kCriaProgram, "chat", "-m", model, "--temp", "0", "-n", "8", "-q", "-p", "Hello!"};
  support::TerminalProgram terminal(typed);
  EXPECT_EQ(terminal.WaitForEnd(), 0);
  // Where reading the message takes long, its progress stands before, and is then cleared.
  const std::string cleared = "\r\033[K";
  const size_t progress_end = terminal.output().rfind(cleared);
  EXPECT_THAT(terminal.output().substr(
                  progress_end == std::string::npos ? 0 : progress_end + cleared.size()),
              StartsWith("\033[2m"));
  std::vector<std::string> hidden = typed;
  hidden.insert(hidden.end(), {"--think", "hide"});
  support::TerminalProgram hiding(hidden);
  EXPECT_EQ(hiding.WaitForEnd(), 0);
  EXPECT_EQ(hiding.Screen(), "\n");

  const RunResult both =
      ask({"--think", "on", "--chat-template-kwargs", R"({"enable_thinking": false})"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_EQ(Chat({"-p", "Hello!", "--think", "on"}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", "Hello!", "--think", "hide"}).exit_code, 0);
  EXPECT_EQ(Chat({"-p", "Hello!", "--chat-template-kwargs", "[1]"}).exit_code, 2);
}

TEST_F(OneShotChat, WhatCannotBeMeantIsRefused) {
  EXPECT_EQ(Chat({}, {.input = ""}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", ""}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", "a", "-f", "b"}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", "a", "--lines"}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", "a", "--stop", ""}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", "a", "--logit-bias", "5"}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", "a", "-s", "-2"}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", "a", "-n", "-2"}).exit_code, 2);
  EXPECT_EQ(Chat({"-p", "a", "--logit-bias", "999999+1"}).exit_code, 2);
  EXPECT_EQ(Chat({"-f", "/nowhere"}).exit_code, 1);
  EXPECT_THAT(Chat({"--messages", "-", "-f", "-"}, {.input = "[]"}).error,
              HasSubstr("--messages and -f cannot both read standard input"));
  EXPECT_EQ(Chat({"-p", "a", "-n", "-1", "-s", "-1"}).exit_code, 0);
}

TEST_F(OneShotChat, CtrlCEndsWithItsExitCode) {
  std::vector<std::string> arguments = tests::EndlessAnswers();
  arguments.insert(arguments.end(), {"-p", kQuestion});
  const RunResult result = Chat(arguments, {.interrupt_when = [](const RunResult& so_far) {
                                  return so_far.output.starts_with("Hello! I am Cria");
                                }});
  EXPECT_EQ(result.exit_code, 130) << result.error;
  EXPECT_THAT(result.output, StartsWith("Hello! I am Cria"));
  EXPECT_THAT(result.error, HasSubstr("cria: the answer was stopped\n"));
  EXPECT_THAT(result.error, HasSubstr("tok/s"));
}

// The demo model without its stop tokens would go on for ever.
TEST_F(OneShotChat, AnAnswerWithoutAnEndEndsWhereTheContextIsFull) {
  const auto ask = [&](std::vector<std::string> more, const RunOptions& options = {}) {
    const std::vector<std::string> endless = tests::EndlessAnswers();
    more.insert(more.end(), endless.begin(), endless.end());
    more.insert(more.begin(), {support::kCriaProgram, "chat", "-m", tests::DemoModel(), "--temp",
                               "0", "-c", "128"});
    return RunProgram(more, options);
  };
  const std::string full = "(the context of 128 tokens is full: ";
  const RunResult result = ask({"-p", kQuestion});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, StartsWith("Hello! I am Cria"));
  EXPECT_THAT(result.error,
              HasSubstr(full + "the answer ends here; a larger -c holds more, and with "
                               "--context-full shift answers go on without their beginning)\n"));
  const auto object = nlohmann::json::parse(ask({"--json"}, {.input = kQuestion}).output);
  EXPECT_EQ(object["stop_reason"], "context_full");
  EXPECT_EQ(object["content"].get<std::string>() + "\n", result.output);
  EXPECT_EQ(ask({"-p", kQuestion, "--context-full", "stop"}).output, result.output);
  // Each answer has an end, for which the turns before it are forgotten.
  const RunResult lines = ask({"--lines"}, {.input = "Hello!\nHello!\nHello!\n"});
  EXPECT_EQ(lines.exit_code, 0) << lines.error;
  EXPECT_EQ(std::ranges::count(lines.output, '\n'), 3) << lines.output;
  // What must match is led to its end.
  const RunResult matching = ask({"-p", kQuestion, "--regex", "<[a-z ]*>"});
  EXPECT_EQ(matching.exit_code, 0) << matching.error;
  EXPECT_THAT(matching.output, testing::EndsWith(">\n"));
  const RunResult shifting =
      ask({"-p", kQuestion, "--context-full", "shift", "-n", "300", "--json"});
  EXPECT_EQ(nlohmann::json::parse(shifting.output)["generated_tokens"], 300);
}

TEST_F(OneShotChat, ALineWithoutAnEndEndsTheProgram) {
  const RunResult result =
      Chat({"--lines"}, {.input = "Hello! Who are you?\n" + std::string(size_t{1} << 20, 'q')});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.output, kAnswer);
  EXPECT_THAT(result.error, HasSubstr("standard input: has more than the 65536 bytes that can fit "
                                      "the context of 512 tokens"));
}

TEST_F(OneShotChat, TheOldestLinesAreForgottenAndThatIsSaidOnce) {
  std::string input;
  for (int i = 0; i < 30; ++i) input += "My name is Ann.\n";
  const auto ask = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {support::kCriaProgram,
                                          "chat",
                                          "-m",
                                          tests::DemoModel(),
                                          "-c",
                                          "128",
                                          "--lines",
                                          "--temp",
                                          "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments, {.input = input});
  };
  const RunResult shifting = ask({});
  EXPECT_EQ(shifting.exit_code, 0) << shifting.error;
  const std::string notice = "the oldest turns are forgotten from now on";
  const size_t said = shifting.error.find(notice);
  ASSERT_NE(said, std::string::npos) << shifting.error;
  EXPECT_EQ(shifting.error.find(notice, said + 1), std::string::npos) << shifting.error;
  const RunResult stopping = ask({"--context-full", "stop"});
  EXPECT_EQ(stopping.exit_code, 1);
  EXPECT_THAT(stopping.error,
              HasSubstr("more than the 128 tokens of the context; --context-full shift"));
  EXPECT_THAT(stopping.error, Not(HasSubstr("/reset")));
}

}  // namespace
}  // namespace cria
