#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "c_api/generation.h"
#include "c_api/handles.h"
#include "llm/conversation.h"

// NOLINTNEXTLINE(readability-identifier-naming): the C API's name.
struct cria_chat {
  std::shared_ptr<cria::c_api::LoadedModel> model;
  cria::c_api::Generation generation;
  std::unique_ptr<cria::Session> session;
  cria::Conversation conversation;  // Uses the session.
  std::atomic<uint32_t> context_used = 0;
  std::atomic<bool> cancel = false;
  std::atomic<bool> is_in_use = false;
  // After an exception in a call that generates, the state of the conversation is undefined.
  bool needs_reset = false;
};

namespace cria::c_api {

// The right to use a chat, which one call at a time has.
class ChatUse {
 public:
  // Fails if the chat is null or must be reset.
  static Result<ChatUse> Begin(cria_chat* chat);
  static Result<ChatUse> BeginReset(cria_chat* chat);

  ChatUse(ChatUse&&) noexcept = default;
  ChatUse& operator=(ChatUse&&) noexcept = default;

 private:
  struct Ending {
    void operator()(cria_chat* chat) const { chat->is_in_use = false; }
  };

  explicit ChatUse(cria_chat* chat) : chat_(chat) {}

  std::unique_ptr<cria_chat, Ending> chat_;
};

}  // namespace cria::c_api
