#pragma once

#include <jni.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cria/cria.h"

namespace cria::jni {

struct Model {
  ~Model() { cria_model_free(handle); }

  cria_model* handle = nullptr;
  std::atomic<bool> is_closed = false;
};

struct Chat {
  ~Chat() { cria_chat_free(handle); }

  std::shared_ptr<Model> model;
  cria_chat* handle = nullptr;
  std::atomic<bool> is_closed = false;
};

// The models and chats that Java has open, by the numbers that it knows them by. A number is never
// given twice, so that what was closed is not found rather than mistaken for something else. Who
// has found something keeps it alive: what is closed meanwhile is freed when the call ends that
// uses it. Any thread.
class OpenHandles {
 public:
  jlong Add(std::shared_ptr<Model> model);
  // 0 where the chat's model was closed meanwhile.
  jlong Add(std::shared_ptr<Chat> chat);

  // Null where it is not open.
  std::shared_ptr<Model> FindModel(jlong number) const;
  std::shared_ptr<Chat> FindChat(jlong number) const;

  // These end the answer that is under way, and do nothing where nothing is open. A model's chats
  // close with it.
  void CloseModel(jlong number);
  void CloseChat(jlong number);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<jlong, std::shared_ptr<Model>> models_;
  std::unordered_map<jlong, std::shared_ptr<Chat>> chats_;
  jlong last_number_ = 0;
};

}  // namespace cria::jni
