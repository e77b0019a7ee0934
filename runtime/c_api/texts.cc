#include "c_api/texts.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/format.h"

namespace cria::c_api {

Status CheckArray(const void* elements, size_t count, std::string_view name) {
  if (count > kMaxArrayElements) {
    return Fail(ErrorCode::kUsage, Format("{} has {} elements, but at most {} are allowed", name,
                                          count, kMaxArrayElements));
  }
  return count == 0 ? Status() : CheckNotNull(elements, name);
}

Result<std::string_view> ReadText(const char* text, size_t bytes, std::string_view name) {
  if (bytes == 0) return std::string_view();
  CRIA_RETURN_IF_ERROR(CheckNotNull(text, name));
  if (bytes == CRIA_ZERO_TERMINATED) return std::string_view(text);
  if (bytes > PTRDIFF_MAX) {
    return Fail(ErrorCode::kUsage, Format("{} has {} bytes, which no text can have", name, bytes));
  }
  return std::string_view(text, bytes);
}

Result<ChatMessage> ReadMessage(const cria_message& message) {
  CRIA_ASSIGN_OR_RETURN(const std::string_view role,
                        ReadText(message.role, message.role_bytes, "role"));
  CRIA_ASSIGN_OR_RETURN(const std::string_view content,
                        ReadText(message.content, message.content_bytes, "content"));
  if (role.empty()) return Fail(ErrorCode::kUsage, "the role of a message is empty");
  return ChatMessage{std::string(role), std::string(content)};
}

Result<std::vector<ChatMessage>> ReadMessages(const cria_message* messages, size_t num_messages) {
  CRIA_ASSIGN_OR_RETURN(const std::span<const cria_message> given,
                        ReadArray(messages, num_messages, "messages"));
  std::vector<ChatMessage> read;
  for (const cria_message& message : given) {
    CRIA_ASSIGN_OR_RETURN(ChatMessage next, ReadMessage(message));
    read.push_back(std::move(next));
  }
  return read;
}

Status CheckCapacity(size_t needed, size_t capacity, std::string_view unit) {
  if (needed <= capacity) return {};
  return Fail(ErrorCode::kOutOfRange,
              Format("the buffer holds {} {}, but {} are needed", capacity, unit, needed));
}

Status WriteText(std::string_view whole, char* text, size_t capacity, size_t* text_bytes) {
  *text_bytes = whole.size();
  if (text == nullptr) return {};
  CRIA_RETURN_IF_ERROR(CheckCapacity(whole.size() + 1, capacity, "bytes"));
  std::ranges::copy(whole, text);
  text[whole.size()] = '\0';
  return {};
}

}  // namespace cria::c_api
