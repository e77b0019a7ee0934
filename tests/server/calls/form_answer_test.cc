// Answers with calls in the forms of CallForms(): what is constrained, and what a client is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/answers/scripted_answer.h"
#include "server/calls/form_texts.h"
#include "server/calls/tool_format.h"
#include "server/requests/test_tools.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

std::string CallsOf(const RecordingListener& listener) {
  std::string told;
  for (const ToolCall& call : listener.calls) {
    const Json arguments = Json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
    told += call.name + "(" + arguments.dump() + ")";
  }
  return told;
}

struct FormAnswer {
  std::string answer;
  std::string reasoning;
  std::string calls;
  FinishReason reason = FinishReason::kStop;
  std::string context;
};

FormAnswer TellAnswer(const CallForm& form, const std::string& text, const ToolUse& tools,
                      bool has_constraint = true, bool may_reason = false) {
  ScriptedAnswer answer(text);
  answer.options().max_tokens = 600;
  const auto format = MakeFormFormat(form);
  const AnswerEnd end = answer.Run(&tools, format.get(), false, may_reason, has_constraint);
  return {answer.listener().answer, answer.listener().reasoning, CallsOf(answer.listener()),
          end.reason, answer.ContextText()};
}

constexpr const char* kAddOneTwo = R"(add({"a":1,"b":2}))";
constexpr const char* kBothCalls = R"(add({"a":1,"b":2})time({}))";

TEST(FormAnswerTest, ACallIsFoundBehindText) {
  const ToolUse tools = TestTools();
  for (const FormText& text : FormTexts()) {
    for (const bool has_constraint : {true, false}) {
      SCOPED_TRACE(testing::Message() << text.id << " constraint " << has_constraint);
      const FormAnswer told =
          TellAnswer(FormOf(text.id), "I add.\n" + text.add, tools, has_constraint);
      EXPECT_EQ(told.answer, "I add.\n");
      EXPECT_EQ(told.calls, kAddOneTwo);
      EXPECT_EQ(told.reason, FinishReason::kToolCalls);
      EXPECT_THAT(told.context, HasSubstr(text.add));
    }
  }
}

TEST(FormAnswerTest, ParallelCallsAreFoundUnlessOneIsWanted) {
  ToolUse tools = TestTools();
  for (const FormText& text : FormTexts()) {
    SCOPED_TRACE(text.id);
    tools.is_parallel = true;
    EXPECT_EQ(TellAnswer(FormOf(text.id), text.both, tools).calls, kBothCalls);
    tools.is_parallel = false;
    const FormAnswer told = TellAnswer(FormOf(text.id), text.both, tools);
    EXPECT_EQ(told.calls, kAddOneTwo);
    EXPECT_EQ(told.answer, "");
  }
}

TEST(FormAnswerTest, RequiredCallsAreWrittenInTheForm) {
  const ToolUse tools = TestTools("required");
  for (const FormText& text : FormTexts()) {
    SCOPED_TRACE(text.id);
    const FormAnswer told = TellAnswer(FormOf(text.id), text.both, tools);
    EXPECT_EQ(told.calls, kBothCalls);
    EXPECT_EQ(told.answer, "");
    EXPECT_EQ(told.reason, FinishReason::kToolCalls);
    EXPECT_THAT(told.context, HasSubstr(text.add.substr(0, text.add.find('2') + 1)));
  }
}

TEST(FormAnswerTest, AModelThatWouldWriteProseCallsIfItMust) {
  const ToolUse tools = TestTools("required");
  for (const FormText& text : FormTexts()) {
    SCOPED_TRACE(text.id);
    const FormAnswer told = TellAnswer(FormOf(text.id), "I would rather not.", tools);
    EXPECT_THAT(told.calls, testing::AnyOf(testing::StartsWith("add("), HasSubstr("time({})")));
    EXPECT_EQ(told.answer, "");
  }
}

TEST(FormAnswerTest, ReasoningComesBeforeCalls) {
  for (const FormText& text : FormTexts()) {
    for (const char* const choice : {"auto", "required"}) {
      SCOPED_TRACE(testing::Message() << text.id << " " << choice);
      const FormAnswer told =
          TellAnswer(FormOf(text.id), "<think>\nI add.\n</think>\n\n" + text.add, TestTools(choice),
                     /*has_constraint=*/true, /*may_reason=*/true);
      EXPECT_EQ(told.reasoning, "I add.");
      EXPECT_EQ(told.calls, kAddOneTwo);
      EXPECT_EQ(told.answer, "");
    }
  }
}

// The model would write Q in place of an integer.
TEST(FormAnswerTest, ArgumentsMatchTheSchemaWithAuto) {
  const ToolUse tools = TestTools();
  for (const FormText& text : FormTexts()) {
    SCOPED_TRACE(text.id);
    std::string wrong = text.add;
    wrong.replace(wrong.find('2'), 1, "Q");
    ScriptedAnswer answer(wrong);
    answer.options().max_tokens = 200;
    const auto format = MakeFormFormat(FormOf(text.id));
    answer.Run(&tools, format.get());
    ASSERT_EQ(answer.listener().calls.size(), 1u);
    const std::string& arguments = answer.listener().calls[0].arguments;
    const Json read = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
    // The arguments are cut off or right: an integer may be as long as the answer.
    if (!read.is_discarded()) {
      EXPECT_TRUE(read["a"].is_number() && read["b"].is_number()) << arguments;
      EXPECT_EQ(read.size(), 2u);
    }
    EXPECT_THAT(answer.ContextText(), testing::Not(HasSubstr("Q")));
  }
}

