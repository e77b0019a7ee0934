#include "server/calls/call_form.h"

#include <algorithm>
#include <array>

#include "core/format.h"
#include "server/calls/json_scanner.h"

namespace cria::server {
namespace {

constexpr std::array kForms = {
    // Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5.
    CallForm{.id = "function-parameter",
             .style = ArgumentStyle::kTagged,
             .call_open = "<tool_call>\n<function=",
             .name_end = ">",
             .call_close = "\n</function>\n</tool_call>",
             .separator = "\n",
             .param_open = "\n<parameter=",
             .param_name_end = ">\n",
             .param_close = "\n</parameter>"},
    // Seed-OSS.
    CallForm{.id = "seed",
             .style = ArgumentStyle::kTagged,
             .call_open = "<seed:tool_call>\n<function=",
             .name_end = ">",
             .call_close = "\n</function>\n</seed:tool_call>",
             .separator = "\n",
             .param_open = "\n<parameter=",
             .param_name_end = ">",
             .param_close = "</parameter>"},
    // GLM 4.5 and 4.6.
    CallForm{.id = "arg-key-lines",
             .style = ArgumentStyle::kTagged,
             .is_certain = false,
             .call_open = "<tool_call>",
             .name_end = "",
             .call_close = "\n</tool_call>",
             .separator = "\n",
             .param_open = "\n<arg_key>",
             .param_name_end = "</arg_key>\n<arg_value>",
             .param_close = "</arg_value>"},
    // GLM 4.7.
    CallForm{.id = "arg-key",
             .style = ArgumentStyle::kTagged,
             .is_certain = false,
             .call_open = "<tool_call>",
             .name_end = "",
             .call_close = "</tool_call>",
             .param_open = "<arg_key>",
             .param_name_end = "</arg_key><arg_value>",
             .param_close = "</arg_value>"},
    // MiniMax M2.
    CallForm{.id = "minimax-invoke",
             .style = ArgumentStyle::kTagged,
             .section_open = "<minimax:tool_call>\n",
             .call_open = "<invoke name=\"",
             .name_end = "\">",
             .call_close = "\n</invoke>",
             .separator = "\n",
             .section_close = "\n</minimax:tool_call>",
             .param_open = "\n<parameter name=\"",
             .param_name_end = "\">",
             .param_close = "</parameter>"},
    // MiniCPM5.
    CallForm{.id = "function-param",
             .style = ArgumentStyle::kTagged,
             .call_open = "<function name=\"",
             .name_end = "\">",
             .call_close = "</function>",
             .separator = "\n",
             .param_open = "<param name=\"",
             .param_name_end = "\">",
             .param_close = "</param>",
             .has_cdata = true},
    // Functionary, and Llama 3 by the prompt of Meta's documentation.
    CallForm{.id = "function-json",
             .call_open = "<function=",
             .name_end = ">",
             .call_close = "</function>"},
    // DeepSeek V3.1.
    CallForm{.id = "deepseek-sep",
             .section_open = "<｜tool▁calls▁begin｜>",
             .call_open = "<｜tool▁call▁begin｜>",
             .name_end = "<｜tool▁sep｜>",
             .call_close = "<｜tool▁call▁end｜>",
             .section_close = "<｜tool▁calls▁end｜>"},
    // DeepSeek V3 and R1.
    CallForm{.id = "deepseek-fence",
             .section_open = "<｜tool▁calls▁begin｜>",
             .call_open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
             .name_end = "\n```json\n",
             .call_close = "\n```<｜tool▁call▁end｜>",
             .separator = "\n",
             .section_close = "<｜tool▁calls▁end｜>"},
    // Kimi K2.
    CallForm{.id = "kimi-sections",
             .section_open = "<|tool_calls_section_begin|>",
             .call_open = "<|tool_call_begin|>functions.",
             .name_end = ":#<|tool_call_argument_begin|>",
             .call_close = "<|tool_call_end|>",
             .section_close = "<|tool_calls_section_end|>"},
    // Gemma 4.
    CallForm{.id = "call-braces",
             .style = ArgumentStyle::kBraces,
             .call_open = "<|tool_call>call:",
             .call_close = "<tool_call|>"},
    // LFM2.
    CallForm{.id = "python-list",
             .style = ArgumentStyle::kPython,
             .section_open = "<|tool_call_start|>[",
             .name_end = "(",
             .call_close = ")",
             .separator = ", ",
             .section_close = "]<|tool_call_end|>"},
    // gpt-oss.
    CallForm{.id = "harmony",
             .call_open = "<|channel|>commentary to=functions.",
             .name_end = " <|constrain|>json<|message|>",
             .call_close = "<|call|>",
             .has_channels = true},
    // Command R7B and A.
    CallForm{.id = "action-list",
             .section_open = "<|START_ACTION|>[\n    ",
             .call_open = R"({"tool_call_id": "#", "tool_name": ")",
             .name_end = R"(", "parameters": )",
             .call_close = "}",
             .separator = ",\n    ",
             .section_close = "\n]<|END_ACTION|>"},
    // Apertus.
    CallForm{.id = "name-keys",
             .section_open = "<|tools_prefix|>[",
             .call_open = "{\"",
             .name_end = "\": ",
             .call_close = "}",
             .separator = ", ",
             .section_close = "]<|tools_suffix|>"},
};

bool IsIdCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

std::string CallForm::Opening() const {
  return std::string(section_open) + WithNumber(call_open, 0);
}

std::span<const CallForm> CallForms() { return kForms; }

Match TakeLiteral(std::string_view literal, std::string_view& text) {
  std::string_view rest = text;
  for (const char expected : literal) {
    if (IsJsonSpace(expected)) continue;
    if (expected == '#') {
      rest = {std::ranges::find_if_not(rest, IsIdCharacter), rest.end()};
    } else {
      rest = SkipJsonSpace(rest);
    }
    if (rest.empty()) return Match::kPerhaps;
    if (expected == '#') continue;
    if (rest.front() != expected) return Match::kNo;
    rest.remove_prefix(1);
  }
  text = rest;
  return Match::kYes;
}

std::string_view TrimSpace(std::string_view text) {
  text = SkipJsonSpace(text);
  while (!text.empty() && IsJsonSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::string WithNumber(std::string_view text, size_t number) {
  const size_t mark = text.find('#');
  if (mark == text.npos) return std::string(text);
  return Format("{}{}{}", text.substr(0, mark), number, text.substr(mark + 1));
}

}  // namespace cria::server
