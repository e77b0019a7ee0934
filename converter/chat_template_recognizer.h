#pragma once

#include <span>
#include <string_view>

#include "model/chat_template_kind.h"

namespace cria {

// The form of chat that a checkpoint's Jinja template writes, judged by the marks it uses; kNone
// for one that is not known. What templates do besides (tools, dates, default system messages) is
// not looked at.
ChatTemplateKind RecognizeChatTemplate(std::string_view source);

// The special tokens that a chat of this kind is written with. A vocabulary that lacks one cannot
// follow the template.
std::span<const std::string_view> ChatTemplateTokens(ChatTemplateKind kind);

}  // namespace cria
