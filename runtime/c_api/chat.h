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
  cria::Conversation conversation;
  std::atomic<uint32_t> context_used = 0;
  std::atomic<bool> cancel = false;
  // After an exception in a call that generates, the state of the conversation is undefined.
  bool needs_reset = false;
};

namespace cria::c_api {

// The right to use a chat and its model. Fails if the chat is null or must be reset, or if another
// call has the right.
Result<ModelUse> BeginChatUse(const cria_chat* chat);

}  // namespace cria::c_api
