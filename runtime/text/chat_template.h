#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "jinja/template.h"
#include "model/vocabulary.h"
#include "text/tokenizer.h"

namespace cria {

struct ChatMessage {
  // "system", "user", "assistant", or another that the template knows. Where it does not know
  // "developer", this is "system".
  std::string role;
  std::string content;
  // More fields of the message, such as tool_calls: a JSON object without `role` and `content`, or
  // "". The text of their strings counts as text from a message.
  std::string fields = {};
  // The template is given none in place of an empty content, as some templates want it of calls.
  bool has_no_content = false;
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

// What a rendering depends on besides the messages.
struct RenderOptions {
  bool add_generation_prompt = false;  // Opens the assistant's turn.
  // More variables for the template, such as `tools` or `enable_thinking`: a JSON object with their
  // names and values, or "". The text of their strings counts as text from a message.
  std::string_view variables = {};
  // What rendering may take at most. It is limited in proportion to messages and variables, too.
  size_t max_memory_bytes = SIZE_MAX;
  // For templates that write the date: the time, or if it is absent, what the template's clock
  // says.
  std::optional<std::tm> time = {};
};

// Fails with kUsage unless `variables` can be those of RenderOptions: a JSON object, or "", without
// the names that are the conversation's own: messages, add_generation_prompt, bos_token, eos_token.
// Variables that turn reasoning on and off (kThinkingVariables) must be true, false or null.
Status CheckTemplateVariables(std::string_view variables);

// Fails with kUsage unless `fields` can be those of a ChatMessage.
Status CheckMessageFields(std::string_view fields);

// What a template knows of its model and machine. The views must outlive the ChatTemplate.
struct ChatTemplateOptions {
  // The text of special tokens; empty: the model has none.
  std::string_view bos_token = {};
  std::string_view eos_token = {};
  std::string_view where = {};  // The template's file, which begins errors; may be empty.
  std::tm (*clock)() = LocalTime;
};

// How the conversations of a model are written. The template is parsed once. Then several threads
// may use it at the same time.
class ChatTemplate {
 public:
  // `source` is Jinja and must outlive this object; if it is empty, the contents of messages are
  // concatenated.
  explicit ChatTemplate(std::string_view source, const ChatTemplateOptions& options = {});
  // For a model with this vocabulary.
  ChatTemplate(std::string_view source, const Vocabulary& vocabulary, std::string_view where = {});

  // Renders a conversation, character by character. Fails with kInvalidFile if the template cannot
  // be parsed, with kUsage if it refuses these messages or fails with them; time and memory are
  // limited in proportion to messages and variables (jinja/context.h).
  Result<std::vector<ChatSegment>> Render(std::span<const ChatMessage> messages,
                                          const RenderOptions& options = {}) const;

  // The token ids of the rendering. If the vocabulary wants the BOS token, they begin with it, or
  // the template has written it elsewhere before the first answer ends; it is never added to one
  // that the template has written.
  Result<std::vector<int32_t>> Encode(const Tokenizer& tokenizer,
                                      std::span<const ChatMessage> messages,
                                      const RenderOptions& options = {},
                                      size_t max_tokens = SIZE_MAX) const;

  // The token ids of what Render has returned, or of its beginning.
  static Result<std::vector<int32_t>> EncodeRendered(const Tokenizer& tokenizer,
                                                     std::span<const ChatSegment> rendered,
                                                     size_t max_tokens = SIZE_MAX);

  // Whether the template reads this variable from RenderOptions.
  bool Reads(std::string_view variable) const;

  // Whether the template writes what messages say only if their content is a list of parts,
  // [{"type": "text", "text": …}], and not if it is a string. Such a template is given lists of one
  // part.
  bool wants_parts() const { return wants_parts_; }

  std::string_view source() const { return source_; }
  const ChatTemplateOptions& options() const { return options_; }

 private:
  bool WritesContent() const;

  std::string_view source_;
  ChatTemplateOptions options_;
  jinja::Template parsed_;
  bool wants_parts_ = false;
};

}  // namespace cria
