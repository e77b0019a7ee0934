#include "server/answers/answer_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/answers/scripted_answer.h"
#include "server/requests/request_error.h"
#include "server/requests/test_tools.h"

namespace cria::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kAdd = R"({"name": "add", "arguments": {"a": 1, "b": 22}})";

AnswerShape SchemaShape(std::string schema) {
  return {AnswerShape::Kind::kJsonSchema, std::move(schema), "response_format"};
}

TEST(AnswerRunTest, PassesOnText) {
  ScriptedAnswer answer("Hello there, how are you?");
  const AnswerEnd end = answer.Run();
  EXPECT_EQ(answer.listener().answer, "Hello there, how are you?");
  EXPECT_EQ(end.reason, FinishReason::kStop);
  EXPECT_EQ(end.prompt_tokens, 2u);
  EXPECT_GT(end.completion_tokens, 5u);
}

TEST(AnswerRunTest, EndsAtTheMaximum) {
  ScriptedAnswer answer(std::string(100, 'x'));
  answer.options().max_tokens = 7;
  const AnswerEnd end = answer.Run();
  EXPECT_EQ(end.reason, FinishReason::kLength);
  EXPECT_EQ(end.completion_tokens, 7u);
}

TEST(AnswerRunTest, EndsBeforeAStopString) {
  ScriptedAnswer answer("one two STOP three");
  answer.options().stop = {"STOP", "never"};
  EXPECT_EQ(answer.Run().reason, FinishReason::kStop);
  EXPECT_EQ(answer.listener().answer, "one two ");
}

TEST(AnswerRunTest, EndsWhenNobodyListens) {
  ScriptedAnswer answer(std::string(100, 'x'));
  answer.listener().left = 10;
  EXPECT_EQ(answer.Run().reason, FinishReason::kCancelled);
  EXPECT_LT(answer.listener().answer.size(), 40u);
}

TEST(AnswerRunTest, DividesReasoning) {
  ScriptedAnswer answer("<think>\nwhy\n</think>\n\nso");
  answer.Run(nullptr, nullptr, false, true);
  EXPECT_EQ(answer.listener().reasoning, "why");
  EXPECT_EQ(answer.listener().answer, "so");
}

TEST(AnswerRunTest, TellsLogProbabilitiesOfTheText) {
  ScriptedAnswer answer("<think>why</think>ab cd");
  answer.options().log_probabilities = true;
  answer.options().top_log_probabilities = 3;
  answer.Run(nullptr, nullptr, false, true);
  std::string text;
  for (const TokenLogProbability& token : answer.listener().tokens) {
    text += token.text;
    ASSERT_EQ(token.most_likely.size(), 3u);
    EXPECT_EQ(token.most_likely[0].first, token.text);
    EXPECT_NEAR(token.most_likely[0].second, token.log_probability, 1e-6);
    EXPECT_NEAR(token.log_probability - token.most_likely[1].second, 8.0, 1e-5);
  }
  EXPECT_THAT(text, testing::EndsWith("ab cd"));
  EXPECT_THAT(text, testing::Not(HasSubstr("why")));
}

TEST(AnswerRunTest, MatchesASchema) {
  ScriptedAnswer answer(R"({"n": 12})");
  answer.options().shape =
      SchemaShape(R"({"type": "object", "properties": {"n": {"type": "integer"}},
                      "required": ["n"], "additionalProperties": false})");
  EXPECT_EQ(answer.Run().reason, FinishReason::kStop);
  EXPECT_EQ(answer.listener().answer, R"({"n": 12})");
}

TEST(AnswerRunTest, AModelThatWouldWriteSomethingElseMatchesTheSchemaAllTheSame) {
  ScriptedAnswer answer("No, I write prose.");
  answer.options().shape = SchemaShape(R"({"enum": ["yes", "yes please"]})");
  answer.Run();
  EXPECT_THAT(answer.listener().answer, testing::AnyOf("\"yes\"", "\"yes please\""));
}

