#include <string>

#include "c_api/chat.h"
#include "c_api/failure.h"
#include "llm/session_file.h"

namespace cria::c_api {
namespace {

Status Save(cria_chat* chat, const char* path) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(path, "path"));
  CRIA_ASSIGN_OR_RETURN(const ChatUse use, ChatUse::Begin(chat));
  ModelUse model_use;
  CRIA_RETURN_IF_ERROR(model_use.Begin(*chat->model));
  return SaveConversation(path, chat->conversation, *chat->model->engine);
}

Status Load(cria_chat* chat, const char* path, int* is_context_restored) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(path, "path"));
  CRIA_ASSIGN_OR_RETURN(const ChatUse use, ChatUse::Begin(chat));
  ModelUse model_use;
  CRIA_RETURN_IF_ERROR(model_use.Begin(*chat->model));
  CRIA_ASSIGN_OR_RETURN(const std::string why_read_again,
                        LoadConversation(path, chat->conversation, *chat->model->engine));
  if (!why_read_again.empty()) return {};
  chat->context_used = static_cast<uint32_t>(chat->conversation.session().tokens().size());
  if (is_context_restored != nullptr) *is_context_restored = 1;
  return {};
}

}  // namespace
}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_chat_save(cria_chat* chat, const char* path) {
  return c_api::Guarded([&] { return c_api::Save(chat, path); });
}

cria_status cria_chat_load(cria_model* model, const char* path,
                           const cria_generation_options* options, cria_chat** chat,
                           int* is_context_restored) {
  if (is_context_restored != nullptr) *is_context_restored = 0;
  const cria_status created = cria_chat_create(model, nullptr, options, chat);
  if (created != CRIA_OK) return created;
  const cria_status loaded =
      c_api::Guarded([&] { return c_api::Load(*chat, path, is_context_restored); });
  if (loaded == CRIA_OK) return loaded;
  cria_chat_free(*chat);
  *chat = nullptr;
  return loaded;
}
