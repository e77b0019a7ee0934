#include "converter/tokenizer/named_chat_templates.h"

#include <algorithm>
#include <array>
#include <utility>

#include "converter/input/whole_file.h"
#include "converter/tokenizer/tokenizer_file.h"
#include "core/format.h"

namespace cria {
namespace {

constexpr std::string_view kChatMl = R"jinja({%- for message in messages %}
{{- "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n" }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- "<|im_start|>assistant\n" }}
{%- endif %})jinja";

// As in Meta's own code: each question begins a new text, and the system message is part of the
// first question.
constexpr std::string_view kLlama2 = R"jinja({%- set turns = messages %}
{%- set opening = "" %}
{%- if messages and messages[0].role == "system" %}
  {%- set turns = messages[1:] %}
  {%- set opening = "<<SYS>>\n" + messages[0].content + "\n<</SYS>>\n\n" %}
{%- endif %}
{%- for message in turns %}
  {%- if message.role != ("assistant" if loop.index0 % 2 else "user") %}
    {{- raise_exception("user and assistant must take turns, and a message of the role " + message.role + " stands where the other belongs") }}
  {%- endif %}
  {%- if message.role == "assistant" %}
    {{- " " + message.content.strip() + " " + eos_token }}
  {%- else %}
    {%- set question = (opening if loop.first else "") + message.content %}
    {{- bos_token + "[INST] " + question.strip() + " [/INST]" }}
  {%- endif %}
{%- endfor %})jinja";

constexpr std::string_view kLlama3 = R"jinja({{- bos_token }}
{%- for message in messages %}
{{- "<|start_header_id|>" + message.role + "<|end_header_id|>\n\n" }}
{{- message.content | trim + "<|eot_id|>" }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- "<|start_header_id|>assistant<|end_header_id|>\n\n" }}
{%- endif %})jinja";

constexpr auto kTemplates = std::to_array<NamedChatTemplate>(
    {{"chatml", kChatMl}, {"llama2", kLlama2}, {"llama3", kLlama3}, {"none", ""}});

}  // namespace

std::span<const NamedChatTemplate> NamedChatTemplates() { return kTemplates; }

Result<ChatTemplateSource> ReadChatTemplate(const std::string& name_or_path) {
  const auto* named = std::ranges::find(kTemplates, name_or_path, &NamedChatTemplate::name);
  if (named != kTemplates.end()) {
    return ChatTemplateSource{std::string(named->source), name_or_path};
  }
  CRIA_ASSIGN_OR_RETURN(const bool is_file, FileExists(name_or_path));
  if (!is_file) {
    return Fail(ErrorCode::kUsage,
                Format("chat template \"{}\" is neither chatml, llama2, llama3 or none nor a "
                       "file",
                       name_or_path));
  }
  CRIA_ASSIGN_OR_RETURN(std::string text, ReadTemplateFile(name_or_path));
  return ChatTemplateSource{std::move(text), name_or_path};
}

}  // namespace cria