TEST(AnswerRunTest, TheSchemaHoldsBehindTheReasoning) {
  ScriptedAnswer answer("<think>\nfree text\n</think>\n\n{\"n\": 3}");
  answer.options().shape = SchemaShape(R"({"type": "object"})");
  answer.Run(nullptr, nullptr, false, true);
  EXPECT_EQ(answer.listener().reasoning, "free text");
  EXPECT_EQ(answer.listener().answer, "{\"n\": 3}");
}

TEST(AnswerRunTest, WithoutReasoningTheSchemaHoldsFromTheBeginning) {
  ScriptedAnswer answer("{\"n\": 3} and more");
  answer.options().shape = SchemaShape(R"({"type": "object"})");
  EXPECT_EQ(answer.Run(nullptr, nullptr, false, true).reason, FinishReason::kStop);
  EXPECT_EQ(answer.listener().reasoning, "");
  EXPECT_EQ(answer.listener().answer, "{\"n\": 3}");
}

TEST(AnswerRunTest, ATurnThatEndsInsideOfItsReasoningGoesOnWithTheSchema) {
  ScriptedAnswer answer("I do not know");
  answer.options().shape = SchemaShape(R"({"const": 7})");
  answer.Run(nullptr, nullptr, /*begins_in_reasoning=*/true);
  EXPECT_EQ(answer.listener().reasoning, "I do not know");
  EXPECT_EQ(answer.listener().answer, "7");
  EXPECT_THAT(answer.ContextText(), HasSubstr("know</think>\n\n7"));
}

TEST(AnswerRunTest, RefusesASchemaThatCannotBeEnforced) {
  ScriptedAnswer answer("x");
  answer.options().shape = SchemaShape(R"({"type": "no such type"})");
  try {
    answer.Run();
    ADD_FAILURE() << "it was taken";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.param(), "response_format");
  }
}

TEST(AnswerRunTest, ReadsACallOfHermes) {
  const ToolUse tools = TestTools();
  for (const bool has_constraint : {true, false}) {
    ScriptedAnswer answer("I add.\n<tool_call>\n" + std::string(kAdd) + "\n</tool_call>");
    const AnswerEnd end =
        answer.Run(&tools, MakeHermesFormat().get(), false, false, has_constraint);
    EXPECT_EQ(end.reason, FinishReason::kToolCalls);
    EXPECT_EQ(answer.listener().answer, "I add.\n");
    ASSERT_EQ(answer.listener().calls.size(), 1u);
    EXPECT_EQ(answer.listener().calls[0].name, "add");
    EXPECT_EQ(Json::parse(answer.listener().calls[0].arguments), Json({{"a", 1}, {"b", 22}}));
  }
}

TEST(AnswerRunTest, WhatTheLastTokenCompletesIsComplete) {
  const ToolUse tools = TestTools("required");
  for (size_t max_tokens = 40; max_tokens < 60; ++max_tokens) {
    ScriptedAnswer answer(R"({"name": "add", "arguments": {"a": 11111, "b": 222222222222222222)");
    answer.options().max_tokens = max_tokens;
    const AnswerEnd end = answer.Run(&tools, MakeHermesFormat().get());
    ASSERT_EQ(answer.listener().calls.size(), 1u);
    EXPECT_EQ(end.reason, FinishReason::kToolCalls) << answer.ContextText();
    EXPECT_TRUE(Json::accept(answer.listener().calls[0].arguments));
  }
  ScriptedAnswer shaped(R"({"n": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)");
  shaped.options().shape = SchemaShape(R"({"type": "object"})");
  shaped.options().max_tokens = 30;
  EXPECT_EQ(shaped.Run().reason, FinishReason::kStop);
  EXPECT_TRUE(Json::accept(shaped.listener().answer)) << shaped.listener().answer;
}

