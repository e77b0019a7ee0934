#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "model/vocabulary.h"
#include "text/tokenizer.h"

namespace cria {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", or another that the template knows.
  std::string content;
};

struct ChatSegment {
  std::string text;
  // Whether the template wrote this text, so that special tokens in it are intended. Text from a
  // message is only text, even if it contains the names of special tokens: a message can neither
  // end a turn nor begin one. (The role names system, user, assistant and tool count as the
  // template's.)
  bool is_template = false;
};

// The local date and time.
std::tm LocalTime();

// How the conversations of a model are written. The views must outlive the ChatTemplate.
struct ChatTemplate {
  std::string_view source;  // Jinja; empty: the contents are concatenated.
  // The text of special tokens; empty: the model has none.
  std::string_view bos_token;
  std::string_view eos_token;
  std::string_view where = {};  // The template's file, which begins errors; may be empty.
  // For templates that write the date: the time, or if it is absent, what tells the time.
  std::optional<std::tm> time = {};
  std::tm (*clock)() = LocalTime;
  // More variables for the template, such as `tools` or `enable_thinking`: a JSON object with their
  // names and values, or "". The text of their strings counts as text from a message.
  std::string_view variables = {};
};

// Fails with kUsage unless `variables` can be those of a ChatTemplate: a JSON object, or "",
// without the names that are the conversation's own: messages, add_generation_prompt, bos_token,
// eos_token.
Status CheckTemplateVariables(std::string_view variables);

// The template `source` for a model with this vocabulary.
ChatTemplate MakeChatTemplate(std::string_view source, const Vocabulary& vocabulary);

// Renders a conversation by its model's template, character by character. `add_generation_prompt`
// opens the assistant's turn. Fails with kUsage if the template refuses these messages or fails
// with them; time and memory are limited in proportion to messages and variables (jinja/context.h).
Result<std::vector<ChatSegment>> RenderChat(const ChatTemplate& chat_template,
                                            std::span<const ChatMessage> messages,
                                            bool add_generation_prompt);

// The token ids of the rendering. If the vocabulary wants the BOS token and the template does not
// begin with it, it is added once.
Result<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template,
                                        std::span<const ChatMessage> messages,
                                        bool add_generation_prompt, size_t max_tokens = SIZE_MAX);

}  // namespace cria
