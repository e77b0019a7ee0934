#include "server/calls/call_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "server/requests/test_tools.h"

namespace cria::server {
namespace {

constexpr std::string_view kAddCall = R"({"name": "add", "arguments": {"a": 1}})";
constexpr std::string_view kTimeCall = R"({"name": "time", "parameters": {}})";

// Text as it is, and calls as add({"a": 1}). Texts next to each other are one.
class FinderRun {
 public:
  explicit FinderRun(const CallFinder::Options& options)
      : finder_(Tools(), options,
                {.on_text = [this](std::string_view text) { told_ += text; },
                 .on_call =
                     [this](const ToolCall& call) {
                       if (refuses) return false;
                       TellCall(call);
                       return true;
                     }}) {}

  void TellCall(const ToolCall& call) { told_ += call.name + "(" + call.arguments + ")"; }

  CallFinder& finder() { return finder_; }
  const std::string& told() const { return told_; }
  bool refuses = false;  // Calls are to be written anew.

 private:
  // They are made once: some tests read thousands of texts.
  static const ToolUse& Tools() {
    static const ToolUse tools = TestTools();
    return tools;
  }

  std::string told_;
  CallFinder finder_;
};

// The text divided into pieces of random lengths.
std::vector<std::string> Pieces(std::string_view text, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::string> pieces;
  while (!text.empty()) {
    pieces.emplace_back(text.substr(0, 1 + random() % 7));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

// What the finder tells of a text if it waits for the ends of calls.
std::string Told(std::string_view text, uint32_t seed, bool takes_bare = true) {
  FinderRun run({.takes_bare = takes_bare, .stops_at_arguments = false});
  for (const std::string& piece : Pieces(text, seed)) run.finder().Append(piece);
  EXPECT_FALSE(run.finder().is_found());
  run.finder().Flush();
  return run.told();
}

// The same if others write the arguments, here as the text has them.
std::string ToldWithStops(const std::string& text, uint32_t seed) {
  FinderRun run({});
  std::mt19937 random(seed);
  size_t section = 0;  // Where it begins in the text.
  for (size_t at = 0; at < text.size();) {
    const std::string piece = text.substr(at, 1 + random() % 7);
    run.finder().Append(piece);
    at += piece.size();
    if (!run.finder().is_found()) continue;
    const size_t begin = section + run.finder().begin();
    EXPECT_EQ(run.finder().found().forced, "");
    JsonScanner scanner;
    scanner.Begin(0);
    size_t end = begin;
    while (end < text.size() && (end == begin || !scanner.is_complete())) scanner.Take(text[end++]);
    run.TellCall({run.finder().name(), text.substr(begin, end - begin)});
    at = section = end;
    run.finder().GoToArgumentsEnd();
  }
  run.finder().Flush();
  return run.told();
}

void Expect(const std::string& text, const std::string& expected) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(Told(text, seed), expected) << text << " seed " << seed;
    EXPECT_EQ(ToldWithStops(text, seed), expected) << text << " seed " << seed;
  }
}

void ExpectText(const std::string& text) { Expect(text, text); }

TEST(CallFinderTest, FindsObjects) {
  Expect(std::string(kAddCall), R"(add({"a": 1}))");
  Expect("\n {\"name\" :\"add\",\n\"parameters\" : {} } \n", "add({}) \n");
  Expect(R"({"type": "function", "name": "time", "id": "x", "arguments": {}})", "time({})");
  Expect("I add.\n" + std::string(kAddCall), "I add.\nadd({\"a\": 1})");
  Expect("So: " + std::string(kAddCall) + "\nand then.", "So: add({\"a\": 1})\nand then.");
  Expect(R"({"name": "add", "arguments": {"a": {"b": ["}", "{"]}}, "more": [1]})",
         R"(add({"a": {"b": ["}", "{"]}}))");
}

TEST(CallFinderTest, FindsObjectsWithTheNameBehindTheArguments) {
  Expect(R"({"arguments": {"name": "x"}, "name": "add"} )", R"(add({"name": "x"}) )");
}

TEST(CallFinderTest, FindsArgumentsThatAreAString) {
  Expect(R"({"name": "add", "arguments": "{\"a\": 2}"})", R"(add({"a":2}))");
  ExpectText(R"({"name": "add", "arguments": "a = 2"})");
  ExpectText(R"({"name": "add", "arguments": "[2]"})");
}

TEST(CallFinderTest, FindsSeveralObjects) {
  const std::string add(kAddCall);
  const std::string time(kTimeCall);
  const std::string both = R"(add({"a": 1})time({}))";
  for (const char* between : {"", "\n", "; ", ",\n"}) Expect(add + between + time, both);
  Expect("[" + add + ", " + time + "]", both);
  Expect("Both:\n[\n" + add + ",\n" + time + "\n]\n", "Both:\n" + both + "\n");
  Expect("[" + add + "]\n[" + time + "]", both);
}

TEST(CallFinderTest, FindsFences) {
  const std::string add(kAddCall);
  const std::string told = R"(add({"a": 1}))";
  Expect("```json\n" + add + "\n```", told);
  Expect("I call:\n\n```json\n" + add + "\n```\n\nDone.", "I call:\n\n" + told + "\n\nDone.");
  Expect("```\n[" + add + "]\n```\n", told + "\n");
  Expect("```json\n" + add + "\n" + std::string(kTimeCall) + "\n```", told + "time({})");
  Expect("```json\n" + add + "\n```\n```json\n" + add + "\n```", told + told);
  Expect("```xml\n<tool_call>\n" + add + "\n</tool_call>\n```", told);
  Expect("`" + add + "`", told);
  ExpectText("```json\n{\"a\": 1}\n```");
  // The end of one fence does not begin another.
  Expect("```json\n{\"a\": 1}\n```\n" + add, "```json\n{\"a\": 1}\n```\n" + told);
  Expect("```python\nx = 1\n```\n" + add, "```python\nx = 1\n```\n" + told);
}

TEST(CallFinderTest, FindsOpenings) {
  const std::string add(kAddCall);
  const std::string told = R"(add({"a": 1}))";
  Expect("one<tool_call>" + add + "</tool_call>", "one" + told);
  Expect("<tool_call>\n" + add + "\n</tool_call>\n<tool_call>\n" + add + "\n</tool_call>",
         told + told);
  // The end may be missing, and so may the opening of another one.
  Expect("<tool_call>\n" + add + "\n" + add, told + told);
  Expect("<|tool_call|>[" + add + "]", told);
  Expect("<|tool_call|>[" + add + ", " + add + "]<|/tool_call|>", told + told);
  Expect("functools[" + add + "]", told);
  Expect("<|python_tag|>" + add, told);
  Expect("[TOOL_CALLS] [" + add + ", " + std::string(kTimeCall) + "]", told + "time({})");
  // Arguments may be missing here.
  Expect(R"(<tool_call>{"name": "time"}</tool_call>)", "time({})");
  Expect(R"([TOOL_CALLS][{"name": "time", "id": "x"}])", "time({})");
}

TEST(CallFinderTest, FindsNamesWithArguments) {
  Expect(R"([TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]time[CALL_ID]a-b[ARGS] {})",
         R"(add({"a": 1})time({}))");
  ExpectText("[TOOL_CALLS]other[ARGS]{}");
  ExpectText("[TOOL_CALLS]add[ARGS][]");
  ExpectText("[TOOL_CALLS]add");
  ExpectText("[TOOL_CALLS]add[CALL_ID]x[CALL_ID]");
}

TEST(CallFinderTest, OtherTextIsAsItIs) {
  for (const char* text : {"",
                           " ",
                           "just text",
                           "a < b <tool> <tool_cal",
                           "<tool_call>",
                           "<tool_call>{}",
                           "<tool_call>\nadd\n</tool_call>",
                           "functools.reduce(f, x)",
                           "[TOOL_CALLS]",
                           "``",
                           "```",
                           "```json",
                           "{",
                           "[",
                           "[ ] todo",
                           "[{",
                           "{}",
                           "[]",
                           "[1]",
                           "[[1]]",
                           "{x: 1}",
                           "{{name}}",
                           "see [1] and {2}",
                           "f",
                           "if (a) { b(); }",
                           "\xC3\xA4{\xC3\xB6}"}) {
    ExpectText(text);
  }
}

TEST(CallFinderTest, ObjectsThatAreNoCallsAreText) {
  for (const char* text :
       {R"({"name": "Ann", "age": 3})", R"({"name": "ad"})",
        R"({"name": "adder", "arguments": {}})", R"({"name": "add"})",
        R"({"name": "add", "age": 3})", R"({"name": 1, "arguments": {}})",
        R"({"name": "add", "arguments": 5})", R"({"name": "add", "arguments": null})",
        R"({"name": "add", "arguments": [1]})", R"({"arguments": {}})", R"({"type": "circle"})",
        R"({"type": "function"})", R"({"type": {"name": "add"}})", R"({"name": "add")",
        R"({"name": "\u0061dd", "arguments": {}})", R"({"na)", R"({"name" 1)",
        R"({"name": "time", "description": "The time", "parameters": {"type": "object"}})"}) {
    ExpectText(text);
    ExpectText("[" + std::string(text) + "]");
    ExpectText("<tool_call>" + std::string(R"({"name": "Ann", "age": 3})") + "</tool_call>");
  }
}

TEST(CallFinderTest, CallsInsideOfOtherJsonAreText) {
  ExpectText(R"({"calls": [{"name": "add", "arguments": {"a": 1}}]})");
  ExpectText(R"([1, {"name": "add", "arguments": {"a": 1}}])");
  ExpectText(R"([[{"name": "add", "arguments": {"a": 1}}]])");
  ExpectText(R"({"text": "{\"name\": \"add\", \"arguments\": {}}"})");
  // What is no JSON hides nothing.
  Expect("{see " + std::string(kAddCall) + "}", "{see add({\"a\": 1})}");
  Expect("[[see " + std::string(kAddCall), "[[see add({\"a\": 1})");
}

TEST(CallFinderTest, AnElementThatIsNoCallIsText) {
  Expect(R"([{"name": "add", "arguments": {}}, {"name": "Ann"}] end)",
         R"(add({}), {"name": "Ann"}] end)");
  Expect(R"([{"name": "add", "arguments": {}}, 5])", "add({}), 5]");
  Expect(R"({"name": "add", "arguments": {}}; no more)", "add({}); no more");
  Expect(R"({"name": "add", "arguments": {}}} end)", "add({})} end");
}

TEST(CallFinderTest, WithoutBareObjectsOnlyOpeningsBeginCalls) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::string add(kAddCall);
    for (const std::string& text : {add, "[" + add + "]", "```json\n" + add + "\n```"}) {
      EXPECT_EQ(Told(text, seed, /*takes_bare=*/false), text);
    }
    EXPECT_EQ(Told("<tool_call>" + add + "</tool_call>", seed, /*takes_bare=*/false),
              R"(add({"a": 1}))");
  }
}

