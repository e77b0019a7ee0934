#include "jni/listeners.h"

#include <string_view>

#include "jni/java_values.h"

namespace cria::jni {
namespace {

// Null if the object is null; null with an exception pending if it does not have the method.
jmethodID MethodOf(JNIEnv* env, jobject object, const char* name, const char* signature) {
  if (object == nullptr || env->ExceptionCheck()) return nullptr;
  const jclass type = env->GetObjectClass(object);
  const jmethodID method = env->GetMethodID(type, name, signature);
  env->DeleteLocalRef(type);
  return method;
}

// Deletes the array of the piece after the call, because an answer may have more pieces than a call
// may have local references.
void CallWithBytes(JNIEnv* env, jobject object, jmethodID method, std::string_view bytes) {
  const jbyteArray array = NewBytes(env, bytes);
  if (array == nullptr) return;
  env->CallVoidMethod(object, method, array);
  env->DeleteLocalRef(array);
}

}  // namespace

TextReceiver::TextReceiver(JNIEnv* env, jobject object, const Model& model, const Chat* chat)
    : env_(env),
      object_(object),
      model_(model),
      chat_(chat),
      on_text_(MethodOf(env, object, "onText", "([B)V")) {}

int TextReceiver::Take(const char* text, size_t text_bytes, void* data) {
  const auto& receiver = *static_cast<const TextReceiver*>(data);
  if (receiver.object_ != nullptr) {
    CallWithBytes(receiver.env_, receiver.object_, receiver.on_text_, {text, text_bytes});
    if (receiver.env_->ExceptionCheck()) return 1;
  }
  const Chat* const chat = receiver.chat_;
  return receiver.model_.is_closed || (chat != nullptr && chat->is_closed) ? 1 : 0;
}

LoadReceiver::LoadReceiver(JNIEnv* env, jobject object)
    : env_(env),
      object_(object),
      on_progress_(MethodOf(env, object, "onProgress", "(JJ)V")),
      on_notice_(MethodOf(env, object, "onNotice", "([B)V")) {}

int LoadReceiver::TakeProgress(uint64_t done_bytes, uint64_t total_bytes, void* data) {
  const auto& receiver = *static_cast<const LoadReceiver*>(data);
  JNIEnv* const env = receiver.env_;
  if (env->ExceptionCheck()) return 1;
  if (receiver.object_ == nullptr) return 0;
  env->CallVoidMethod(receiver.object_, receiver.on_progress_, static_cast<jlong>(done_bytes),
                      static_cast<jlong>(total_bytes));
  return env->ExceptionCheck() ? 1 : 0;
}

void LoadReceiver::TakeNotice(const char* sentence, void* data) {
  const auto& receiver = *static_cast<const LoadReceiver*>(data);
  JNIEnv* const env = receiver.env_;
  if (receiver.object_ == nullptr || env->ExceptionCheck()) return;
  CallWithBytes(env, receiver.object_, receiver.on_notice_, sentence);
}

}  // namespace cria::jni
