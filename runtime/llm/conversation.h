#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "model/chat_template_kind.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace cria {

// Called with text as it becomes complete; never with part of a UTF-8 character.
using TextCallback = std::function<void(std::string_view)>;

// Generates from the session's context and turns tokens into text on the way. `detokenizer` stands
// where the text does.
Result<StopReason> GenerateText(Session& session, Detokenizer& detokenizer, Sampler& sampler,
                                const GenerationOptions& options, const TextCallback& on_text);

// A dialogue in a session: the messages so far, and how they become tokens.
class Conversation {
 public:
  // The references must outlive the conversation. An empty `system_prompt` makes no message.
  Conversation(Session& session, const Tokenizer& tokenizer, ChatTemplateKind template_kind,
               std::string system_prompt);

  // Adds the user's message, answers it with pieces of text handed to `on_text`, and keeps both. On
  // an error the message is taken back, so that the conversation is as it was; a cancelled answer
  // is kept as far as it came.
  Result<StopReason> Reply(std::string_view user_text, const GenerationOptions& options,
                           Sampler& sampler, const TextCallback& on_text);

  // Forgets everything but the system prompt.
  void Reset();

  std::span<const ChatMessage> messages() const { return messages_; }

 private:
  Session& session_;
  const Tokenizer& tokenizer_;
  ChatTemplateKind template_kind_;
  std::string system_prompt_;
  std::vector<ChatMessage> messages_;
};

}  // namespace cria
