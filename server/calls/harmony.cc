#include "server/calls/harmony.h"

#include <algorithm>
#include <array>
#include <utility>

namespace cria::server {
namespace {

constexpr std::string_view kRecipient = "to=functions.";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kChannel = "<|channel|>";
// What begins a header, and what ends a message.
constexpr std::array<std::string_view, 2> kHeaderMarks = {"<|start|>", kChannel};
constexpr std::array<std::string_view, 3> kEndMarks = {"<|end|>", "<|return|>", "<|call|>"};

std::string_view WithoutLeadingSpace(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  return text;
}

// Whether the text may be the beginning of a header.
bool MayBeHeader(std::string_view text) {
  const auto may_begin = [text](std::string_view mark) {
    return text.starts_with(mark) || mark.starts_with(text);
  };
  return std::ranges::any_of(kHeaderMarks, may_begin) || may_begin(kRecipient);
}

}  // namespace

CallHead ReadHarmonyHead(const ToolUse& use, std::string_view text) {
  CallHead head;
  if (text.size() > kMaxCallHeadBytes) return head;
  const std::string_view header = WithoutLeadingSpace(text);
  if (!MayBeHeader(header)) return head;
  const size_t message = header.find(kMessage);
  const size_t recipient = header.find(kRecipient);
  head.next = CallHead::Next::kPerhaps;
  if (recipient < message) {
    const std::string_view rest = header.substr(recipient + kRecipient.size());
    const std::string_view name = rest.substr(0, rest.find_first_of(" <"));
    // The channel of other headers follows the name.
    const bool is_certain = rest.empty() && header.substr(0, recipient).contains(kChannel);
    if (is_certain) {
      head.next = CallHead::Next::kName;
      head.begin = text.size();
      return head;
    }
    const bool is_whole = name.size() < rest.size();
    const bool is_known = std::ranges::any_of(use.tools, [&](const Tool& tool) {
      return is_whole ? tool.name == name : tool.name.starts_with(name);
    });
    if (!is_known) head.next = CallHead::Next::kNoCall;
    head.name = name;
  }
  if (message == header.npos) return head;
  head.next = CallHead::Next::kNoCall;
  if (recipient > message) return head;
  const std::string_view arguments = WithoutLeadingSpace(header.substr(message + kMessage.size()));
  head.begin = text.size() - arguments.size();
  const bool is_known = std::ranges::contains(use.tools, head.name, &Tool::name);
  if (is_known && arguments.empty()) head.next = CallHead::Next::kPerhaps;
  if (is_known && arguments.starts_with('{')) head.next = CallHead::Next::kArguments;
  return head;
}

void HarmonyText::Append(std::string_view text) {
  for (const char byte : text) TakeByte(byte);
  if (!passed_.empty()) on_text_(part_, std::exchange(passed_, {}));
}

void HarmonyText::Flush() {
  if (!is_in_header_) passed_ += std::exchange(held_, {});
  Append("");
}

void HarmonyText::PassHeld() {
  passed_ += held_;
  held_.clear();
}

void HarmonyText::TakeByte(char byte) {
  held_ += byte;
  if (is_in_header_) {
    if (held_.ends_with(kMessage)) {
      part_ = held_.contains("<|channel|>analysis") ? AnswerPart::kReasoning : AnswerPart::kAnswer;
      held_.clear();
      is_in_header_ = false;
    } else if (!MayBeHeader(WithoutLeadingSpace(held_)) || held_.size() > kMaxCallHeadBytes) {
      // A model that does not write in this form.
      is_in_header_ = false;
      PassHeld();
    }
    return;
  }
  const size_t mark = std::min(held_.rfind('<'), held_.size());
  passed_ += held_.substr(0, mark);
  held_.erase(0, mark);
  const std::string_view begun = held_;
  const auto begins = [begun](std::string_view other) { return other.starts_with(begun); };
  if (std::ranges::contains(kEndMarks, begun)) {
    held_.clear();
    is_in_header_ = true;
  } else if (std::ranges::contains(kHeaderMarks, begun)) {
    is_in_header_ = true;
  } else if (!std::ranges::any_of(kEndMarks, begins) &&
             !std::ranges::any_of(kHeaderMarks, begins)) {
    return PassHeld();
  }
  // The text before the mark belongs to the message that ends here, so it is told as a part of it.
  if (is_in_header_ && !passed_.empty()) on_text_(part_, std::exchange(passed_, {}));
}

}  // namespace cria::server