TEST(AnswerRunTest, ReadsSeveralCalls) {
  const ToolUse tools = TestTools();
  const std::string text = "<tool_call>\n" + std::string(kAdd) +
                           "\n</tool_call>\n<tool_call>\n{\"name\": \"time\", \"arguments\": {}}"
                           "\n</tool_call>";
  for (const bool has_constraint : {true, false}) {
    ScriptedAnswer answer(text);
    answer.Run(&tools, MakeHermesFormat().get(), false, false, has_constraint);
    ASSERT_EQ(answer.listener().calls.size(), 2u) << has_constraint;
    EXPECT_EQ(answer.listener().calls[1].name, "time");
    EXPECT_EQ(answer.listener().calls[1].arguments, "{}");
    EXPECT_EQ(answer.listener().answer, "");
  }
}

TEST(AnswerRunTest, OneCallEndsTheAnswerUnlessTheyAreParallel) {
  ToolUse tools = TestTools();
  tools.is_parallel = false;
  const std::string add(kAdd);
  for (const std::string& text :
       {"<tool_call>\n" + add + "\n</tool_call>\n<tool_call>\n" + add + "\n</tool_call>",
        "[" + add + ", " + add + "]", add + "\n" + add}) {
    for (const bool has_constraint : {true, false}) {
      ScriptedAnswer answer(text);
      const AnswerEnd end =
          answer.Run(&tools, MakeHermesFormat().get(), false, false, has_constraint);
      EXPECT_EQ(end.reason, FinishReason::kToolCalls);
      EXPECT_EQ(answer.listener().calls.size(), 1u);
      EXPECT_EQ(answer.listener().answer, "");
    }
  }
}

TEST(AnswerRunTest, TheArgumentsOfACallMatchTheToolsSchema) {
  const ToolUse tools = TestTools();
  for (const char* text :
       {R"(<tool_call>{"name": "add", "arguments": {"a": "x"}})",
        R"({"name": "add", "arguments": {}} and more)", R"({"name": "add", "arguments": "{}"})",
        R"({"arguments": {"a": "x", "b": 1}, "name": "add"})",
        R"([TOOL_CALLS]add[ARGS]{"c": 1})"}) {
    ScriptedAnswer answer(text);
    answer.options().max_tokens = 300;
    EXPECT_EQ(answer.Run(&tools, MakeHermesFormat().get()).reason, FinishReason::kToolCalls);
    ASSERT_EQ(answer.listener().calls.size(), 1u) << text;
    EXPECT_EQ(answer.listener().calls[0].name, "add");
    const Json arguments = Json::parse(answer.listener().calls[0].arguments);
    EXPECT_TRUE(arguments["a"].is_number_integer() && arguments["b"].is_number_integer()) << text;
    EXPECT_EQ(arguments.size(), 2u);
    EXPECT_EQ(answer.listener().answer, "") << text;
  }
}

TEST(AnswerRunTest, ArgumentsThatMatchAreAsTheModelWroteThem) {
  const ToolUse tools = TestTools();
  for (const char* text : {R"({"name": "add", "arguments": { "a":1, "b": 22}})",
                           R"({"arguments": { "a":1, "b": 22}, "name": "add"})",
                           R"([TOOL_CALLS]add[ARGS]{ "a":1, "b": 22})"}) {
    ScriptedAnswer answer(text);
    answer.Run(&tools, MakeHermesFormat().get());
    ASSERT_EQ(answer.listener().calls.size(), 1u) << text;
    EXPECT_EQ(answer.listener().calls[0].arguments, R"({ "a":1, "b": 22})");
    // Nothing is written twice.
    EXPECT_EQ(answer.ContextText(), text);
  }
}

