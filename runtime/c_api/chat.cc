#include "c_api/chat.h"

#include <string>
#include <utility>
#include <vector>

#include "c_api/answer.h"
#include "c_api/failure.h"
#include "c_api/logits.h"
#include "c_api/texts.h"

namespace cria::c_api {
namespace {

Status CreateChat(cria_model* handle, std::vector<ChatMessage> messages,
                  const cria_generation_options* options, cria_chat** chat) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(handle, "model"));
  const std::shared_ptr<LoadedModel>& model = handle->loaded;
  CRIA_ASSIGN_OR_RETURN(Generation generation, MakeGeneration(*model, options));
  Engine& engine = *model->engine;
  const WhenFull when_full = generation.when_full;
  std::unique_ptr<Session> session = engine.NewSession();
  Session& its_session = *session;
  *chat = new cria_chat{
      .model = model,
      .generation = std::move(generation),
      .session = std::move(session),
      .conversation = Conversation(its_session, engine.tokenizer(), engine.chat_template(),
                                   std::move(messages), when_full)};
  return {};
}

Status CreateWithPrompt(cria_model* model, const char* system_prompt,
                        const cria_generation_options* options, cria_chat** chat) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  *chat = nullptr;
  std::vector<ChatMessage> messages;
  if (system_prompt != nullptr && *system_prompt != '\0') {
    messages.push_back({"system", system_prompt});
  }
  return CreateChat(model, std::move(messages), options, chat);
}

Status CreateFromMessages(cria_model* model, const cria_message* given, size_t num_messages,
                          const cria_generation_options* options, cria_chat** chat) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  *chat = nullptr;
  CRIA_ASSIGN_OR_RETURN(std::vector<ChatMessage> messages, ReadMessages(given, num_messages));
  return CreateChat(model, std::move(messages), options, chat);
}

Status SetOptions(cria_chat* chat, const cria_generation_options* options) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  CRIA_ASSIGN_OR_RETURN(Generation generation, MakeGeneration(*chat->model, options));
  CRIA_ASSIGN_OR_RETURN(const ChatUse use, ChatUse::BeginReset(chat));
  chat->conversation.set_when_full(generation.when_full);
  chat->generation = std::move(generation);
  return {};
}

// Ends the session's turn even if a callback throws.
class TurnEnd {
 public:
  explicit TurnEnd(Session& session) : session_(session) {}
  TurnEnd(const TurnEnd&) = delete;
  TurnEnd& operator=(const TurnEnd&) = delete;
  ~TurnEnd() { session_.EndTurn(); }

 private:
  Session& session_;
};

enum class Task : uint8_t { kSend, kAnswer, kRegenerate };

// `message` is that of kSend.
Status Generate(cria_chat* chat, Task task, ChatMessage message, const cria_callbacks& callbacks,
                cria_result* result) {
  CRIA_RETURN_IF_ERROR(CheckResult(result));
  CRIA_ASSIGN_OR_RETURN(const ChatUse use, ChatUse::Begin(chat));
  ModelUse model_use;
  CRIA_RETURN_IF_ERROR(model_use.Begin(*chat->model));
  CRIA_ASSIGN_OR_RETURN(const ConstraintUse constraint,
                        ConstraintUse::Begin(*chat->model, chat->generation));
  const Answer::OfChat of_chat = {chat->cancel, chat->context_used};
  Answer answer(*chat->model, *chat->session, callbacks, &of_chat);
  const GenerationOptions options = answer.Options(&chat->generation, constraint.get());
  Sampler& sampler = chat->generation.sampler;
  Conversation& conversation = chat->conversation;
  const TurnEnd turn_end(*chat->session);
  chat->needs_reset = true;
  const Result<StopReason> reason =
      task == Task::kSend
          ? conversation.ReplyTo(std::move(message), options, sampler, answer.Receiver())
      : task == Task::kAnswer ? conversation.Answer(options, sampler, answer.Receiver())
                              : conversation.Regenerate(options, sampler, answer.Receiver());
  chat->needs_reset = false;
  CRIA_RETURN_IF_ERROR(reason);
  return answer.Finish(*reason, result);
}

Status Send(cria_chat* chat, const char* message, cria_text_callback on_text, void* data,
            cria_result* result) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  CRIA_RETURN_IF_ERROR(CheckNotNull(message, "message"));
  cria_callbacks callbacks = CRIA_CALLBACKS_INIT;
  callbacks.on_text = on_text;
  callbacks.data = data;
  return Generate(chat, Task::kSend, {"user", message}, callbacks, result);
}

