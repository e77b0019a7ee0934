#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cria/error.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cria {

// The messages of a conversation, and how they are rendered into tokens.
//
// If the template writes the date, it is that of the first answer: otherwise, all messages would be
// read again on the next day.
//
// The system prompt is the messages before the first one of another role than system or developer.
// A turn begins with the message after it, or with a user's message after one of another role, and
// ends before the next turn: it usually is a question with its answer.
class MessageHistory {
 public:
  static constexpr std::string_view kAnswerRole = "assistant";

  // The tokens of the messages, up to the beginning of an answer, without the `left_out` oldest
  // turns.
  struct Rendering {
    size_t left_out = 0;
    std::vector<int32_t> tokens;
  };
  // How many tokens a rendering may have; it fails beyond that.
  struct Bound {
    size_t context_tokens;
    // The oldest turns are left out, so the messages may be longer than the context: each of their
    // bytes becomes at most three tokens, by normalization.
    bool leaves_out;
  };

  // The references must outlive the object.
  MessageHistory(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                 std::vector<ChatMessage> messages);

  const std::vector<ChatMessage>& messages() const { return messages_; }
  size_t num_system_messages() const { return num_system_messages_; }
  const std::string& variables() const { return variables_; }
  const std::tm& begin_time() const { return begin_time_; }
  bool has_turns() const { return messages_.size() > num_system_messages_; }
  bool ends_in_answer() const { return messages_.back().role == kAnswerRole; }
  // The number of turns before the last one.
  size_t OldTurns() const;

  void Add(ChatMessage message) { messages_.push_back(std::move(message)); }
  ChatMessage TakeLast();
  void DropLastTurn();
  void DropOldest(size_t num_turns);
  // Drops everything except the system prompt.
  void DropTurns() { messages_.resize(num_system_messages_); }
  // Fails if they are no object of JSON (CheckTemplateVariables).
  Status SetVariables(std::string json);
  void Restore(std::vector<ChatMessage> messages, size_t num_system_messages, std::tm begin_time);
  // An answer is going to begin: if it is the first one, it is now.
  void BeginAnswer();

  // All messages, without the beginning of an answer.
  Result<std::vector<int32_t>> Encode(size_t max_tokens = SIZE_MAX) const;
  Result<Rendering> Render(size_t left_out, const Bound& bound) const;
  // Leaves out as few old turns as possible, or all if the rest alone is longer.
  Result<Rendering> RenderWithin(size_t max_tokens, const Bound& bound) const;
  // How many of the tokens of a rendering are before the first question: they are the same with an
  // empty question.
  Result<size_t> TokensBeforeQuestion(std::span<const int32_t> rendering) const;

 private:
  bool BeginsTurn(size_t index) const;
  // The index of the turn's first message; the number of messages if there are not so many turns.
  size_t TurnBegin(size_t turn) const;
  // The ids of messages, rendered with the conversation's variables and time.
  Result<std::vector<int32_t>> EncodeMessages(std::span<const ChatMessage> messages,
                                              bool add_generation_prompt, size_t max_tokens) const;
  size_t MaxTokens(const Bound& bound) const;

  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_template_;
  std::vector<ChatMessage> messages_;
  size_t num_system_messages_ = 0;  // The first ones, which are never dropped.
  std::string variables_;
  std::tm begin_time_;
};

}  // namespace cria
