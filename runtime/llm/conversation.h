#pragma once

#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "llm/completion.h"
#include "llm/message_history.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "llm/turn.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cria {

// What a conversation is, apart from its session, its template and WhenFull.
struct ConversationState {
  std::vector<ChatMessage> messages;
  size_t num_system_messages = 0;  // The first ones, which are never dropped.
  std::string variables;           // For the template: JSON, or "".
  bool has_forgotten = false;
  std::tm begin_time = {};  // Local.
};

// A dialogue in a session: the messages so far (MessageHistory, which says what turns are), what is
// answered to them, and what of them is dropped.
//
// With kShift, the oldest turns are dropped, as few as possible:
// - before a message is read, until there is room for an answer: a quarter of the context, or
//   max_tokens if that is less;
// - when an answer fills the context, until there is that much room again.
// The system prompt is never dropped. The remaining turns are not computed again, except if the
// template renders them differently without the dropped turn (as Llama 2's does with a system
// prompt). If one turn fills the context, the older half of its answer is dropped, and only the
// rest is remembered. If a question leaves less room than the above, the question's older part is
// dropped, too.
//
// With kForget, the oldest turns are dropped in the same way, but nothing of a question or of its
// answer: an answer ends where it has filled the context. One with a constraint ends within the
// room that its question left, so that the constraint can lead it to an end.
class Conversation {
 public:
  // The references must outlive the conversation. With an empty `system_prompt` there is no system
  // message.
  Conversation(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
               std::string system_prompt, WhenFull when_full = WhenFull::kStop);
  // Goes on from these messages, which may be none.
  Conversation(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
               std::vector<ChatMessage> messages, WhenFull when_full = WhenFull::kStop);

  // Adds the user's message, answers it with pieces of text passed to `on_text`, and keeps both. On
  // an error the message is removed, so that the conversation is as it was, except for turns that
  // were dropped during the answer; a cancelled answer is kept as far as it came. Without kStop,
  // `options.make_room` is set by the conversation.
  Result<StopReason> Reply(std::string_view user_text, const GenerationOptions& options,
                           Sampler& sampler, const TextCallback& on_text);
  // Replies to a message of any role except an answer's.
  Result<StopReason> ReplyTo(ChatMessage message, const GenerationOptions& options,
                             Sampler& sampler, const TextCallback& on_text);
  // Replies to the messages as they are; the last one must not be an answer.
  Result<StopReason> Answer(const GenerationOptions& options, Sampler& sampler,
                            const TextCallback& on_text);
  // Removes the answer at the end and generates another. On an error, the old one is still there.
  Result<StopReason> Regenerate(const GenerationOptions& options, Sampler& sampler,
                                const TextCallback& on_text);

  // Removes the last turn.
  Status DropLastTurn();

  // Reads the messages, with the beginning of an answer unless the last one is an answer, and
  // returns the logits of the next token. The turn is one of the conversation's session.
  Result<LogitRows> Logits(Turn& turn, const PromptCallback& on_prompt = nullptr);

  // Variables for the template from the next message on: a JSON object, or "" for none. Fails if
  // they are not (CheckTemplateVariables).
  Status SetVariables(std::string json);

  Session& session() const { return session_; }
  // How many tokens at the beginning of the session's context are those of the messages.
  size_t NumTokensInContext() const;

  ConversationState State() const;
  // Goes on from a state. If it fails, because of the variables, nothing has changed.
  Status Restore(ConversationState state);

  // Holds from the next message on.
  void set_when_full(WhenFull when_full) { when_full_ = when_full; }

  // Drops everything except the system prompt.
  void Reset();

  // The messages that were not dropped.
  std::span<const ChatMessage> messages() const { return history_.messages(); }
  // Whether turns were dropped since the conversation began or was reset.
  bool has_forgotten() const { return has_forgotten_; }
  // Whether something was dropped for the last answer, or in it.
  bool has_just_forgotten() const { return has_just_forgotten_; }

 private:
  using Rendering = MessageHistory::Rendering;
  enum class Cut : uint8_t { kNothing, kAnswer, kQuestion };

  MessageHistory::Bound bound() const {
    return {session_.context_tokens(), when_full_ != WhenFull::kStop};
  }
  TurnOptions OptionsOfTurn(const GenerationOptions& options,
                            std::span<const int32_t> prompt) const;
  // `rendering` leaves nothing out.
  Status ReadQuestion(Turn& turn, size_t max_tokens, const PromptCallback& on_prompt,
                      Rendering rendering);
  Status MakeRoomInAnswer(Turn& turn, const PromptCallback& on_prompt);
  Status CutTurn(Turn& turn);
  Result<bool> DropLeftOut(Turn& turn, std::span<const int32_t> shorter);
  void Forget(Rendering shorter);

  Session& session_;
  const Tokenizer& tokenizer_;
  MessageHistory history_;
  WhenFull when_full_;
  bool has_forgotten_ = false;
  bool has_just_forgotten_ = false;

  // These belong to the reply that is being generated.
  std::vector<int32_t> prompt_;  // The beginning of the context, up to the answer.
  size_t reserve_ = 0;           // Tokens to keep free for an answer.
  Cut cut_ = Cut::kNothing;
};

}  // namespace cria
