#include "messages/message_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "messages/rules.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Json = nlohmann::ordered_json;

constexpr MessageRules kAnyRole = {.parse = ParseJson, .allows_other_roles = true};

ReadConversation Read(std::string_view json, const MessageRules& rules = kRules) {
  auto read = ReadMessageList(Json::parse(json), rules);
  if (!read) {
    ADD_FAILURE() << read.error().field << " " << read.error().problem;
    return {};
  }
  return std::move(*read);
}

// "FIELD PROBLEM", and " (CODE)" if there is one.
std::string ProblemOf(std::string_view json, const MessageRules& rules = kRules) {
  const auto read = ReadMessageList(Json::parse(json), rules);
  if (read) return "";
  const MessageProblem& problem = read.error();
  return problem.field + " " + problem.problem +
         (problem.code.empty() ? "" : " (" + problem.code + ")");
}

TEST(ReadMessageListTest, ContentIsAStringAListOfTextsOrNothing) {
  const auto read = Read(R"([
      {"role": "developer", "content": "Be kind."},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]},
      {"role": "assistant", "content": null},
      {"role": "assistant"}])");
  ASSERT_EQ(read.messages.size(), 4u);
  EXPECT_EQ(read.messages[0].role, "developer");
  EXPECT_EQ(read.messages[1].content, "ab");
  EXPECT_EQ(read.messages[2].content, "");
  EXPECT_EQ(read.messages[3].content, "");
  EXPECT_EQ(read.messages[3].fields, "");
}

TEST(ReadMessageListTest, ArgumentsBecomeAnObject) {
  const auto read = Read(R"([{"role": "assistant", "tool_calls": [
      {"id": "7", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}},
      {"function": {"name": "now", "arguments": ""}},
      {"function": {"name": "say", "arguments": "no JSON"}},
      {"function": {"name": "sum", "arguments": {"b": [2]}}}]}])");
  ASSERT_EQ(read.messages.size(), 1u);
  EXPECT_EQ(read.messages[0].fields,
            R"({"tool_calls":[)"
            R"({"id":"7","type":"function","function":{"name":"add","arguments":{"a":1}}},)"
            R"({"type":"function","function":{"name":"now","arguments":{}}},)"
            R"({"type":"function","function":{"name":"say","arguments":"no JSON"}},)"
            R"({"type":"function","function":{"name":"sum","arguments":{"b":[2]}}}]})");
}

TEST(ReadMessageListTest, AResultHasTheNameOfItsCall) {
  const auto read = Read(R"([
      {"role": "assistant", "tool_calls": [{"id": "7", "function": {"name": "add"}}]},
      {"role": "tool", "tool_call_id": "7", "content": "3"},
      {"role": "tool", "tool_call_id": "8", "content": "4"},
      {"role": "tool", "tool_name": "now", "content": "noon"}])");
  ASSERT_EQ(read.messages.size(), 4u);
  EXPECT_EQ(read.messages[1].fields, R"({"tool_call_id":"7","name":"add"})");
  EXPECT_EQ(read.messages[2].fields, R"({"tool_call_id":"8"})");
  EXPECT_EQ(read.messages[3].fields, R"({"name":"now"})");
}

TEST(ReadMessageListTest, ReasoningHasOneNameForTemplates) {
  const auto read = Read(R"([{"role": "assistant", "content": "a", "thinking": "Hm."},
                             {"role": "assistant", "content": "b", "reasoning_content": "Ha."}])");
  ASSERT_EQ(read.messages.size(), 2u);
  EXPECT_EQ(read.messages[0].fields, R"({"reasoning_content":"Hm."})");
  EXPECT_EQ(read.messages[1].fields, R"({"reasoning_content":"Ha."})");
}

TEST(ReadMessageListTest, NamesTheFieldsThatMeanNothing) {
  const auto read =
      Read(R"([{"role": "user", "content": "a", "weight": 0, "refusal": null, "annotations": []},
                             {"role": "user", "content": "b", "name": "Ann", "mood": "good"}])");
  EXPECT_THAT(read.unknown_fields, ElementsAre("messages[0].weight", "messages[1].mood"));
  EXPECT_THAT(Read(R"([{"role": "user", "content": "a"}])").unknown_fields, IsEmpty());
}

TEST(ReadMessageListTest, OtherRolesAreForTemplatesThatKnowThem) {
  constexpr char kJson[] = R"([{"role": "ipython", "content": null}])";
  EXPECT_EQ(Read(kJson, kAnyRole).messages.front().role, "ipython");
  EXPECT_EQ(
      ProblemOf(kJson),
      "messages[0].role is \"ipython\", but must be system, developer, user, assistant or tool");
  EXPECT_EQ(ProblemOf(R"([{"role": "", "content": "a"}])", kAnyRole), "messages[0].role is empty");
}

