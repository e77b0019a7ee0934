#include "jni/open_handles.h"

#include <utility>
#include <vector>

#include "cria/cria.h"
#include "jni/java_values.h"

namespace cria::jni {
namespace {

template <typename T>
std::shared_ptr<T> Find(const std::unordered_map<jlong, std::shared_ptr<T>>& open, jlong number) {
  const auto found = open.find(number);
  return found == open.end() ? nullptr : found->second;
}

template <typename T>
std::shared_ptr<T> Take(std::unordered_map<jlong, std::shared_ptr<T>>& open, jlong number) {
  auto node = open.extract(number);
  return node.empty() ? nullptr : std::move(node.mapped());
}

}  // namespace

jlong OpenHandles::Add(std::shared_ptr<Model> model) {
  const std::lock_guard lock(mutex_);
  models_.emplace(++last_number_, std::move(model));
  return last_number_;
}

jlong OpenHandles::Add(std::shared_ptr<Chat> chat) {
  const std::lock_guard lock(mutex_);
  if (chat->model->is_closed) return 0;
  chats_.emplace(++last_number_, std::move(chat));
  return last_number_;
}

std::shared_ptr<Model> OpenHandles::FindModel(jlong number) const {
  const std::lock_guard lock(mutex_);
  return Find(models_, number);
}

std::shared_ptr<Chat> OpenHandles::FindChat(jlong number) const {
  const std::lock_guard lock(mutex_);
  return Find(chats_, number);
}

void OpenHandles::CloseModel(jlong number) {
  // Freed after the lock is released, because it takes time.
  std::shared_ptr<Model> model;
  std::vector<std::shared_ptr<Chat>> chats;
  const std::lock_guard lock(mutex_);
  model = Take(models_, number);
  if (model == nullptr) return;
  model->is_closed = true;
  cria_model_cancel(model->handle);
  std::erase_if(chats_, [&](const auto& entry) {
    if (entry.second->model != model) return false;
    chats.push_back(entry.second);
    return true;
  });
}

void OpenHandles::CloseChat(jlong number) {
  std::shared_ptr<Chat> chat;
  const std::lock_guard lock(mutex_);
  chat = Take(chats_, number);
  if (chat == nullptr) return;
  chat->is_closed = true;
  // The chat's model may be generating for another chat, which must not stop.
  cria_chat_cancel(chat->handle);
}

// Never destroyed, because threads may still be generating when the process ends.
OpenHandles& Handles() {
  static OpenHandles& handles = *new OpenHandles;
  return handles;
}

std::shared_ptr<Model> FindModel(JNIEnv* env, jlong number) {
  std::shared_ptr<Model> model = Handles().FindModel(number);
  if (model == nullptr) ThrowFailure(env, CRIA_ERROR_USAGE, "the model is closed");
  return model;
}

std::shared_ptr<Chat> FindChat(JNIEnv* env, jlong number) {
  std::shared_ptr<Chat> chat = Handles().FindChat(number);
  if (chat == nullptr) ThrowFailure(env, CRIA_ERROR_USAGE, "the chat, or its model, is closed");
  return chat;
}

}  // namespace cria::jni
