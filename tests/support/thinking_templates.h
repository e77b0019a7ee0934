#pragma once

#include <string_view>

namespace cria::support {

// Chat templates whose variables turn reasoning on and off, in the manner of Qwen3's and
// DeepSeek's.
inline constexpr std::string_view kQwen3Like =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% set content = m.content %}"
    "{% if m.role == 'assistant' %}{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{ content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% endif %}{% endif %}";
inline constexpr std::string_view kDeepSeekLike =
    "{% if not thinking is defined %}{% set thinking = false %}{% endif %}"
    "{% for m in messages %}{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|Assistant|>{% if thinking %}<think>\n{% else %}</think>"
    "{% endif %}{% endif %}";

}  // namespace cria::support
