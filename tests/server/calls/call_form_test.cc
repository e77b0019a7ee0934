// Calls in the forms of CallForms(): whole, in every division, and what is no call.

#include "server/calls/call_form.h"

#include <gtest/gtest.h>

#include <string>

#include "server/calls/form_texts.h"
#include "server/requests/test_tools.h"

namespace cria::server {
namespace {

void ExpectTold(const CallForm& form, const std::string& text, const std::string& expected) {
  const ToolUse tools = TestTools();
  EXPECT_EQ(FindInText(tools, &form, text).all, expected) << form.id << ": " << text;
  for (size_t at = 0; at < text.size(); ++at) {
    ASSERT_EQ(FindInText(tools, &form, text, at).all, expected)
        << form.id << " at " << at << ": " << text;
  }
}

constexpr const char* kAddTold = R"(add({"a":1,"b":2}))";

TEST(CallFormTest, EachHasATextHere) {
  const auto texts = FormTexts();
  // Harmony has tests of its own.
  ASSERT_EQ(texts.size() + 1, CallForms().size());
  for (const FormText& text : texts) EXPECT_EQ(FormOf(text.id).id, text.id);
}

TEST(CallFormTest, CallsAreFoundInEveryDivision) {
  for (const FormText& text : FormTexts()) {
    const CallForm& form = FormOf(text.id);
    ExpectTold(form, text.add, kAddTold);
    ExpectTold(form, text.time, "time({})");
    ExpectTold(form, "I add.\n" + text.add, "I add.\n" + std::string(kAddTold));
  }
}

TEST(CallFormTest, ParallelCallsAreFound) {
  for (const FormText& text : FormTexts()) {
    ExpectTold(FormOf(text.id), text.both, std::string(kAddTold) + "time({})");
  }
}

TEST(CallFormTest, TextBehindCallsIsText) {
  for (const FormText& text : FormTexts()) {
    ExpectTold(FormOf(text.id), text.time + "Done.", "time({})Done.");
  }
}

TEST(CallFormTest, CallsWithoutAnEndAreText) {
  for (const FormText& text : FormTexts()) {
    const CallForm& form = FormOf(text.id);
    // The arguments of each end before this.
    const std::string cut = text.add.substr(0, text.add.find('2'));
    ExpectTold(form, cut, cut);
  }
}

TEST(CallFormTest, UnknownToolsAreNotCalled) {
  for (const FormText& text : FormTexts()) {
    std::string other = text.time;
    other.replace(other.find("time"), 4, "rhyme");
    ExpectTold(FormOf(text.id), other, other);
  }
}

TEST(CallFormTest, MentionedMarksAreText) {
  for (const FormText& text : FormTexts()) {
    const CallForm& form = FormOf(text.id);
    const std::string mention = "Calls begin with " + form.Opening() + " and a name.";
    ExpectTold(form, mention, mention);
    const std::string end = "They end with " + std::string(form.call_close) + ", <tool_call>.";
    ExpectTold(form, end, end);
  }
}

TEST(CallFormTest, ObjectsWithANameAreStillCalls) {
  const CallForm& form = FormOf("function-parameter");
  ExpectTold(form, R"(<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>)",
             kAddTold);
  ExpectTold(form, R"({"name": "time", "arguments": {}})", "time({})");
}

TEST(CallFormTest, WhiteSpaceMayDiffer) {
  ExpectTold(FormOf("function-parameter"),
             "<tool_call><function=add><parameter=a>1</parameter><parameter=b>\n2</parameter>"
             "</function></tool_call>",
             kAddTold);
  ExpectTold(FormOf("arg-key"), FormTexts()[2].add, kAddTold);
  ExpectTold(FormOf("name-keys"),
             R"(<|tools_prefix|> [ { "add" : {"a":1,"b":2} } ] <|tools_suffix|>)", kAddTold);
}

}  // namespace
}  // namespace cria::server
