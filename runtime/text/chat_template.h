#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cria/error.h"
#include "model/chat_template_kind.h"
#include "text/tokenizer.h"

namespace cria {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"; kLlama3 and kChatMl take others as they are.
  std::string content;
};

struct ChatSegment {
  std::string text;
  // Written by the template, so that special tokens in it are meant. What comes from a message is
  // only ever text: nobody can end a turn, or begin one, by writing its tokens out.
  bool is_template = false;
};

// A conversation as its model was trained to see it. Messages that follow others only add to the
// text, so that a KV cache stays good from turn to turn. `add_generation_prompt` opens the
// assistant's turn.
// - kLlama2: each question begins with <s>, as in Meta's own code; contents are stripped of white
//   space; the system message is part of the first question; user and assistant must take turns.
// - kLlama3: contents are stripped. There is a system turn only if there is a system message: the
//   dates that the templates of Llama 3.1 and later put there are left out.
// - kChatMl: contents stand as they are. Models' own default system messages are left out.
// - kNone: contents alone, one after another.
Result<std::vector<ChatSegment>> RenderChat(ChatTemplateKind kind,
                                            std::span<const ChatMessage> messages,
                                            bool add_generation_prompt);

// The token ids of the rendering. Where the template itself does not begin with the token for the
// beginning of a text, it is added once if the vocabulary wants it.
Result<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer, ChatTemplateKind kind,
                                        std::span<const ChatMessage> messages,
                                        bool add_generation_prompt);

}  // namespace cria