// Text is held back only as long as it may be a call.
TEST(CallFinderTest, HoldsBackAsLittleAsPossible) {
  const auto told = [](std::string_view text) {
    FinderRun run({});
    run.finder().Append(text);
    return run.told();
  };
  EXPECT_EQ(told("a <tool> b"), "a <tool> b");
  EXPECT_EQ(told("a <tool_c"), "a ");
  EXPECT_EQ(told("{\"name\": \"a"), "");
  EXPECT_EQ(told("{\"name\": \"A"), "{\"name\": \"A");
  EXPECT_EQ(told("{\"answer\""), "{\"answer\"");
  EXPECT_EQ(told("{\"type\": \"c"), "{\"type\": \"c");
  EXPECT_EQ(told("[1"), "[1");
  EXPECT_EQ(told("```python\nx"), "```python\nx");
  EXPECT_EQ(told("[TOOL_CALLS]x"), "[TOOL_CALLS]x");
  EXPECT_EQ(told(std::string(600, ' ')), std::string(600, ' '));
}

TEST(CallFinderTest, ArgumentsAreWrittenAnewIfTheyAreRefused) {
  FinderRun run({});
  run.refuses = true;
  const std::string text = R"(One: [{"arguments": {"x": 1}, "name": "add"}, ...)";
  run.finder().Append(text);
  ASSERT_TRUE(run.finder().is_found());
  EXPECT_EQ(run.finder().name(), "add");
  EXPECT_EQ(run.finder().begin(), text.find('{'));
  EXPECT_EQ(run.finder().found().forced, R"({"name": "add", "arguments": )");
  EXPECT_EQ(run.told(), "One: ");
  // Behind the arguments, the list goes on.
  run.finder().GoToArgumentsEnd();
  run.finder().Append(R"(}, {"name": "time", "arguments": {)");
  ASSERT_TRUE(run.finder().is_found());
  EXPECT_EQ(run.finder().begin(), std::string(R"(}, {"name": "time", "arguments": )").size());
  run.finder().GoToArgumentsEnd();
  run.finder().Append("}] end");
  run.finder().Flush();
  EXPECT_EQ(run.told(), "One:  end");
}

