#include "converter/chat_template_recognizer.h"

#include <algorithm>
#include <array>

namespace cria {
namespace {

constexpr std::array<std::string_view, 2> kLlama2Tokens = {"<s>", "</s>"};
constexpr std::array<std::string_view, 4> kLlama3Tokens = {
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
constexpr std::array<std::string_view, 2> kChatMlTokens = {"<|im_start|>", "<|im_end|>"};

bool HasAll(std::string_view source, std::initializer_list<std::string_view> marks) {
  return std::ranges::all_of(marks, [&](std::string_view mark) { return source.contains(mark); });
}

}  // namespace

ChatTemplateKind RecognizeChatTemplate(std::string_view source) {
  if (HasAll(source, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"})) {
    return ChatTemplateKind::kLlama3;
  }
  // Relatives of ChatML separate the role by a token of their own.
  if (HasAll(source, {"<|im_start|>", "<|im_end|>"}) && !source.contains("<|im_sep|>")) {
    return ChatTemplateKind::kChatMl;
  }
  // Mistral's templates also have [INST], but no <<SYS>> and other spaces.
  if (HasAll(source, {"[INST]", "[/INST]", "<<SYS>>"})) return ChatTemplateKind::kLlama2;
  return ChatTemplateKind::kNone;
}

std::span<const std::string_view> ChatTemplateTokens(ChatTemplateKind kind) {
  switch (kind) {
    case ChatTemplateKind::kNone:
      return {};
    case ChatTemplateKind::kLlama2:
      return kLlama2Tokens;
    case ChatTemplateKind::kLlama3:
      return kLlama3Tokens;
    case ChatTemplateKind::kChatMl:
      return kChatMlTokens;
  }
  return {};
}

}  // namespace cria