// Tokens may have more than the beginning or the end of arguments.
TEST(AnswerRunTest, LongTokensAreKept) {
  const ToolUse tools = TestTools();
  const std::string text = R"({"name": "add", "arguments": {"a": 1, "b": 22}})"
                           "\n"
                           R"({"name": "time", "arguments": {}})";
  const std::vector<std::string> tokens = {R"(s": {"a": 1, "b": )",
                                           "22}}\n{\"name\": ", R"("time", "arguments": {}})"};
  for (const size_t num_tokens : {0, 1, 2, 3}) {
    for (const char* end : {"", "\nDone."}) {
      ScriptedAnswer answer(text + end, {tokens.begin(), tokens.begin() + num_tokens});
      EXPECT_EQ(answer.Run(&tools, MakeHermesFormat().get()).reason, FinishReason::kToolCalls);
      ASSERT_EQ(answer.listener().calls.size(), 2u);
      EXPECT_EQ(answer.listener().calls[0].arguments, R"({"a": 1, "b": 22})");
      EXPECT_EQ(answer.listener().calls[1].name, "time");
      EXPECT_EQ(answer.listener().calls[1].arguments, "{}");
      EXPECT_EQ(answer.listener().answer, end + (*end == '\n' ? 1 : 0));
      // Nothing is written twice, and nothing left out.
      EXPECT_EQ(answer.ContextText(), text + end);
    }
  }
  // Arguments in one token that do not match are written anew.
  ScriptedAnswer wrong(R"([{"name": "add", "arguments": {"c": 1}}])", {R"(": {"c": 1}}])"});
  wrong.options().max_tokens = 300;
  EXPECT_EQ(wrong.Run(&tools, MakeHermesFormat().get()).reason, FinishReason::kToolCalls);
  ASSERT_EQ(wrong.listener().calls.size(), 1u);
  EXPECT_TRUE(Json::parse(wrong.listener().calls[0].arguments).contains("b"));
}

TEST(AnswerRunTest, ControlTokensAreTextBesideTools) {
  const ToolUse tools = TestTools();
  const std::string text = "<|im_start|>[add(1, 2)]<|im_end|>.";
  ScriptedAnswer answer(text);
  EXPECT_EQ(answer.Run(&tools, MakeHermesFormat().get()).reason, FinishReason::kStop);
  EXPECT_EQ(answer.listener().answer, text);
  ScriptedAnswer without(text);
  without.Run();
  EXPECT_EQ(without.listener().answer, "[add(1, 2)].");
}

TEST(AnswerRunTest, ATextThatNamesNoToolIsNoCall) {
  const ToolUse tools = TestTools();
  for (const char* text : {R"(<tool_call>{"name": "remove", "arguments": {"a": "x"}}</tool_call>)",
                           R"({"name": "Ann", "age": 3})", R"({"type": "circle", "r": 2})",
                           R"({"name": "add", "age": 3})", R"([{"name": "remove"}])"}) {
    for (const bool has_constraint : {true, false}) {
      ScriptedAnswer answer(text);
      const AnswerEnd end =
          answer.Run(&tools, MakeLlamaFormat().get(), false, false, has_constraint);
      EXPECT_EQ(end.reason, FinishReason::kStop);
      EXPECT_EQ(answer.listener().answer, text);
      EXPECT_TRUE(answer.listener().calls.empty()) << text;
    }
  }
}

TEST(AnswerRunTest, AnObjectIsNoCallIfTheTextMustMatchASchema) {
  const ToolUse tools = TestTools();
  for (const AnswerShape& shape :
       {SchemaShape(R"({"type": "object"})"),
        AnswerShape{AnswerShape::Kind::kJsonObject, "", "response_format"}}) {
    for (const std::string& text :
         {std::string(kAdd), std::string(R"({"name": "Ann", "age": 3})")}) {
      ScriptedAnswer answer(text);
      answer.options().shape = shape;
      EXPECT_EQ(answer.Run(&tools, MakeLlamaFormat().get()).reason, FinishReason::kStop);
      EXPECT_EQ(answer.listener().answer, text);
      EXPECT_TRUE(answer.listener().calls.empty());
    }
  }
}

