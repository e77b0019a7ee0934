#include "text/chat_template.h"

#include <algorithm>
#include <format>
#include <string_view>
#include <utility>

#include "core/utf8.h"

namespace cria {
namespace {

// White space as the templates' trim() and strip() understand it, which are Python's.
bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// Removes white space from both ends, or from the right only.
std::string_view Strip(std::string_view text, bool left = true) {
  size_t begin = 0;
  size_t end = 0;
  bool at_begin = left;
  for (size_t position = 0; position < text.size();) {
    const Utf8Character character = FirstUtf8Character(text.substr(position));
    const size_t next = position + character.size_bytes;
    const bool is_space = character.state == Utf8State::kValid &&
                          IsWhiteSpace(CodePoint(text.substr(position), character.size_bytes));
    if (is_space) {
      if (at_begin) begin = next;
    } else {
      at_begin = false;
      end = next;
    }
    position = next;
  }
  return end > begin ? text.substr(begin, end - begin) : std::string_view();
}

class Rendering {
 public:
  void AddTemplate(std::string_view text) { Add(text, true); }
  void AddContent(std::string_view text) { Add(text, false); }
  std::vector<ChatSegment> Take() { return std::move(segments_); }

 private:
  void Add(std::string_view text, bool is_template) {
    if (text.empty()) return;
    if (!segments_.empty() && segments_.back().is_template == is_template && is_template) {
      segments_.back().text += text;
    } else {
      segments_.push_back({std::string(text), is_template});
    }
  }

  std::vector<ChatSegment> segments_;
};

void RenderLlama3(std::span<const ChatMessage> messages, bool add_generation_prompt,
                  Rendering* rendering) {
  rendering->AddTemplate("<|begin_of_text|>");
  for (const ChatMessage& message : messages) {
    rendering->AddTemplate("<|start_header_id|>");
    rendering->AddContent(message.role);
    rendering->AddTemplate("<|end_header_id|>\n\n");
    rendering->AddContent(Strip(message.content));
    rendering->AddTemplate("<|eot_id|>");
  }
  if (add_generation_prompt) {
    rendering->AddTemplate("<|start_header_id|>assistant<|end_header_id|>\n\n");
  }
}

void RenderChatMl(std::span<const ChatMessage> messages, bool add_generation_prompt,
                  Rendering* rendering) {
  for (const ChatMessage& message : messages) {
    rendering->AddTemplate("<|im_start|>");
    rendering->AddContent(message.role);
    rendering->AddTemplate("\n");
    rendering->AddContent(message.content);
    rendering->AddTemplate("<|im_end|>\n");
  }
  if (add_generation_prompt) rendering->AddTemplate("<|im_start|>assistant\n");
}

Status RenderLlama2(std::span<const ChatMessage> messages, Rendering* rendering) {
  const ChatMessage* system = nullptr;
  if (!messages.empty() && messages[0].role == "system") {
    system = &messages[0];
    messages = messages.subspan(1);
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    const std::string_view expected_role = i % 2 == 0 ? "user" : "assistant";
    if (message.role != expected_role) {
      return Fail(ErrorCode::kUsage,
                  std::format("In this model's chat, user and assistant must take turns: a message "
                              "of the role \"{}\" stands where \"{}\" belongs",
                              message.role, expected_role));
    }
    if (i % 2 == 1) {
      rendering->AddTemplate(" ");
      rendering->AddContent(Strip(message.content));
      rendering->AddTemplate(" </s>");
      continue;
    }
    rendering->AddTemplate("<s>[INST] ");
    if (i == 0 && system != nullptr) {
      rendering->AddTemplate("<<SYS>>\n");
      rendering->AddContent(system->content);
      // The template strips the system message and the question as one text.
      const std::string_view question = Strip(message.content, false);
      rendering->AddTemplate(question.empty() ? "\n<</SYS>>" : "\n<</SYS>>\n\n");
      rendering->AddContent(question);
    } else {
      rendering->AddContent(Strip(message.content));
    }
    rendering->AddTemplate(" [/INST]");
  }
  return {};
}

}  // namespace

Result<std::vector<ChatSegment>> RenderChat(ChatTemplateKind kind,
                                            std::span<const ChatMessage> messages,
                                            bool add_generation_prompt) {
  Rendering rendering;
  switch (kind) {
    case ChatTemplateKind::kNone:
      for (const ChatMessage& message : messages) rendering.AddContent(message.content);
      break;
    case ChatTemplateKind::kLlama2:
      CRIA_RETURN_IF_ERROR(RenderLlama2(messages, &rendering));
      break;
    case ChatTemplateKind::kLlama3:
      RenderLlama3(messages, add_generation_prompt, &rendering);
      break;
    case ChatTemplateKind::kChatMl:
      RenderChatMl(messages, add_generation_prompt, &rendering);
      break;
  }
  return rendering.Take();
}

Result<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer, ChatTemplateKind kind,
                                        std::span<const ChatMessage> messages,
                                        bool add_generation_prompt) {
  CRIA_ASSIGN_OR_RETURN(const std::vector<ChatSegment> rendered,
                        RenderChat(kind, messages, add_generation_prompt));
  std::vector<TextSegment> segments;
  segments.reserve(rendered.size());
  for (const ChatSegment& segment : rendered) {
    segments.push_back({segment.text, segment.is_template});
  }
  return tokenizer.EncodeSegments(segments, std::nullopt);
}

}  // namespace cria
