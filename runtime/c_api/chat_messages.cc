#include <string>
#include <string_view>
#include <vector>

#include "c_api/chat.h"
#include "c_api/failure.h"
#include "c_api/texts.h"

namespace cria::c_api {
namespace {

Status Reset(cria_chat* chat) {
  CRIA_ASSIGN_OR_RETURN(const ChatUse use, ChatUse::BeginReset(chat));
  chat->conversation.Reset();
  chat->needs_reset = false;
  chat->context_used = 0;
  return {};
}

Status DropLastTurn(cria_chat* chat) {
  CRIA_ASSIGN_OR_RETURN(const ChatUse use, ChatUse::Begin(chat));
  return chat->conversation.DropLastTurn();
}

Status SetVariables(cria_chat* chat, const char* json, size_t json_bytes) {
  CRIA_ASSIGN_OR_RETURN(const std::string_view text, ReadText(json, json_bytes, "json"));
  CRIA_ASSIGN_OR_RETURN(const ChatUse use, ChatUse::Begin(chat));
  return chat->conversation.SetVariables(std::string(text));
}

Status GetMessage(const cria_chat* chat, size_t index, cria_message* message) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  CRIA_RETURN_IF_ERROR(CheckNotNull(message, "message"));
  const std::span<const ChatMessage> messages = chat->conversation.messages();
  if (index >= messages.size()) {
    *message = {};
    return Fail(ErrorCode::kOutOfRange, "there is no message " + std::to_string(index) +
                                            ": the chat has " + std::to_string(messages.size()));
  }
  const ChatMessage& found = messages[index];
  *message = {.role = found.role.c_str(),
              .content = found.content.c_str(),
              .role_bytes = found.role.size(),
              .content_bytes = found.content.size()};
  return {};
}

Status RenderMessages(const cria_model* model, const cria_message* given, size_t num_messages,
                      const cria_text& variables, bool add_generation_prompt, char* text,
                      size_t capacity, size_t* text_bytes) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(text_bytes, "text_bytes"));
  *text_bytes = 0;
  CRIA_RETURN_IF_ERROR(CheckNotNull(model, "model"));
  CRIA_ASSIGN_OR_RETURN(const std::vector<ChatMessage> messages, ReadMessages(given, num_messages));
  RenderOptions options = {.add_generation_prompt = add_generation_prompt};
  CRIA_ASSIGN_OR_RETURN(options.variables,
                        ReadText(variables.text, variables.text_bytes, "variables"));
  CRIA_ASSIGN_OR_RETURN(const std::vector<ChatSegment> segments,
                        model->loaded->engine->chat_template().Render(messages, options));
  std::string whole;
  for (const ChatSegment& segment : segments) whole += segment.text;
  return WriteText(whole, text, capacity, text_bytes);
}

}  // namespace
}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_chat_reset(cria_chat* chat) {
  return c_api::Guarded([&] { return c_api::Reset(chat); });
}

cria_status cria_chat_drop_last_turn(cria_chat* chat) {
  return c_api::Guarded([&] { return c_api::DropLastTurn(chat); });
}

cria_status cria_chat_set_variables(cria_chat* chat, const char* json, size_t json_bytes) {
  return c_api::Guarded([&] { return c_api::SetVariables(chat, json, json_bytes); });
}

int cria_chat_has_forgotten(const cria_chat* chat) {
  return chat != nullptr && chat->conversation.has_forgotten();
}

size_t cria_chat_num_messages(const cria_chat* chat) {
  return chat == nullptr ? 0 : chat->conversation.messages().size();
}

cria_status cria_chat_get_message(const cria_chat* chat, size_t index, cria_message* message) {
  return c_api::Guarded([&] { return c_api::GetMessage(chat, index, message); });
}

cria_status cria_render_messages(const cria_model* model, const cria_message* messages,
                                 size_t num_messages, const char* variables, size_t variables_bytes,
                                 int add_generation_prompt, char* text, size_t capacity,
                                 size_t* text_bytes) {
  return c_api::Guarded([&] {
    return c_api::RenderMessages(model, messages, num_messages, {variables, variables_bytes},
                                 add_generation_prompt != 0, text, capacity, text_bytes);
  });
}