TEST(AnswerRunTest, ObjectsAreCallsBesideEveryForm) {
  const ToolUse tools = TestTools();
  const std::string add(kAdd);
  const std::string time = R"({"name": "time", "parameters": {}})";
  for (const auto& format : {MakeHermesFormat(), MakeLlamaFormat(), MakeMistralFormat(),
                             MakeMistralArgumentsFormat(), MakeGraniteFormat()}) {
    for (const std::string& text : {add + "\n" + time, "[" + add + ", " + time + "]",
                                    "```json\n" + add + "\n" + time + "\n```",
                                    "```json\n" + add + "\n```\n```json\n" + time + "\n```",
                                    "<tool_call>\n" + add + "\n</tool_call>\n" + time,
                                    "<|tool_call|>[" + add + ", " + time + "]<|/tool_call|>"}) {
      for (const bool has_constraint : {true, false}) {
        ScriptedAnswer answer("So:\n" + text);
        const AnswerEnd end = answer.Run(&tools, format.get(), false, false, has_constraint);
        EXPECT_EQ(end.reason, FinishReason::kToolCalls);
        ASSERT_EQ(answer.listener().calls.size(), 2u) << text;
        EXPECT_EQ(answer.listener().calls[0].name, "add");
        EXPECT_EQ(answer.listener().calls[0].arguments, R"({"a": 1, "b": 22})");
        EXPECT_EQ(answer.listener().calls[1].name, "time");
        EXPECT_EQ(answer.listener().calls[1].arguments, "{}");
        EXPECT_EQ(answer.listener().answer, "So:\n");
      }
    }
  }
}

TEST(AnswerRunTest, TextFollowsCallsOnlyIfTheyAreNotRequired) {
  const std::string text = std::string(kAdd) + "\n\nThat is it.";
  const ToolUse tools = TestTools();
  ScriptedAnswer answer(text);
  EXPECT_EQ(answer.Run(&tools, MakeLlamaFormat().get()).reason, FinishReason::kToolCalls);
  EXPECT_EQ(answer.listener().answer, "That is it.");
  const ToolUse required = TestTools("required");
  ScriptedAnswer calls(std::string(R"({"name": "add", "parameters": {"a": 1, "b": 22}})") + "; " +
                       std::string(kAdd) + "\n\nThat is it.");
  EXPECT_EQ(calls.Run(&required, MakeLlamaFormat().get()).reason, FinishReason::kToolCalls);
  EXPECT_EQ(calls.listener().calls.size(), 2u);
  EXPECT_EQ(calls.listener().answer, "");
}

TEST(AnswerRunTest, ARequiredCallOfHermesMayBeFollowedByABareOne) {
  const ToolUse tools = TestTools("required");
  const std::string add(kAdd);
  ScriptedAnswer answer("<tool_call>\n" + add + "\n</tool_call>\n" + add);
  answer.Run(&tools, MakeHermesFormat().get());
  EXPECT_EQ(answer.listener().calls.size(), 2u);
  EXPECT_EQ(answer.listener().answer, "");
}

TEST(AnswerRunTest, ForcedTextDoesNotMakeAnAnswerLongerThanItMayBe) {
  const ToolUse tools = TestTools("required");
  for (const size_t max_tokens : {size_t{1}, size_t{2}, size_t{5}}) {
    ScriptedAnswer answer("Well. That is it.");
    answer.options().max_tokens = max_tokens;
    const AnswerEnd end = answer.Run(&tools, MakeHermesFormat().get());
    EXPECT_EQ(end.reason, FinishReason::kLength);
    EXPECT_EQ(end.completion_tokens, max_tokens);
  }
}

TEST(AnswerRunTest, LogProbabilitiesAreThoseOfTheTextBesideCalls) {
  const ToolUse tools = TestTools();
  ScriptedAnswer answer("ab\n" + std::string(kAdd) + "cd");
  answer.options().log_probabilities = true;
  answer.Run(&tools, MakeHermesFormat().get());
  ASSERT_EQ(answer.listener().calls.size(), 1u);
  std::string text;
  for (const TokenLogProbability& token : answer.listener().tokens) text += token.text;
  EXPECT_EQ(answer.listener().answer, "ab\ncd");
  EXPECT_THAT(text, testing::StartsWith("ab"));
  EXPECT_THAT(text, testing::EndsWith("cd"));
  EXPECT_THAT(text, testing::Not(HasSubstr("name")));
}

