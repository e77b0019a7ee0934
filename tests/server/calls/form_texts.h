#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "server/calls/call_finder.h"
#include "server/calls/call_form.h"
#include "server/requests/json_body.h"
#include "server/requests/test_tools.h"

namespace cria::server {

// Calls of TestTools() as a model writes them in a form: add({"a": 1, "b": 2}) and time({}).
struct FormText {
  std::string_view id;  // CallForm::id
  std::string add;
  std::string time;
  std::string both;  // One after the other.
};

inline std::vector<FormText> FormTexts() {
  const auto qwen = [](std::string_view arguments, std::string_view name) {
    return "<tool_call>\n<function=" + std::string(name) + ">" + std::string(arguments) +
           "\n</function>\n</tool_call>";
  };
  std::vector<FormText> texts;
  const std::string add =
      qwen("\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>", "add");
  texts.push_back({"function-parameter", add, qwen("", "time"), add + "\n" + qwen("", "time")});
  texts.push_back(
      {"seed",
       "<seed:tool_call>\n<function=add>\n<parameter=a>1</parameter>\n<parameter=b>2</parameter>\n"
       "</function>\n</seed:tool_call>",
       "<seed:tool_call>\n<function=time>\n</function>\n</seed:tool_call>",
       "<seed:tool_call>\n<function=add>\n<parameter=a>1</parameter>\n<parameter=b>2</parameter>\n"
       "</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=time>\n</function>\n"
       "</seed:tool_call>"});
  texts.push_back(
      {"arg-key-lines",
       "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n"
       "<arg_value>2</arg_value>\n</tool_call>",
       "<tool_call>time\n</tool_call>",
       "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n"
       "<arg_value>2</arg_value>\n</tool_call>\n<tool_call>time\n</tool_call>"});
  texts.push_back({"arg-key",
                   "<tool_call>add<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key>"
                   "<arg_value>2</arg_value></tool_call>",
                   "<tool_call>time</tool_call>",
                   "<tool_call>add<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key>"
                   "<arg_value>2</arg_value></tool_call><tool_call>time</tool_call>"});
  texts.push_back(
      {"minimax-invoke",
       "<minimax:tool_call>\n<invoke name=\"add\">\n<parameter name=\"a\">1</parameter>\n"
       "<parameter name=\"b\">2</parameter>\n</invoke>\n</minimax:tool_call>",
       "<minimax:tool_call>\n<invoke name=\"time\">\n</invoke>\n</minimax:tool_call>",
       "<minimax:tool_call>\n<invoke name=\"add\">\n<parameter name=\"a\">1</parameter>\n"
       "<parameter name=\"b\">2</parameter>\n</invoke>\n<invoke name=\"time\">\n</invoke>\n"
       "</minimax:tool_call>"});
  texts.push_back(
      {"function-param",
       "<function name=\"add\"><param name=\"a\">1</param><param name=\"b\">2</param></function>",
       "<function name=\"time\"></function>",
       "<function name=\"add\"><param name=\"a\">1</param><param name=\"b\">2</param></function>\n"
       "<function name=\"time\"></function>"});
  texts.push_back({"function-json", R"(<function=add>{"a": 1, "b": 2}</function>)",
                   "<function=time>{}</function>",
                   R"(<function=add>{"a": 1, "b": 2}</function><function=time>{}</function>)"});
  texts.push_back(
      {"deepseek-sep",
       R"(<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 1, "b": 2})"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>",
       R"(<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 1, "b": 2})"
       "<｜tool▁call▁end｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>"});
  const std::string fenced =
      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1, \"b\": 2}\n```"
      "<｜tool▁call▁end｜>";
  const std::string fenced_time =
      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>time\n```json\n{}\n```<｜tool▁call▁end｜>";
  texts.push_back(
      {"deepseek-fence", "<｜tool▁calls▁begin｜>" + fenced + "<｜tool▁calls▁end｜>",
       "<｜tool▁calls▁begin｜>" + fenced_time + "<｜tool▁calls▁end｜>",
       "<｜tool▁calls▁begin｜>" + fenced + "\n" + fenced_time + "<｜tool▁calls▁end｜>"});
  texts.push_back(
      {"kimi-sections",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0"
       R"(<|tool_call_argument_begin|>{"a": 1, "b": 2}<|tool_call_end|>)"
       "<|tool_calls_section_end|>",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.time:0"
       "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0"
       R"(<|tool_call_argument_begin|>{"a": 1, "b": 2}<|tool_call_end|>)"
       "<|tool_call_begin|>functions.time:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
       "<|tool_calls_section_end|>"});
  texts.push_back({"call-braces", "<|tool_call>call:add{a:1,b:2}<tool_call|>",
                   "<|tool_call>call:time{}<tool_call|>",
                   "<|tool_call>call:add{a:1,b:2}<tool_call|><|tool_call>call:time{}<tool_call|>"});
  texts.push_back({"python-list", "<|tool_call_start|>[add(a=1, b=2)]<|tool_call_end|>",
                   "<|tool_call_start|>[time()]<|tool_call_end|>",
                   "<|tool_call_start|>[add(a=1, b=2), time()]<|tool_call_end|>"});
  texts.push_back({"action-list",
                   "<|START_ACTION|>[\n    "
                   R"({"tool_call_id": "0", "tool_name": "add", "parameters": {"a": 1, "b": 2}})"
                   "\n]<|END_ACTION|>",
                   "<|START_ACTION|>[\n    "
                   R"({"tool_call_id": "0", "tool_name": "time", "parameters": {}})"
                   "\n]<|END_ACTION|>",
                   "<|START_ACTION|>[\n    "
                   R"({"tool_call_id": "0", "tool_name": "add", "parameters": {"a": 1, "b": 2}})"
                   ",\n    "
                   R"({"tool_call_id": "1", "tool_name": "time", "parameters": {}})"
                   "\n]<|END_ACTION|>"});
  texts.push_back({"name-keys", R"(<|tools_prefix|>[{"add": {"a": 1, "b": 2}}]<|tools_suffix|>)",
                   R"(<|tools_prefix|>[{"time": {}}]<|tools_suffix|>)",
                   R"(<|tools_prefix|>[{"add": {"a": 1, "b": 2}}, {"time": {}}]<|tools_suffix|>)"});
  return texts;
}

inline const CallForm& FormOf(std::string_view id) {
  for (const CallForm& form : CallForms()) {
    if (form.id == id) return form;
  }
  throw std::out_of_range("no such form");
}

// What is found in a text, with calls as add({"a":1}).
struct FoundInText {
  std::string all;  // The text, and the calls in their places.
  std::string calls;
};

// What a finder that waits for the ends of calls tells of a text that comes in two pieces, divided
// at `at`, or byte by byte. `form` may be null.
inline FoundInText FindInText(const ToolUse& tools, const CallForm* form, std::string_view text,
                              size_t at = std::string_view::npos) {
  FoundInText found;
  CallFinder finder(tools, {.stops_at_arguments = false, .form = form},
                    {.on_text = [&](std::string_view piece) { found.all += piece; },
                     .on_call =
                         [&](const ToolCall& call) {
                           const std::string told =
                               call.name + "(" + Json::parse(call.arguments).dump() + ")";
                           found.all += told;
                           found.calls += told;
                           return true;
                         }});
  if (at == text.npos) {
    for (const char byte : text) finder.Append(std::string_view(&byte, 1));
  } else {
    finder.Append(text.substr(0, at));
    finder.Append(text.substr(at));
  }
  finder.Flush();
  return found;
}

}  // namespace cria::server