// From a certain opening on, the name is one of the tools.
TEST(FormAnswerTest, NamesAreThoseOfToolsWithAuto) {
  const ToolUse tools = TestTools();
  for (const FormText& text : FormTexts()) {
    SCOPED_TRACE(text.id);
    std::string other = text.time;
    other.replace(other.find("time"), 4, "tomb");
    const FormAnswer told = TellAnswer(FormOf(text.id), other, tools);
    if (FormOf(text.id).is_certain) {
      EXPECT_EQ(told.calls, "time({})");
    } else {
      EXPECT_EQ(told.answer, other);
    }
  }
}

TEST(FormAnswerTest, MentionedMarksStayText) {
  const ToolUse tools = TestTools();
  for (const FormText& text : FormTexts()) {
    const CallForm& form = FormOf(text.id);
    const std::string mark(form.first_opening());
    const std::string mention = "Write " + mark.substr(0, mark.size() / 2) + " to call.";
    EXPECT_EQ(TellAnswer(form, mention, tools).answer, mention);
  }
}

ToolUse RequiredTool(const Json& parameters) {
  const Json request = {
      {"tools", Json::array({{{"type", "function"},
                              {"function", {{"name", "write"}, {"parameters", parameters}}}}})},
      {"tool_choice", "required"}};
  return ReadTools(Fields(request));
}

TEST(FormAnswerTest, NamesOfParametersMayHaveAnyLetters) {
  const ToolUse tools = RequiredTool(Json::parse(R"({"type": "object", "properties": {
      "größe": {"type": "integer"}, "x y": {"type": "integer"}},
      "required": ["größe", "x y"]})"));
  const std::string told = R"(write({"größe":1,"x y":2}))";
  EXPECT_EQ(TellAnswer(FormOf("python-list"),
                       "<|tool_call_start|>[write(größe=1, x y=2)]<|tool_call_end|>", tools)
                .calls,
            told);
  EXPECT_EQ(
      TellAnswer(FormOf("call-braces"), "<|tool_call>call:write{größe:1,x y:2}<tool_call|>", tools)
          .calls,
      told);
  EXPECT_EQ(TellAnswer(FormOf("function-param"),
                       "<function name=\"write\"><param name=\"größe\">1</param>"
                       "<param name=\"x y\">2</param></function>",
                       tools)
                .calls,
            told);
}

// A property is one of thirty of itself.
TEST(FormAnswerTest, SchemasThatReferToThemselvesAreReadInAShortTime) {
  Json options = Json::array();
  while (options.size() < 30) options.push_back({{"$ref", "#/properties/a"}});
  const ToolUse tools =
      RequiredTool({{"type", "object"}, {"properties", {{"a", {{"anyOf", options}}}}}});
  for (const FormText& text : FormTexts()) {
    std::string call = text.time;
    call.replace(call.find("time"), 4, "write");
    EXPECT_EQ(TellAnswer(FormOf(text.id), call, tools).calls, "write({})") << text.id;
  }
}

TEST(FormAnswerTest, SchemasOfAllKindsBecomeGrammars) {
  const Json request = {
      {"tools", Json::parse(R"([{"type": "function", "function": {"name": "write", "parameters": {
         "type": "object", "properties": {
           "mode": {"enum": ["a", "w"]}, "text": {"type": "string"},
           "flag": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}},
           "map": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"$ref": "#/$defs/n"}},
                   "required": ["x"]}, "free": {"type": "object"}, "any": {}},
         "required": ["mode", "text"], "$defs": {"n": {"type": "integer"}}}}}])")}};
  const ToolUse tools = ReadTools(Fields(request));
  const std::string arguments =
      R"({"mode":"w","text":"it is \"so\"","flag":true,"list":["p","q"],"map":{"x":1.5,"y":2}})";
  EXPECT_EQ(
      TellAnswer(FormOf("function-json"), "<function=write>" + arguments + "</function>", tools)
          .calls,
      "write(" + arguments + ")");
  const auto parameter = [](const std::string& name, const std::string& value) {
    return "\n<parameter=" + name + ">\n" + value + "\n</parameter>";
  };
  EXPECT_EQ(
      TellAnswer(FormOf("function-parameter"),
                 "<tool_call>\n<function=write>" + parameter("mode", "w") +
                     parameter("text", "it is \"so\"") + parameter("flag", "true") +
                     parameter("list", R"(["p", "q"])") +
                     parameter("map", R"({"x": 1.5, "y": 2})") + "\n</function>\n</tool_call>",
                 tools)
          .calls,
      "write(" + arguments + ")");
  EXPECT_EQ(TellAnswer(FormOf("python-list"),
                       R"(<|tool_call_start|>[write(mode="w", text='it is "so"', flag=True, )"
                       R"(list=["p", 'q'], map={"x": 1.5, "y": 2})]<|tool_call_end|>)",
                       tools)
                .calls,
            "write(" + arguments + ")");
  EXPECT_EQ(TellAnswer(FormOf("call-braces"),
                       R"(<|tool_call>call:write{flag:true,list:[<|"|>p<|"|>,<|"|>q<|"|>],)"
                       R"(map:{x:1.5,y:2},mode:<|"|>w<|"|>,text:<|"|>it is "so"<|"|>}<tool_call|>)",
                       tools)
                .calls,
            R"(write({"flag":true,"list":["p","q"],"map":{"x":1.5,"y":2},"mode":"w",)"
            R"("text":"it is \"so\""}))");
}

}  // namespace
}  // namespace cria::server
