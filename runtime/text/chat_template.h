#pragma once

#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "model/vocabulary.h"
#include "text/tokenizer.h"

namespace cria {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", or what else the model's template knows.
  std::string content;
};

struct ChatSegment {
  std::string text;
  // Written by the template, so that special tokens in it are meant. What comes from a message is
  // only ever text, whatever the template does to it: nobody can end a turn, or begin one, by
  // writing its tokens out. (The roles system, user, assistant and tool are no text of anybody's.)
  bool is_template = false;
};

// The date and time where the program runs.
std::tm LocalTime();

// How a model wants its conversations written. The views must outlive this.
struct ChatTemplate {
  std::string_view source;  // Jinja; empty: contents alone, one after another.
  // Special tokens, as they are written; empty: the model has none.
  std::string_view bos_token;
  std::string_view eos_token;
  std::tm (*clock)() = LocalTime;  // For templates that tell the model the date.
};

// The template of a model with this vocabulary.
ChatTemplate MakeChatTemplate(std::string_view source, const Vocabulary& vocabulary);

// A conversation as its model was trained to see it: what the template makes of it, character by
// character. `add_generation_prompt` opens the assistant's turn. An error of code kUsage is the
// template's own refusal of these messages, or its failure with them; time and memory are bounded
// (jinja/context.h), in proportion to the messages.
Result<std::vector<ChatSegment>> RenderChat(const ChatTemplate& chat_template,
                                            std::span<const ChatMessage> messages,
                                            bool add_generation_prompt);

// The token ids of the rendering. Where the template itself does not begin with the token for the
// beginning of a text, it is added once if the vocabulary wants it.
Result<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template,
                                        std::span<const ChatMessage> messages,
                                        bool add_generation_prompt);

}  // namespace cria
