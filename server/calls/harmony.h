#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/calls/call_head.h"
#include "text/reasoning.h"

namespace cria::server {

// Harmony, the form of gpt-oss: an answer is several messages, each with a header that names its
// channel, and perhaps whom it is for:
//
//   <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
//   <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>
inline constexpr std::string_view kHarmonyTurn = "<|start|>assistant";
inline constexpr std::string_view kHarmonyFinal = "<|channel|>final<|message|>";
inline constexpr ReasoningTags kHarmonyReasoning = {"<|channel|>analysis<|message|>", "<|end|>"};

// Reads a header as the head of a call (ReadCallHead).
CallHead ReadHarmonyHead(const ToolUse& use, std::string_view text);

// Leaves headers out of the text of an answer, while it comes, and tells reasoning from answers by
// the channels.
class HarmonyText {
 public:
  using Callback = std::function<void(AnswerPart part, std::string_view text)>;

  explicit HarmonyText(Callback on_text) : on_text_(std::move(on_text)) {}

  void Append(std::string_view text);
  // Passes on what was held back, after the last piece.
  void Flush();
  // Whether the text that comes next is reasoning.
  bool is_in_reasoning() const { return !is_in_header_ && part_ == AnswerPart::kReasoning; }

 private:
  void TakeByte(char byte);
  void PassHeld();

  Callback on_text_;
  bool is_in_header_ = true;
  AnswerPart part_ = AnswerPart::kAnswer;
  std::string held_;    // A header, or what may begin a mark.
  std::string passed_;  // Not told yet.
};

}  // namespace cria::server