TEST(AnswerRunTest, ACallThatIsCutOffBeforeItsArgumentsIsText) {
  const ToolUse tools = TestTools();
  const std::string text(kAdd);
  ScriptedAnswer answer(text);
  answer.options().max_tokens = 4;
  EXPECT_EQ(answer.Run(&tools, MakeLlamaFormat().get()).reason, FinishReason::kLength);
  EXPECT_TRUE(answer.listener().calls.empty());
  EXPECT_FALSE(answer.listener().answer.empty());
  EXPECT_TRUE(text.starts_with(answer.listener().answer));
}

TEST(AnswerRunTest, ARequiredCallComesWhateverTheModelWouldWrite) {
  const ToolUse tools = TestTools("required");
  for (const auto& format : {MakeHermesFormat(), MakeLlamaFormat(), MakeMistralFormat(),
                             MakeMistralArgumentsFormat(), MakeGraniteFormat()}) {
    ScriptedAnswer answer("No, I write prose.");
    answer.options().max_tokens = 300;
    EXPECT_EQ(answer.Run(&tools, format.get()).reason, FinishReason::kToolCalls);
    ASSERT_GE(answer.listener().calls.size(), 1u);
    EXPECT_THAT(answer.listener().calls[0].name, testing::AnyOf("add", "time"));
    EXPECT_TRUE(Json::parse(answer.listener().calls[0].arguments).is_object())
        << answer.listener().calls[0].arguments;
    EXPECT_EQ(answer.listener().answer, "");
  }
}

TEST(AnswerRunTest, ARequiredCallNeedsAConstraint) {
  const ToolUse tools = TestTools("required");
  ScriptedAnswer answer("x");
  EXPECT_THROW(answer.Run(&tools, MakeHermesFormat().get(), false, false, false), RequestError);
}

TEST(AnswerRunTest, ARequiredCallFollowsTheReasoning) {
  const ToolUse tools = TestTools("required");
  ScriptedAnswer answer("I think</think>\n\n<tool_call>\n" + std::string(kAdd));
  answer.Run(&tools, MakeHermesFormat().get(), /*begins_in_reasoning=*/true);
  EXPECT_EQ(answer.listener().reasoning, "I think");
  EXPECT_EQ(answer.listener().answer, "");
  ASSERT_EQ(answer.listener().calls.size(), 1u);
  EXPECT_EQ(answer.listener().calls[0].name, "add");
}

TEST(AnswerRunTest, ReadsABareCallOfLlama) {
  const ToolUse tools = TestTools();
  for (const bool has_constraint : {true, false}) {
    ScriptedAnswer answer(R"({"name": "add", "parameters": {"a": 5, "b": -1}})");
    const AnswerEnd end = answer.Run(&tools, MakeLlamaFormat().get(), false, false, has_constraint);
    EXPECT_EQ(end.reason, FinishReason::kToolCalls);
    ASSERT_EQ(answer.listener().calls.size(), 1u);
    EXPECT_EQ(answer.listener().calls[0].name, "add");
    EXPECT_EQ(Json::parse(answer.listener().calls[0].arguments), Json({{"a", 5}, {"b", -1}}));
    EXPECT_EQ(answer.listener().answer, "");
  }
}