TEST(ReadMessageListTest, RefusesByNameWhatItCannotRead) {
  EXPECT_EQ(ProblemOf("[]"), "messages is empty: there is nothing to answer");
  EXPECT_EQ(ProblemOf("[3]"), "messages[0] is not an object");
  EXPECT_EQ(ProblemOf(R"([{"content": "a"}])"), "messages[0].role is missing");
  EXPECT_EQ(ProblemOf(R"([{"role": "user"}])"), "messages[0].content is missing");
  EXPECT_EQ(ProblemOf(R"([{"role": "user", "content": 3}])"),
            "messages[0].content is neither a string nor a list of texts");
  EXPECT_EQ(
      ProblemOf(R"([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}])"),
      "messages[0].content[0].type is \"image_url\", but this model reads only texts "
      "(unsupported_content)");
  EXPECT_EQ(
      ProblemOf(R"([{"role": "user", "content": "a", "images": ["x"]}])"),
      "messages[0].images is not supported: this model reads only texts (unsupported_content)");
  EXPECT_EQ(ProblemOf(R"([{"role": "assistant", "function_call": {"name": "add"}}])"),
            "messages[0].function_call is not supported; use tool_calls (unsupported_parameter)");
  EXPECT_EQ(ProblemOf(R"([{"role": "assistant", "tool_calls": {}}])"),
            "messages[0].tool_calls is not a list");
  EXPECT_EQ(ProblemOf(R"([{"role": "assistant", "tool_calls": [{"id": "1"}]}])"),
            "messages[0].tool_calls[0].function is missing");
  EXPECT_EQ(
      ProblemOf(
          R"([{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": 3}}]}])"),
      "messages[0].tool_calls[0].function.arguments is neither a string with JSON nor an object");
}

TEST(ReadMessageListTest, ItHasABound) {
  const Json message = {{"role", "user"}, {"content", "a"}};
  Json list(8192, message);
  EXPECT_EQ(ReadMessageList(list, kRules)->messages.size(), 8192u);
  list.push_back(message);
  EXPECT_EQ(ReadMessageList(list, kRules).error().problem, "has more than 8192 messages");
}

TEST(ReadMessageListTest, CallsAndTheirArgumentsHaveBounds) {
  constexpr MessageRules kFew = {.parse = ParseJson, .max_messages = 3, .max_argument_values = 6};
  const auto calls = [](const std::string& arguments, size_t count) {
    const Json call = {{"function", {{"name", "a"}, {"arguments", Json::parse(arguments)}}}};
    return Json{{"role", "assistant"}, {"tool_calls", Json(count, call)}};
  };
  const auto problem = [&](const Json& first, const Json& second) {
    return ProblemOf(Json::array({first, second}).dump(), kFew);
  };
  EXPECT_EQ(problem(calls("{}", 1), calls("{}", 2)), "");
  EXPECT_EQ(problem(calls("{}", 1), calls("{}", 3)),
            "messages[1].tool_calls has more than 3 calls, with those before them");
  EXPECT_EQ(problem(calls("{}", 4), calls("{}", 1)),
            "messages[0].tool_calls has more than 3 calls, with those before them");
  // As objects or as texts, and also if the text is no JSON.
  for (const char* const two : {R"({"a": 1})", R"("{\"a\": 1}")"}) {
    EXPECT_EQ(problem(calls(two, 1), calls(two, 2)), "") << two;
    EXPECT_EQ(problem(calls(two, 2), calls(R"({"a": [1]})", 1)),
              "messages[1].tool_calls[0].function.arguments has more than 6 values, with the "
              "arguments before it")
        << two;
  }
  EXPECT_EQ(problem(calls(R"("{[")", 3), calls("{}", 0)), "");
}

TEST(IsUsualRoleTest, ComparesWholeNames) {
  EXPECT_TRUE(IsUsualRole("developer"));
  EXPECT_FALSE(IsUsualRole("Developer"));
  EXPECT_FALSE(IsUsualRole(""));
}

TEST(ReadMessageContentTest, NamesThePath) {
  EXPECT_EQ(ReadMessageContent(Json("a"), "system"), "a");
  EXPECT_EQ(ReadMessageContent(Json(nullptr), "system"), "");
  EXPECT_EQ(ReadMessageContent(Json(true), "system").error().field, "system");
}

}  // namespace
}  // namespace cria
