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

// What a method without arguments returns; false if there is none.
bool IsTrue(JNIEnv* env, jobject object, jmethodID method) {
  return method != nullptr && env->CallBooleanMethod(object, method) == JNI_TRUE;
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
      on_text_(MethodOf(env, object, "onText", "([B)V")),
      on_token_(MethodOf(env, object, "onToken", "(IID[B)V")),
      on_prompt_(MethodOf(env, object, "onPrompt", "(II)V")),
      hears_tokens_(IsTrue(env, object, MethodOf(env, object, "hearsTokens", "()Z"))) {}

cria_callbacks TextReceiver::callbacks() {
  cria_callbacks callbacks = CRIA_CALLBACKS_INIT;
  callbacks.on_text = TakeText;
  if (hears_tokens_) callbacks.on_token = TakeToken;
  callbacks.on_prompt = TakePrompt;
  callbacks.data = this;
  return callbacks;
}

int TextReceiver::GoesOn() const {
  if (env_->ExceptionCheck()) return 1;
  return model_.is_closed || (chat_ != nullptr && chat_->is_closed) ? 1 : 0;
}

int TextReceiver::TakeText(const char* text, size_t text_bytes, void* data) {
  const auto& receiver = *static_cast<const TextReceiver*>(data);
  if (receiver.object_ != nullptr && !receiver.env_->ExceptionCheck()) {
    CallWithBytes(receiver.env_, receiver.object_, receiver.on_text_, {text, text_bytes});
  }
  return receiver.GoesOn();
}

int TextReceiver::TakeToken(const cria_token* token, void* data) {
  const auto& receiver = *static_cast<const TextReceiver*>(data);
  JNIEnv* const env = receiver.env_;
  if (env->ExceptionCheck()) return 1;
  const jbyteArray text = NewBytes(env, {token->text, token->text_bytes});
  if (text == nullptr) return 1;
  env->CallVoidMethod(receiver.object_, receiver.on_token_, static_cast<jint>(token->id),
                      static_cast<jint>(token->index), static_cast<jdouble>(token->log_probability),
                      text);
  env->DeleteLocalRef(text);
  return receiver.GoesOn();
}

int TextReceiver::TakePrompt(uint32_t done_tokens, uint32_t total_tokens, void* data) {
  const auto& receiver = *static_cast<const TextReceiver*>(data);
  if (receiver.object_ != nullptr && !receiver.env_->ExceptionCheck()) {
    receiver.env_->CallVoidMethod(receiver.object_, receiver.on_prompt_,
                                  static_cast<jint>(done_tokens), static_cast<jint>(total_tokens));
  }
  return receiver.GoesOn();
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
