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

// The open models and chats, by the numbers that Java has for them. No number is used twice, so
// that a closed one is never mistaken for another. What a caller has found stays alive: if it is
// closed meanwhile, it is freed after the call that uses it. Any thread may call.
class OpenHandles {
 public:
  jlong Add(std::shared_ptr<Model> model);
  // 0 if the chat's model was closed meanwhile.
  jlong Add(std::shared_ptr<Chat> chat);

  // Null if it is not open.
  std::shared_ptr<Model> FindModel(jlong number) const;
  std::shared_ptr<Chat> FindChat(jlong number) const;

  // These stop a running answer, and do nothing if the number is not open. A model's chats are
  // closed with it.
  void CloseModel(jlong number);
  void CloseChat(jlong number);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<jlong, std::shared_ptr<Model>> models_;
  std::unordered_map<jlong, std::shared_ptr<Chat>> chats_;
  jlong last_number_ = 0;
};

}  // namespace cria::jni
