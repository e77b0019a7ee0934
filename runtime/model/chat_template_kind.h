#pragma once

#include <cstdint>

namespace cria {

// How a conversation becomes text. Values as in schema/model.fbs.
enum class ChatTemplateKind : uint8_t {
  kNone,    // No known form: contents follow one another as they are.
  kLlama2,  // <s>[INST] <<SYS>>…<</SYS>> question [/INST] answer </s>
  kLlama3,  // <|start_header_id|>role<|end_header_id|>, content, <|eot_id|>
  kChatMl,  // <|im_start|>role, content, <|im_end|>
};
inline constexpr int kNumChatTemplateKinds = 4;

}  // namespace cria
