#pragma once

#include <jni.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

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
  // Held while messages are read or changed, except by an answer.
  std::mutex messages_mutex;
  bool is_answering = false;  // Guarded by messages_mutex.
};

// While an object exists, an answer may change the messages of a chat. If there was one already,
// the C API refuses the second answer.
class Answering {
 public:
  explicit Answering(Chat& chat) : chat_(chat) {
    const std::lock_guard lock(chat_.messages_mutex);
    is_first_ = !std::exchange(chat_.is_answering, true);
  }
  ~Answering() {
    const std::lock_guard lock(chat_.messages_mutex);
    if (is_first_) chat_.is_answering = false;
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

 private:
  Chat& chat_;
  bool is_first_;
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

// The handles of this process.
OpenHandles& Handles();

// Null, with an exception pending, if the model or the chat is not open.
std::shared_ptr<Model> FindModel(JNIEnv* env, jlong number);
std::shared_ptr<Chat> FindChat(JNIEnv* env, jlong number);

}  // namespace cria::jni
