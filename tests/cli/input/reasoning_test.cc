#include "cli/input/reasoning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/thinking_templates.h"
#include "support/unwrap.h"

namespace cria::cli {
namespace {

using support::kDeepSeekLike;
using support::kQwen3Like;
using testing::HasSubstr;

TEST(ThinkingTest, JoinsTheVariables) {
  const ChatTemplate chat_template(kQwen3Like);
  const auto joined = [&](Thinking thinking, const std::string& variables) {
    const std::string text = Unwrap(VariablesFor(chat_template, {variables, thinking}));
    EXPECT_TRUE(CheckTemplateVariables(text)) << text;
    return nlohmann::json::parse(text);
  };
  EXPECT_EQ(joined(Thinking::kOn, ""), nlohmann::json({{"enable_thinking", true}}));
  EXPECT_EQ(joined(Thinking::kOff, " { } "), nlohmann::json({{"enable_thinking", false}}));
  EXPECT_EQ(
      joined(Thinking::kOff, R"( {"a": {"enable_thinking": "}"}, "b": [1]} )"),
      nlohmann::json({{"enable_thinking", false}, {"a", {{"enable_thinking", "}"}}}, {"b", {1}}}));
  const ChatTemplate other(kDeepSeekLike);
  EXPECT_EQ(Unwrap(VariablesFor(other, {R"({"enable_thinking": false})", Thinking::kOn})),
            R"({"thinking": true, "enable_thinking": false})");
}

TEST(ThinkingTest, HidingTurnsOnWhatHasASwitch) {
  const std::string variables = R"({"a": 1})";
  EXPECT_EQ(Unwrap(VariablesFor(ChatTemplate(kQwen3Like), {variables, Thinking::kHide})),
            R"({"enable_thinking": true, "a": 1})");
  EXPECT_EQ(Unwrap(VariablesFor(ChatTemplate(""), {variables, Thinking::kHide})), variables);
  EXPECT_EQ(Unwrap(VariablesFor(ChatTemplate(kQwen3Like), {variables, Thinking::kDefault})),
            variables);
}

TEST(ThinkingTest, RefusesWhatCannotBeSet) {
  const auto refused = [](std::string_view source, const std::string& variables) {
    const auto result = VariablesFor(ChatTemplate(source), {variables, Thinking::kOn});
    EXPECT_EQ(result.error().code(), ErrorCode::kUsage);
    return result.error().message();
  };
  EXPECT_EQ(refused("{{ messages[0].content }}", ""),
            "this model's chat template cannot turn reasoning on or off: it reads neither the "
            "variable enable_thinking nor thinking");
  EXPECT_THAT(refused(kQwen3Like, R"({"enable_\u0074hinking": true})"),
              HasSubstr("the variable enable_thinking of the chat template is set twice"));
  EXPECT_THAT(refused(kQwen3Like, "[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refused(kQwen3Like, "{"), HasSubstr("not JSON"));
  EXPECT_THAT(refused(kQwen3Like, R"({"messages": 1})"), HasSubstr("cannot be set"));
}

}  // namespace
}  // namespace cria::cli