Status AnswerMessage(cria_chat* chat, const cria_message* given, const cria_callbacks* callbacks,
                     cria_result* result) {
  CRIA_ASSIGN_OR_RETURN(const cria_callbacks known, ReadCallbacks(callbacks));
  if (given == nullptr) return Generate(chat, Task::kAnswer, {}, known, result);
  CRIA_ASSIGN_OR_RETURN(ChatMessage message, ReadMessage(*given));
  return Generate(chat, Task::kSend, std::move(message), known, result);
}

Status Regenerate(cria_chat* chat, const cria_callbacks* callbacks, cria_result* result) {
  CRIA_ASSIGN_OR_RETURN(const cria_callbacks known, ReadCallbacks(callbacks));
  return Generate(chat, Task::kRegenerate, {}, known, result);
}

Status GetLogits(cria_chat* chat, const cria_callbacks* callbacks, const LogitBuffer& buffer) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  CRIA_ASSIGN_OR_RETURN(const cria_callbacks known, ReadCallbacks(callbacks));
  CRIA_ASSIGN_OR_RETURN(const bool is_wanted, buffer.Prepare(*chat->model));
  if (!is_wanted) return {};
  CRIA_ASSIGN_OR_RETURN(const ChatUse use, ChatUse::Begin(chat));
  ModelUse model_use;
  CRIA_RETURN_IF_ERROR(model_use.Begin(*chat->model));
  const Answer::OfChat of_chat = {chat->cancel, chat->context_used};
  Answer reading(*chat->model, *chat->session, known, &of_chat);
  const GenerationOptions options = reading.Options(nullptr);
  Turn turn(*chat->session, {.cancel = options.cancel});
  chat->needs_reset = true;
  const Result<LogitRows> logits = chat->conversation.Logits(turn, options.on_prompt);
  chat->needs_reset = false;
  if (!logits) return std::unexpected(logits.error());
  buffer.Fill(logits->front());
  return reading.Finish(StopReason::kMaxTokens, nullptr);
}

}  // namespace

Result<ChatUse> ChatUse::Begin(cria_chat* chat) {
  CRIA_ASSIGN_OR_RETURN(ChatUse use, BeginReset(chat));
  if (chat->needs_reset) {
    return Fail(ErrorCode::kUsage, "an exception interrupted the last message; reset the chat");
  }
  return use;
}

Result<ChatUse> ChatUse::BeginReset(cria_chat* chat) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(chat, "chat"));
  if (chat->is_in_use.exchange(true)) {
    return Fail(ErrorCode::kUsage,
                "the chat is in use: another thread, or the caller of this callback, waits for its "
                "answer; wait until it ends, or stop it with cria_chat_cancel");
  }
  return ChatUse(chat);
}

}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_chat_create(cria_model* model, const char* system_prompt,
                             const cria_generation_options* options, cria_chat** chat) {
  return c_api::Guarded(
      [&] { return c_api::CreateWithPrompt(model, system_prompt, options, chat); });
}

cria_status cria_chat_create_from_messages(cria_model* model, const cria_message* messages,
                                           size_t num_messages,
                                           const cria_generation_options* options,
                                           cria_chat** chat) {
  return c_api::Guarded(
      [&] { return c_api::CreateFromMessages(model, messages, num_messages, options, chat); });
}

void cria_chat_free(cria_chat* chat) { delete chat; }

cria_status cria_chat_set_options(cria_chat* chat, const cria_generation_options* options) {
  return c_api::Guarded([&] { return c_api::SetOptions(chat, options); });
}

cria_status cria_chat_send(cria_chat* chat, const char* message, cria_text_callback on_text,
                           void* data, cria_result* result) {
  return c_api::Guarded([&] { return c_api::Send(chat, message, on_text, data, result); });
}

cria_status cria_chat_answer(cria_chat* chat, const cria_message* message,
                             const cria_callbacks* callbacks, cria_result* result) {
  return c_api::Guarded([&] { return c_api::AnswerMessage(chat, message, callbacks, result); });
}

cria_status cria_chat_regenerate(cria_chat* chat, const cria_callbacks* callbacks,
                                 cria_result* result) {
  return c_api::Guarded([&] { return c_api::Regenerate(chat, callbacks, result); });
}

cria_status cria_chat_get_logits(cria_chat* chat, const cria_callbacks* callbacks, float* logits,
                                 size_t capacity, size_t* num_logits) {
  return c_api::Guarded(
      [&] { return c_api::GetLogits(chat, callbacks, {logits, capacity, num_logits}); });
}

void cria_chat_cancel(cria_chat* chat) {
  if (chat != nullptr) chat->cancel = true;
}

void cria_chat_clear_cancel(cria_chat* chat) {
  if (chat != nullptr) chat->cancel = false;
}

uint32_t cria_chat_context_used(const cria_chat* chat) {
  return chat == nullptr ? 0 : chat->context_used.load();
}
