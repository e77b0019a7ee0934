#include "server/calls/harmony.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/answers/scripted_answer.h"
#include "server/calls/form_texts.h"
#include "server/calls/tool_format.h"
#include "server/requests/test_tools.h"

namespace cria::server {
namespace {

constexpr std::string_view kThought = "<|channel|>analysis<|message|>I add.<|end|>";
constexpr std::string_view kAddMessage =
    "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1, \"b\": 2}";
constexpr std::string_view kAddOfTemplate =
    " to=functions.add<|channel|>commentary json<|message|>{\"a\": 1, \"b\": 2}";

std::string Divided(std::string_view text, size_t at) {
  std::string told;
  HarmonyText harmony([&](AnswerPart part, std::string_view piece) {
    told += part == AnswerPart::kReasoning ? "(" + std::string(piece) + ")" : std::string(piece);
  });
  harmony.Append(text.substr(0, at));
  harmony.Append(text.substr(at));
  harmony.Flush();
  return told;
}

TEST(HarmonyTextTest, LeavesOutHeaders) {
  const std::string text =
      std::string(kThought) + "<|start|>assistant<|channel|>final<|message|>It <is> 3.<|return|>";
  EXPECT_EQ(Divided(text, 0), "(I add.)It <is> 3.");
  for (size_t at = 0; at < text.size(); ++at) {
    std::string told = Divided(text, at);
    if (const size_t seam = told.find(")("); seam != told.npos) told.erase(seam, 2);
    EXPECT_EQ(told, "(I add.)It <is> 3.") << at;
  }
  EXPECT_EQ(Divided("a <<|end|><|start|>assistant<|channel|>final<|message|>b", 3), "a <b");
}

TEST(HarmonyTextTest, OtherTextStaysAsItIs) {
  EXPECT_EQ(Divided("today is <|Monday|>", 4), "today is <|Monday|>");
  EXPECT_EQ(Divided("a <|en", 3), "a <|en");
  // A header without an end is none of the answer.
  EXPECT_EQ(Divided("<|channel|>final", 5), "");
}

TEST(HarmonyTextTest, SaysWhetherReasoningGoesOn) {
  HarmonyText harmony([](AnswerPart, std::string_view) {});
  EXPECT_FALSE(harmony.is_in_reasoning());
  harmony.Append("<|channel|>analysis<|message|>So");
  EXPECT_TRUE(harmony.is_in_reasoning());
  harmony.Append(".<|end|>");
  EXPECT_FALSE(harmony.is_in_reasoning());
  harmony.Append("<|start|>assistant<|channel|>final<|message|>It");
  EXPECT_FALSE(harmony.is_in_reasoning());
}

std::string FindHarmonyCalls(std::string_view text, size_t at) {
  return FindInText(TestTools(), &FormOf("harmony"), text, at).all;
}

TEST(HarmonyHeadTest, CallsAreFoundInEveryDivision) {
  const std::string turn = "<|start|>assistant";
  for (const std::string& text :
       {std::string(kAddMessage), turn + std::string(kAddMessage), std::string(kAddOfTemplate),
        turn + std::string(kAddOfTemplate)}) {
    for (size_t at = 0; at < text.size(); ++at) {
      EXPECT_EQ(FindHarmonyCalls(text, at), R"(add({"a":1,"b":2}))") << at << text;
    }
  }
}

TEST(HarmonyHeadTest, OtherMessagesAreText) {
  for (const std::string text :
       {"<|channel|>final<|message|>{\"a\": 1}", "<|channel|>commentary<|message|>Now I add.",
        "<|channel|>commentary to=functions.rhyme <|constrain|>json<|message|>{}",
        "<|channel|>commentary to=browser <|message|>{}", "write to=functions.add",
        "<|channel|>commentary to=functions.add <|message|>no JSON"}) {
    for (size_t at = 0; at < text.size(); ++at) EXPECT_EQ(FindHarmonyCalls(text, at), text) << at;
  }
}

struct HarmonyAnswer {
  std::string answer;
  std::string reasoning;
  std::string calls;
  std::string context;
};

HarmonyAnswer AnswerIn(const std::string& text, const ToolUse* tools, AnswerShape shape = {}) {
  ScriptedAnswer answer(text);
  answer.set_channels();
  answer.options().max_tokens = 300;
  answer.options().shape = std::move(shape);
  const auto format = MakeFormFormat(FormOf("harmony"));
  answer.Run(tools, format.get(), false, /*may_reason=*/true);
  std::string calls;
  for (const ToolCall& call : answer.listener().calls) calls += call.name + call.arguments;
  return {answer.listener().answer, answer.listener().reasoning, calls, answer.ContextText()};
}

TEST(HarmonyAnswerTest, ReasoningAndAnAnswer) {
  const ToolUse tools = TestTools();
  for (const ToolUse* const use : {&tools, static_cast<const ToolUse*>(nullptr)}) {
    const auto told = AnswerIn(
        std::string(kThought) + "<|start|>assistant<|channel|>final<|message|>It is 3.", use);
    EXPECT_EQ(told.reasoning, "I add.");
    EXPECT_EQ(told.answer, "It is 3.");
    EXPECT_EQ(AnswerIn("<|channel|>final<|message|>It is 3.", use).answer, "It is 3.");
  }
}

TEST(HarmonyAnswerTest, CallsBehindReasoning) {
  for (const char* const choice : {"auto", "required"}) {
    const ToolUse tools = TestTools(choice);
    const std::string text =
        std::string(kThought) + "<|start|>assistant" + std::string(kAddMessage);
    const auto told = AnswerIn(text, &tools);
    EXPECT_EQ(told.reasoning, "I add.");
    EXPECT_EQ(told.answer, "");
    EXPECT_EQ(told.calls, "add{\"a\": 1, \"b\": 2}");
    EXPECT_EQ(AnswerIn(std::string(kAddMessage), &tools).calls, told.calls);
  }
}

TEST(HarmonyAnswerTest, AMessageBeforeACallIsText) {
  const ToolUse tools = TestTools();
  const auto told =
      AnswerIn("<|channel|>commentary<|message|>Let me add.<|end|><|start|>assistant" +
                   std::string(kAddMessage),
               &tools);
  EXPECT_EQ(told.answer, "Let me add.");
  EXPECT_EQ(told.calls, "add{\"a\": 1, \"b\": 2}");
}

TEST(HarmonyAnswerTest, ASchemaHoldsInTheFinalMessage) {
  const AnswerShape shape = {AnswerShape::Kind::kJsonSchema, R"({"const": 7})", "response_format"};
  for (const std::string& text : {std::string(kThought) + "<|start|>assistant", std::string()}) {
    const auto told = AnswerIn(text + "<|channel|>final<|message|>eight", nullptr, shape);
    EXPECT_EQ(told.answer, "7");
    EXPECT_THAT(told.context, testing::EndsWith(text + "<|channel|>final<|message|>7"));
  }
}

}  // namespace
}  // namespace cria::server