TEST(CallFinderTest, GoesOnBehindACallThatOthersHaveWritten) {
  FinderRun run({.stops_at_arguments = false});
  run.finder().GoToCallEnd();
  run.finder().Append("\n; " + std::string(kTimeCall) + "\ntext");
  run.finder().Flush();
  EXPECT_EQ(run.told(), "time({})\ntext");
}

TEST(CallFinderTest, AnyTextIsToldWholly) {
  std::mt19937 random(1);
  const std::vector<std::string> parts = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          "\"name\"",
                                          ":",
                                          "\"add\"",
                                          ",",
                                          "\"arguments\"",
                                          "```",
                                          "json",
                                          "\n",
                                          "<tool_call>",
                                          "</tool_call>",
                                          "\"type\"",
                                          "functools",
                                          "x",
                                          "`",
                                          "[TOOL_CALLS]",
                                          "[ARGS]",
                                          "add",
                                          "\"\\\"",
                                          "1",
                                          "\"Ann\"",
                                          "<|tool_call|>"};
  for (int times = 0; times < 20'000; ++times) {
    std::string text;
    for (size_t i = random() % 14; i > 0; --i) text += parts[random() % parts.size()];
    const std::string told = Told(text, 1);
    EXPECT_EQ(told, Told(text, 2)) << text;
    if (told.contains("add(")) continue;
    EXPECT_EQ(told, text);
  }
}

}  // namespace
}  // namespace cria::server
