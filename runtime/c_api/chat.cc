#include <memory>
#include <string>
#include <utility>

#include "c_api/answer.h"
#include "c_api/failure.h"

// NOLINTNEXTLINE(readability-identifier-naming): the C API's name.
struct cria_chat {
  std::shared_ptr<cria::c_api::LoadedModel> model;
  cria_generation_options options;
  cria::Sampler sampler;
  cria::Conversation conversation;
  std::atomic<uint32_t> context_used = 0;
  // After an exception in cria_chat_send, the state of the conversation is undefined.
  bool needs_reset = false;
};

namespace cria::c_api {
namespace {

Status CreateChat(cria_model* handle, const char* system_prompt,
                  const cria_generation_options* given, cria_chat** chat) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  *chat = nullptr;
  CRIA_RETURN_IF_ERROR(CheckNotNull(handle, "model"));
  const std::shared_ptr<LoadedModel>& model = handle->loaded;
  CRIA_ASSIGN_OR_RETURN(const cria_generation_options options, ReadGenerationOptions(given));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler, MakeSampler(*model, options));
  Engine& engine = *model->engine;
  *chat = new cria_chat{.model = model,
                        .options = options,
                        .sampler = std::move(sampler),
                        .conversation = Conversation(
                            engine.session(), engine.tokenizer(), engine.chat_template(),
                            system_prompt == nullptr ? "" : system_prompt, WhenFullOf(options))};
  return {};
}

Status SetOptions(cria_chat* chat, const cria_generation_options* given) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  CRIA_ASSIGN_OR_RETURN(const cria_generation_options options, ReadGenerationOptions(given));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler, MakeSampler(*chat->model, options));
  CRIA_ASSIGN_OR_RETURN(const ModelUse use, ModelUse::Begin(*chat->model));
  chat->options = options;
  chat->sampler = std::move(sampler);
  chat->conversation.set_when_full(WhenFullOf(options));
  return {};
}

Status Send(cria_chat* chat, const char* message, cria_text_callback on_text, void* data,
            cria_result* result) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  CRIA_RETURN_IF_ERROR(CheckNotNull(message, "message"));
  CRIA_RETURN_IF_ERROR(CheckResult(result));
  CRIA_ASSIGN_OR_RETURN(const ModelUse use, ModelUse::Begin(*chat->model));
  if (chat->needs_reset) {
    return Fail(ErrorCode::kUsage, "an exception interrupted the last message; reset the chat");
  }
  Answer answer(*chat->model, on_text, data, &chat->context_used);
  chat->needs_reset = true;
  const Result<StopReason> reason = chat->conversation.Reply(
      message, answer.Options(chat->options.max_tokens), chat->sampler, answer.Receiver());
  chat->needs_reset = false;
  CRIA_RETURN_IF_ERROR(reason);
  return answer.Finish(*reason, result);
}

Status Reset(cria_chat* chat) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  CRIA_ASSIGN_OR_RETURN(const ModelUse use, ModelUse::Begin(*chat->model));
  chat->conversation.Reset();
  chat->needs_reset = false;
  chat->context_used = 0;
  return {};
}

}  // namespace
}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_chat_create(cria_model* model, const char* system_prompt,
                             const cria_generation_options* options, cria_chat** chat) {
  return c_api::Guarded([&] { return c_api::CreateChat(model, system_prompt, options, chat); });
}

void cria_chat_free(cria_chat* chat) { delete chat; }

cria_status cria_chat_set_options(cria_chat* chat, const cria_generation_options* options) {
  return c_api::Guarded([&] { return c_api::SetOptions(chat, options); });
}

cria_status cria_chat_send(cria_chat* chat, const char* message, cria_text_callback on_text,
                           void* data, cria_result* result) {
  return c_api::Guarded([&] { return c_api::Send(chat, message, on_text, data, result); });
}

cria_status cria_chat_reset(cria_chat* chat) {
  return c_api::Guarded([&] { return c_api::Reset(chat); });
}

uint32_t cria_chat_context_used(const cria_chat* chat) {
  return chat == nullptr ? 0 : chat->context_used.load();
}

int cria_chat_has_forgotten(const cria_chat* chat) {
  return chat != nullptr && chat->conversation.has_forgotten();
}
