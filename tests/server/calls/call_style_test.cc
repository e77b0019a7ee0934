// What is found out of chat templates about calls: those of our own, and those of real models.

#include "server/calls/call_style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "golden/test_data.h"
#include "server/answers/chat_prompt.h"
#include "server/answers/scripted_answer.h"
#include "server/calls/form_texts.h"
#include "server/requests/chat_request.h"
#include "server/requests/request_error.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/unwrap.h"
#include "text/tokenizer.h"

namespace cria::server {
namespace {

constexpr const char* kQuestionText = "How much is that?";

// A conversation with these calls and their tools.
ChatRequest RequestWith(const Json& calls) {
  Json list = Json::array();
  for (const Json& call : calls) {
    list.push_back({{"id", Json("abcdefgh" + std::to_string(list.size()))},
                    {"type", "function"},
                    {"function", call}});
  }
  const Json body = {
      {"messages", Json::array({{{"role", "user"}, {"content", kQuestionText}},
                                {{"role", "assistant"}, {"content", ""}, {"tool_calls", list}}})},
      {"tools", Json::parse(R"([{"type": "function", "function": {"name": "add_up",
        "description": "Add two numbers", "parameters": {"type": "object", "properties": {
          "count": {"type": "integer", "description": "c"},
          "text": {"type": "string", "description": "t"}}, "required": ["count"]}}},
        {"type": "function", "function": {"name": "time", "description": "The time", "parameters":
        {"type": "object", "properties": {"zone": {"type": "string", "description": "z"}}}}}])")}};
  return ReadOpenAiChat(Fields(body));
}

// As FindInText tells calls.
std::string TellCalls(const Json& calls) {
  std::string told;
  for (const Json& call : calls) {
    told += call["name"].get<std::string>() + "(" + call["arguments"].dump() + ")";
  }
  return told;
}

// The calls that are found in what the template writes of such a conversation behind its question.
// Nothing: it does not write them.
std::optional<std::string> FoundCalls(const ChatTemplate& chat_template, const CallStyle& style,
                                      const Json& calls) {
  ChatRequest request = RequestWith(calls);
  const ToolUse tools = request.tools;
  std::string text;
  try {
    for (const ChatSegment& segment : RenderChat(chat_template, style, std::move(request))) {
      text += segment.text;
    }
  } catch (const RequestError&) {
    return std::nullopt;
  }
  text.erase(0, text.rfind(kQuestionText) + std::string_view(kQuestionText).size());
  return FindInText(tools, style.form, text).calls;
}

// A template that writes calls as the form's text has them.
std::string TemplateOf(const CallForm& form) {
  const auto quoted = [](std::string_view text) { return "{{ " + Written(Json(text)) + " }}"; };
  const bool is_tagged = form.style == ArgumentStyle::kTagged;
  const bool is_json = form.style == ArgumentStyle::kJson;
  std::string arguments = "{{ c.function.arguments | tojson }}";
  if (is_tagged) {
    arguments = "{% for k, v in c.function.arguments.items() %}" + quoted(form.param_open) +
                "{{ k }}" + quoted(form.param_name_end) + "{{ v if v is string else v | tojson }}" +
                quoted(form.param_close) + "{% endfor %}";
  } else if (!is_json) {
    const bool is_python = form.style == ArgumentStyle::kPython;
    const std::string text = is_python ? "'\"' ~ v ~ '\"'" : "'<|\"|>' ~ v ~ '<|\"|>'";
    arguments = std::string(is_python ? "" : "{{ '{' }}") +
                "{% for k, v in c.function.arguments.items() %}{{ k }}" + (is_python ? "=" : ":") +
                "{{ " + text + " if v is string else v }}{% if not loop.last %}" +
                (is_python ? ", " : ",") + "{% endif %}{% endfor %}" +
                (is_python ? "" : "{{ '}' }}");
  }
  return "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
         "{{ m.content }}{% if m.tool_calls %}" +
         quoted(form.section_open) + "{% for c in m.tool_calls %}" +
         quoted(WithNumber(form.call_open, 0)) + "{{ c.function.name }}" +
         quoted(WithNumber(form.name_end, 0)) + arguments + quoted(form.call_close) +
         "{% if not loop.last %}" + quoted(form.separator) + "{% endif %}{% endfor %}" +
         quoted(form.section_close) + "{% endif %}[end]{% endfor %}";
}

Json OneCall() {
  return Json::parse(R"([{"name":"add_up","arguments":{"count":3,"text":"so and so"}}])");
}

Json TwoCalls() {
  Json calls = OneCall();
  calls.push_back(Json::parse(R"({"name":"time","arguments":{"zone":"Oslo"}})"));
  return calls;
}

TEST(CallStyleTest, FormsAreFoundByRenderingACall) {
  for (const CallForm& form : CallForms()) {
    SCOPED_TRACE(form.id);
    const std::string source = TemplateOf(form);
    const ChatTemplate chat_template(source);
    const CallStyle style = FindCallStyle(chat_template);
    EXPECT_TRUE(style.is_known && style.knows_tools);
    ASSERT_NE(style.form, nullptr);
    EXPECT_EQ(style.form->id, form.id);
    EXPECT_FALSE(style.wants_text_arguments);
    EXPECT_EQ(FoundCalls(chat_template, style, OneCall()), TellCalls(OneCall()));
    EXPECT_EQ(FoundCalls(chat_template, style, TwoCalls()), TellCalls(TwoCalls()));
  }
}

TEST(CallStyleTest, ArgumentsAreTextWhereATemplateWantsIt) {
  const std::string source =
      "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m.content }}"
      "{% for c in m.tool_calls %}{{ '<function=' + c.function.name + '>' + c.function.arguments + "
      "'</function>' }}{% endfor %}{% endfor %}";
  const ChatTemplate chat_template(source);
  const CallStyle style = FindCallStyle(chat_template);
  EXPECT_TRUE(style.wants_text_arguments);
  ASSERT_NE(style.form, nullptr);
  EXPECT_EQ(style.form->id, "function-json");
  EXPECT_EQ(FoundCalls(chat_template, style, TwoCalls()), TellCalls(TwoCalls()));
}

TEST(CallStyleTest, CallsHaveNoContentWhereATemplateWantsIt) {
  const std::string source =
      "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}"
      "{% if m.role == 'assistant' and m.content is none %}{% for c in m.tool_calls %}"
      "{{ '<function=' + c.function.name + '>' + c.function.arguments + '</function>' }}"
      "{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  const ChatTemplate chat_template(source);
  const CallStyle style = FindCallStyle(chat_template);
  EXPECT_TRUE(style.wants_no_content && style.wants_text_arguments);
  EXPECT_EQ(FoundCalls(chat_template, style, TwoCalls()), TellCalls(TwoCalls()));
}

TEST(CallStyleTest, OtherTemplatesHaveNoForm) {
  const auto style_of = [](std::string_view source) { return FindCallStyle(ChatTemplate(source)); };
  const CallStyle hermes = style_of(
      "{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}<tool_call>"
      "{{ c.function | tojson }}</tool_call>{% endfor %}{% endfor %}");
  EXPECT_TRUE(hermes.is_known);
  EXPECT_EQ(hermes.form, nullptr);
  EXPECT_FALSE(style_of("{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls "
                        "%}@{{ c.function.name }}!{% endfor %}{% endfor %}")
                   .is_known);
  EXPECT_FALSE(style_of("{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}").is_known);
  EXPECT_TRUE(style_of("{% for m in messages %}{{ m.content }}{% endfor %}").is_known);
}

TEST(CallStyleTest, ATokenShowsTheFormIfTheTemplateWritesNoCalls) {
  const ChatTemplate chat_template("{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}");
  const auto style_of = [&](const std::vector<std::string>& tokens) {
    const TestPieces pieces(tokens);
    const Tokenizer tokenizer = Unwrap(Tokenizer::Create(pieces.vocabulary));
    return FindCallStyle(chat_template, &tokenizer);
  };
  const CallStyle style = style_of({"<|tool_call_start|>", "<|tool_call_end|>"});
  EXPECT_TRUE(style.is_known);
  ASSERT_NE(style.form, nullptr);
  EXPECT_EQ(style.form->id, "python-list");
  // Several forms begin with the last one.
  for (const std::vector<std::string>& tokens :
       {std::vector<std::string>{}, {"<|tool_call_start|>", "<|tools_prefix|>"}, {"<tool_call>"}}) {
    const CallStyle none = style_of(tokens);
    EXPECT_FALSE(none.is_known);
    EXPECT_EQ(none.form, nullptr);
  }
}

// The form of each template's calls: an id, "objects" or "unknown", and ", read" if the template
// writes calls. Those are found again in what it has written.
std::map<std::string, std::string> ReadTemplates(const std::filesystem::path& folder) {
  std::map<std::string, std::string> forms;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    SCOPED_TRACE(entry.path());
    const std::string source = support::ReadFile(entry.path());
    const ChatTemplate chat_template(source, {.bos_token = "<s>", .eos_token = "</s>"});
    const CallStyle style = FindCallStyle(chat_template);
    std::string& form = forms[entry.path().stem()];
    form = !style.is_known         ? "unknown"
           : style.form == nullptr ? "objects"
                                   : std::string(style.form->id);
    const auto one = FoundCalls(chat_template, style, OneCall());
    if (!style.is_known || !one || one->empty()) continue;
    form += ", read";
    EXPECT_EQ(*one, TellCalls(OneCall()));
    // Some templates refuse several calls, or write the first one alone.
    const auto two = FoundCalls(chat_template, style, TwoCalls());
    if (two && *two != *one) {
      EXPECT_EQ(*two, TellCalls(TwoCalls()));
    }
  }
  return forms;
}

