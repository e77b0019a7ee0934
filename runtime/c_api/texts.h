#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "c_api/failure.h"
#include "text/chat_template.h"

namespace cria::c_api {

// More elements are taken for a mistake.
inline constexpr size_t kMaxArrayElements = 1'000'000;

Status CheckArray(const void* elements, size_t count, std::string_view name);

// A caller's array, which may be null if it is empty.
template <typename T>
Result<std::span<const T>> ReadArray(const T* elements, size_t count, std::string_view name) {
  CRIA_RETURN_IF_ERROR(CheckArray(elements, count, name));
  return std::span(elements, count);
}

// A caller's text; `bytes` may be CRIA_ZERO_TERMINATED. Null is allowed if `bytes` is 0.
Result<std::string_view> ReadText(const char* text, size_t bytes, std::string_view name);

// Copies. A role must not be empty.
Result<ChatMessage> ReadMessage(const cria_message& message);
Result<std::vector<ChatMessage>> ReadMessages(const cria_message* messages, size_t num_messages);

// Fails if a caller's buffer is too small.
Status CheckCapacity(size_t needed, size_t capacity, std::string_view unit);

// Writes a text and a zero byte into a caller's buffer, unless that is null, and sets `text_bytes`.
Status WriteText(std::string_view whole, char* text, size_t capacity, size_t* text_bytes);

}  // namespace cria::c_api