TEST(AnswerRunTest, AnObjectThatIsNoCallIsText) {
  const ToolUse tools = TestTools();
  ScriptedAnswer other(R"({"answer": 5})");
  EXPECT_EQ(other.Run(&tools, MakeLlamaFormat().get()).reason, FinishReason::kStop);
  EXPECT_EQ(other.listener().answer, R"({"answer": 5})");
  // Without a constraint, what turns out to be none is text, too.
  const std::string unknown = R"({"name": "Ada", "parameters": 1})";
  ScriptedAnswer unparsed(unknown);
  EXPECT_EQ(unparsed.Run(&tools, MakeLlamaFormat().get(), false, false, false).reason,
            FinishReason::kStop);
  EXPECT_EQ(unparsed.listener().answer, unknown);
}

TEST(AnswerRunTest, ReadsCallsOfMistral) {
  const ToolUse tools = TestTools();
  for (const bool has_constraint : {true, false}) {
    ScriptedAnswer answer("[TOOL_CALLS][" + std::string(kAdd) +
                          R"(, {"name": "time", "arguments": {}}])");
    answer.Run(&tools, MakeMistralFormat().get(), false, false, has_constraint);
    ASSERT_EQ(answer.listener().calls.size(), 2u) << has_constraint;
    EXPECT_EQ(answer.listener().calls[0].name, "add");
    EXPECT_EQ(answer.listener().calls[1].name, "time");
    EXPECT_EQ(Json::parse(answer.listener().calls[0].arguments), Json({{"a", 1}, {"b", 22}}));
  }
}

TEST(AnswerRunTest, ReadsCallsOfMistralsNewerForm) {
  const ToolUse tools = TestTools();
  for (const bool has_constraint : {true, false}) {
    ScriptedAnswer answer(R"([TOOL_CALLS]add[ARGS]{"a": 1, "b": 2}[TOOL_CALLS]time[ARGS]{})");
    answer.Run(&tools, MakeMistralArgumentsFormat().get(), false, false, has_constraint);
    ASSERT_EQ(answer.listener().calls.size(), 2u) << has_constraint;
    EXPECT_EQ(answer.listener().calls[0].name, "add");
    EXPECT_EQ(Json::parse(answer.listener().calls[0].arguments), Json({{"a", 1}, {"b", 2}}));
    EXPECT_EQ(answer.listener().calls[1].name, "time");
    EXPECT_EQ(answer.listener().calls[1].arguments, "{}");
  }
}

TEST(AnswerRunTest, ASchemaThatCannotBeEnforcedIsOnlyShownUnlessItIsStrict) {
  Json request = {{"tools", Json::parse(R"([{"type": "function", "function": {"name": "f",
      "parameters": {"type": "object", "properties": {"l": {"type": "array",
        "uniqueItems": true}}}}}])")},
                  {"tool_choice", "required"}};
  const ToolUse loose = ReadTools(Fields(request));
  ScriptedAnswer answer("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"l\": [1]}}");
  EXPECT_EQ(answer.Run(&loose, MakeHermesFormat().get()).reason, FinishReason::kToolCalls);
  EXPECT_EQ(answer.listener().calls[0].arguments, "{\"l\": [1]}");
  request["tools"][0]["function"]["strict"] = true;
  const ToolUse strict = ReadTools(Fields(request));
  ScriptedAnswer refused("x");
  EXPECT_THROW(refused.Run(&strict, MakeHermesFormat().get()), RequestError);
}

TEST(AnswerRunTest, TextOrACallOrTheSchema) {
  const ToolUse tools = TestTools();
  ScriptedAnswer called("<tool_call>\n" + std::string(kAdd) + "\n</tool_call>");
  called.options().shape = SchemaShape(R"({"type": "object"})");
  EXPECT_EQ(called.Run(&tools, MakeHermesFormat().get()).reason, FinishReason::kToolCalls);
  ScriptedAnswer shaped("{\"n\": 3}");
  shaped.options().shape = SchemaShape(R"({"type": "object"})");
  EXPECT_EQ(shaped.Run(&tools, MakeHermesFormat().get()).reason, FinishReason::kStop);
  EXPECT_EQ(shaped.listener().answer, "{\"n\": 3}");
}

}  // namespace
}  // namespace cria::server