TEST(OwnTemplatesTest, CallsAreReadAsTheyAreWritten) {
  const std::map<std::string, std::string> expected = {{"brackets-tools", "objects, read"},
                                                       {"headers-tools", "objects, read"},
                                                       {"reasoning", "unknown"},
                                                       {"tagged-tools", "objects, read"},
                                                       {"turns", "objects, read"}};
  EXPECT_EQ(ReadTemplates(support::SourcePath("tests/golden/chat")), expected);
}

// Templates may be missing, and others may be there.
TEST(RealTemplatesTest, CallsAreReadAsTheyAreWritten) {
  CRIA_NEEDS_TEST_DATA("chat/Qwen2.5-7B-Instruct.jinja");
  const std::map<std::string, std::string> expected = {
      {"DeepSeek-R1-Distill-Llama-8B", "deepseek-fence, read"},
      {"Llama-2-chat", "objects, read"},
      {"Llama-3.1-8B-Instruct", "objects, read"},
      {"Llama-3.2-3B-Instruct", "objects, read"},
      {"Mistral-Nemo-Instruct-2407", "objects, read"},
      {"Qwen2.5-7B-Instruct", "objects, read"},
      {"gemma-2-2b-it", "objects, read"}};
  for (const auto& [name, form] : ReadTemplates(ExternalTestData() / "chat")) {
    if (const auto known = expected.find(name); known != expected.end()) {
      EXPECT_EQ(form, known->second) << name;
    }
  }
}

}  // namespace
}  // namespace cria::server
