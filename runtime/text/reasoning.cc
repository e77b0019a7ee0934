#include "text/reasoning.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "text/thinking_variables.h"

namespace cria {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

}  // namespace

std::string_view ThinkingVariable(const ChatTemplate& chat_template) {
  const auto found = std::ranges::find_if(
      kThinkingVariables, [&](std::string_view name) { return chat_template.Reads(name); });
  return found == kThinkingVariables.end() ? std::string_view() : *found;
}

ReasoningTags FindReasoningTags(const ChatTemplate& chat_template) {
  const std::string_view source = chat_template.source();
  const auto* const found = std::ranges::find_if(kReasoningTags, [&](const ReasoningTags& tags) {
    return source.contains(tags.open) || source.contains(tags.close);
  });
  return found == kReasoningTags.end() ? kReasoningTags[0] : *found;
}

bool OpensReasoning(const ChatTemplate& chat_template, std::span<const ChatMessage> messages,
                    std::string_view variables) {
  const auto rendered =
      chat_template.Render(messages, {.add_generation_prompt = true, .variables = variables});
  if (!rendered || rendered->empty() || !rendered->back().is_template) return false;
  // Instructions may mention the tags, but only the last thing that is written opens a reasoning.
  std::string_view end = rendered->back().text;
  end = end.substr(0, end.find_last_not_of(kWhiteSpace) + 1);
  return end.ends_with(FindReasoningTags(chat_template).open);
}

ReasoningFilter::ReasoningFilter(const ReasoningTags& tags, bool begins_in_reasoning,
                                 Callback on_text)
    : tags_(tags), begins_in_reasoning_(begins_in_reasoning), on_text_(std::move(on_text)) {
  white_space_.reserve(kMaxHeldBytes);
}

void ReasoningFilter::Append(std::string_view text) {
  while (!text.empty()) {
    switch (state_) {
      case State::kBegin:
        text = TakeBegin(text);
        break;
      case State::kReasoning:
        text = TakeReasoning(text);
        break;
      case State::kAfterTag:
        text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
        if (!text.empty()) state_ = State::kAnswer;
        break;
      case State::kAnswer:
        on_text_(AnswerPart::kAnswer, text);
        return;
    }
  }
}

void ReasoningFilter::Flush() {
  if (state_ == State::kBegin) EndBegin();
  if (state_ == State::kReasoning && matched_bytes_ > 0) {
    WriteReasoning(tags_.close.substr(0, std::exchange(matched_bytes_, 0)));
  }
}

// Compares one byte. Only the first byte of a tag is where it could begin again, so a mismatch need
// not look back.
std::string_view ReasoningFilter::TakeBegin(std::string_view text) {
  const char byte = text.front();
  if (byte == tags_.open[matched_bytes_]) {
    if (++matched_bytes_ == tags_.open.size()) {
      matched_bytes_ = 0;
      state_ = State::kReasoning;
    }
  } else if (matched_bytes_ == 0 && kWhiteSpace.contains(byte) &&
             white_space_.size() < kMaxHeldBytes) {
    white_space_ += byte;
  } else {
    EndBegin();
    return text;
  }
  return text.substr(1);
}

// There is no opening tag: what was held back is other text, or begins the closing tag.
void ReasoningFilter::EndBegin() {
  state_ = begins_in_reasoning_ ? State::kReasoning : State::kAnswer;
  const std::string_view held = tags_.open.substr(0, std::exchange(matched_bytes_, 0));
  Append(white_space_);
  Append(held);
}

std::string_view ReasoningFilter::TakeReasoning(std::string_view text) {
  if (matched_bytes_ == 0) {
    const std::string_view before = text.substr(0, text.find(tags_.close.front()));
    WriteReasoning(before);
    text.remove_prefix(before.size());
    if (text.empty()) return text;
  }
  if (text.front() != tags_.close[matched_bytes_]) {
    WriteReasoning(tags_.close.substr(0, std::exchange(matched_bytes_, 0)));
    return text;
  }
  if (++matched_bytes_ == tags_.close.size()) state_ = State::kAfterTag;
  return text.substr(1);
}

// Passes the text on, except for line feeds at the beginning and end of all reasoning.
void ReasoningFilter::WriteReasoning(std::string_view text) {
  static constexpr std::string_view kLineFeeds = "\n\n\n\n\n\n\n\n";
  const size_t begin = has_reasoning_ ? 0 : text.find_first_not_of('\n');
  if (begin >= text.size()) return;
  text.remove_prefix(begin);
  const size_t end = text.find_last_not_of('\n') + 1;
  if (end > 0) {
    for (; line_feeds_ > 0; line_feeds_ -= std::min(line_feeds_, kLineFeeds.size())) {
      on_text_(AnswerPart::kReasoning, kLineFeeds.substr(0, line_feeds_));
    }
    on_text_(AnswerPart::kReasoning, text.substr(0, end));
    has_reasoning_ = true;
  }
  line_feeds_ += text.size() - end;
}

}  // namespace cria
