#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "llm/sampler.h"
#include "llm/session.h"
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

// What becomes of a text that outgrows the context.
enum class WhenFull : uint8_t {
  kStop,   // It ends there.
  kShift,  // Its oldest part is dropped, and it goes on.
};

// A dialogue in a session: the messages so far, and how they become tokens.
//
// With kShift, the oldest turns (a question with its answer) are forgotten, as few as it takes:
// - before a message is read, until room for an answer is left: a quarter of the context, or
//   max_tokens where that is less;
// - in the middle of an answer that fills the context, until that much room is left again.
// The system prompt is never forgotten. What stays is not run again, except where the template
// writes it differently after a turn has gone (Llama 2's with a system prompt). Where a turn alone
// fills the context, the older half of its answer is dropped, and only the rest is remembered; of a
// question that leaves less room than the above, the question's older part goes, too.
class Conversation {
 public:
  // The references, and what the template points to, must outlive the conversation. An empty
  // `system_prompt` makes no message.
  Conversation(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
               std::string system_prompt, WhenFull when_full = WhenFull::kStop);

  // Adds the user's message, answers it with pieces of text handed to `on_text`, and keeps both. On
  // an error the message is taken back, so that the conversation is as it was, but for turns that
  // were forgotten in the middle of the answer; a cancelled answer is kept as far as it came.
  // With kShift, `options.make_room` is the conversation's own.
  Result<StopReason> Reply(std::string_view user_text, const GenerationOptions& options,
                           Sampler& sampler, const TextCallback& on_text);

  // From the next message on.
  void set_when_full(WhenFull when_full) { when_full_ = when_full; }

  // Forgets everything but the system prompt.
  void Reset();

  // Those that are not forgotten.
  std::span<const ChatMessage> messages() const { return messages_; }
  // Whether anything has been forgotten since the conversation began or was reset.
  bool has_forgotten() const { return has_forgotten_; }

 private:
  // The messages as tokens, open for an answer, without the `left_out` oldest turns.
  struct Rendering {
    size_t left_out = 0;
    std::vector<int32_t> tokens;
  };
  enum class Cut : uint8_t { kNothing, kAnswer, kQuestion };

  size_t num_system_messages() const { return system_prompt_.empty() ? 0 : 1; }
  // Before the question that is being answered.
  size_t OldTurns() const { return (messages_.size() - num_system_messages() - 1) / 2; }
  Result<Rendering> Render(size_t left_out) const;
  // Leaves out as few turns as it takes, or all.
  Result<Rendering> RenderWithin(size_t most_tokens) const;
  Status ReadQuestion(const std::atomic<bool>* cancel);
  Status MakeRoomInAnswer(const std::atomic<bool>* cancel);
  Status CutTurn();
  Result<bool> DropLeftOut(std::span<const int32_t> shorter);
  void Forget(Rendering shorter);

  Session& session_;
  const Tokenizer& tokenizer_;
  ChatTemplate chat_template_;
  std::string system_prompt_;
  WhenFull when_full_;
  std::vector<ChatMessage> messages_;
  bool has_forgotten_ = false;

  // Of the reply under way.
  std::vector<int32_t> prompt_;  // What the context begins with; the answer is behind it.
  size_t reserve_ = 0;           // Tokens of room for an answer.
  Cut cut_ = Cut::kNothing;
};

}  // namespace cria
