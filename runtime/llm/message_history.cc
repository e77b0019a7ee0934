#include "llm/message_history.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "llm/common_beginning.h"

namespace cria {
namespace {

bool IsUser(const ChatMessage& message) { return message.role == "user"; }
bool IsSystem(const ChatMessage& message) {
  return message.role == "system" || message.role == "developer";
}

}  // namespace

MessageHistory::MessageHistory(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                               std::vector<ChatMessage> messages)
    : tokenizer_(tokenizer),
      chat_template_(chat_template),
      messages_(std::move(messages)),
      begin_time_(chat_template.options().clock()) {
  while (num_system_messages_ < messages_.size() && IsSystem(messages_[num_system_messages_])) {
    ++num_system_messages_;
  }
}

ChatMessage MessageHistory::TakeLast() {
  ChatMessage last = std::move(messages_.back());
  messages_.pop_back();
  return last;
}

void MessageHistory::DropLastTurn() { messages_.resize(TurnBegin(OldTurns())); }

void MessageHistory::DropOldest(size_t num_turns) {
  const auto oldest = messages_.begin() + static_cast<ptrdiff_t>(num_system_messages_);
  messages_.erase(oldest, messages_.begin() + static_cast<ptrdiff_t>(TurnBegin(num_turns)));
}

Status MessageHistory::SetVariables(std::string json) {
  CRIA_RETURN_IF_ERROR(CheckTemplateVariables(json));
  variables_ = std::move(json);
  return {};
}

void MessageHistory::Restore(std::vector<ChatMessage> messages, size_t num_system_messages,
                             std::tm begin_time) {
  messages_ = std::move(messages);
  num_system_messages_ = num_system_messages;
  begin_time_ = begin_time;
}

void MessageHistory::BeginAnswer() {
  const auto is_answer = [](const ChatMessage& message) { return message.role == kAnswerRole; };
  if (std::ranges::none_of(messages_, is_answer)) begin_time_ = chat_template_.options().clock();
}

bool MessageHistory::BeginsTurn(size_t index) const {
  return index == num_system_messages_ ||
         (IsUser(messages_[index]) && !IsUser(messages_[index - 1]));
}

size_t MessageHistory::TurnBegin(size_t turn) const {
  size_t i = num_system_messages_;
  for (; i < messages_.size(); ++i) {
    if (BeginsTurn(i) && turn-- == 0) break;
  }
  return i;
}

size_t MessageHistory::OldTurns() const {
  size_t turns = 0;
  for (size_t i = num_system_messages_ + 1; i < messages_.size(); ++i)
    turns += BeginsTurn(i) ? 1 : 0;
  return turns;
}

Result<std::vector<int32_t>> MessageHistory::EncodeMessages(std::span<const ChatMessage> messages,
                                                            bool add_generation_prompt,
                                                            size_t max_tokens) const {
  return chat_template_.Encode(tokenizer_, messages,
                               {.add_generation_prompt = add_generation_prompt,
                                .variables = variables_,
                                .time = begin_time_},
                               max_tokens);
}

Result<std::vector<int32_t>> MessageHistory::Encode(size_t max_tokens) const {
  return EncodeMessages(messages_, /*add_generation_prompt=*/false, max_tokens);
}

size_t MessageHistory::MaxTokens(const Bound& bound) const {
  if (!bound.leaves_out) return bound.context_tokens;
  constexpr size_t kMaxContexts = 4;
  constexpr size_t kMaxTokensOfByte = 3;
  size_t history_bytes = 0;
  for (const ChatMessage& message : std::span(messages_).first(messages_.size() - 1)) {
    history_bytes += message.content.size();
  }
  return kMaxContexts * bound.context_tokens + kMaxTokensOfByte * history_bytes;
}

Result<MessageHistory::Rendering> MessageHistory::Render(size_t left_out,
                                                         const Bound& bound) const {
  const auto at = [this](size_t index) {
    return messages_.begin() + static_cast<ptrdiff_t>(index);
  };
  std::vector<ChatMessage> rest(messages_.begin(), at(num_system_messages_));
  rest.insert(rest.end(), at(TurnBegin(left_out)), messages_.end());
  CRIA_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                        EncodeMessages(rest, /*add_generation_prompt=*/true, MaxTokens(bound)));
  return Rendering{left_out, std::move(tokens)};
}

Result<MessageHistory::Rendering> MessageHistory::RenderWithin(size_t max_tokens,
                                                               const Bound& bound) const {
  size_t too_few = 0;
  CRIA_ASSIGN_OR_RETURN(Rendering enough, Render(OldTurns(), bound));
  while (enough.left_out > too_few + 1) {
    CRIA_ASSIGN_OR_RETURN(Rendering middle, Render(std::midpoint(too_few, enough.left_out), bound));
    if (middle.tokens.size() <= max_tokens) {
      enough = std::move(middle);
    } else {
      too_few = middle.left_out;
    }
  }
  return enough;
}

Result<size_t> MessageHistory::TokensBeforeQuestion(std::span<const int32_t> rendering) const {
  std::vector<ChatMessage> messages(
      messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(num_system_messages_));
  messages.push_back({messages_[num_system_messages_].role, ""});
  CRIA_ASSIGN_OR_RETURN(
      const std::vector<int32_t> without_question,
      EncodeMessages(messages, /*add_generation_prompt=*/false, /*max_tokens=*/SIZE_MAX));
  return CommonBeginning(rendering, without_question);
}

}  // namespace cria
