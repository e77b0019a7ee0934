#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "text/chat_template.h"
#include "text/reasoning_tags.h"

namespace cria {

// The variable with which the template turns reasoning on and off; "" if there is none.
std::string_view ThinkingVariable(const ChatTemplate& chat_template);

// The tags that the template mentions. If it mentions none, <think> and </think>, because models
// may write tags that their template does not know.
ReasoningTags FindReasoningTags(const ChatTemplate& chat_template);

// Whether the answer to these messages begins inside of its reasoning, because the template itself
// has written the opening tag. Also false if the template fails.
bool OpensReasoning(const ChatTemplate& chat_template, std::span<const ChatMessage> messages,
                    std::string_view variables);

enum class AnswerPart : uint8_t { kReasoning, kAnswer };

// Divides the text of one answer into its reasoning and the answer proper, while it arrives:
//
//   ReasoningFilter filter(FindReasoningTags(chat_template),
//                          OpensReasoning(chat_template, messages, variables),
//                          [&](AnswerPart part, std::string_view text) { … });
//   conversation.Reply(question, options, sampler,
//                      [&](std::string_view text) { filter.Append(text); });
//   filter.Flush();
//
// Reasoning can only stand at the beginning, after white space: an answer may well speak of these
// tags later. The tags, and the line feeds next to them, are not passed on. A text without
// reasoning does not change. The filter holds back what may be the beginning of a tag, and
// allocates no memory beyond kMaxHeldBytes.
class ReasoningFilter {
 public:
  using Callback = std::function<void(AnswerPart part, std::string_view text)>;

  // More white space than this is not followed by an opening tag.
  static constexpr size_t kMaxHeldBytes = 64;

  ReasoningFilter(const ReasoningTags& tags, bool begins_in_reasoning, Callback on_text);

  // The pieces may be divided anywhere.
  void Append(std::string_view text);
  // Passes on what was held back, after the last piece.
  void Flush();

  // Whether the closing tag has not come yet.
  bool is_in_reasoning() const {
    return state_ == State::kReasoning || (state_ == State::kBegin && begins_in_reasoning_);
  }

 private:
  enum class State : uint8_t {
    kBegin,      // Before an opening tag, if there is one.
    kReasoning,  // Before the closing tag.
    kAfterTag,   // Line feeds after the closing tag.
    kAnswer,
  };

  // Each takes the beginning of a text and returns the rest.
  std::string_view TakeBegin(std::string_view text);
  std::string_view TakeReasoning(std::string_view text);
  void EndBegin();
  void WriteReasoning(std::string_view text);

  ReasoningTags tags_;
  bool begins_in_reasoning_;
  Callback on_text_;
  State state_ = State::kBegin;
  std::string white_space_;   // What kBegin holds back.
  size_t matched_bytes_ = 0;  // How much of the expected tag has come.
  size_t line_feeds_ = 0;     // Line feeds that end the reasoning so far.
  bool has_reasoning_ = false;
};

}  // namespace cria
