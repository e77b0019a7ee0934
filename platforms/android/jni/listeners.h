#pragma once

#include <jni.h>

#include <cstddef>
#include <cstdint>

#include "cria/cria.h"
#include "jni/open_handles.h"

// Callbacks of the C API, passed on to Java objects. The C API calls back only on the calling
// thread, so the call's own JNIEnv is valid, and no thread is ever attached to the Java machine or
// detached from it. An exception of a Java object stops the call and stays pending; later callbacks
// are not passed on.
namespace cria::jni {

// The callbacks of a call that reads a prompt or generates. If `is_usable` is false, an exception
// is pending.
class TextReceiver {
 public:
  // `object`, a CriaNative.TextReceiver, may be null. `chat` is null for a completion.
  TextReceiver(JNIEnv* env, jobject object, const Model& model, const Chat* chat);

  bool is_usable() const { return !env_->ExceptionCheck(); }
  // They also stop a call whose model or chat was closed after it began.
  cria_callbacks callbacks();

 private:
  static int TakeText(const char* text, size_t text_bytes, void* data);
  static int TakeToken(const cria_token* token, void* data);
  static int TakePrompt(uint32_t done_tokens, uint32_t total_tokens, void* data);
  // What a callback returns.
  int GoesOn() const;

  JNIEnv* const env_;
  const jobject object_;
  const Model& model_;
  const Chat* const chat_;
  const jmethodID on_text_;
  const jmethodID on_token_;
  const jmethodID on_prompt_;
  const bool hears_tokens_;
};

// The `callback_data` of cria_model_load. If `is_usable` is false, an exception is pending.
class LoadReceiver {
 public:
  // `object`, a CriaNative.LoadReceiver, may be null.
  LoadReceiver(JNIEnv* env, jobject object);

  bool is_usable() const {
    return object_ == nullptr || (on_progress_ != nullptr && on_notice_ != nullptr);
  }
  // A cria_progress_callback and a cria_notice_callback.
  static int TakeProgress(uint64_t done_bytes, uint64_t total_bytes, void* data);
  static void TakeNotice(const char* sentence, void* data);

 private:
  JNIEnv* const env_;
  const jobject object_;
  const jmethodID on_progress_;
  const jmethodID on_notice_;
};

}  // namespace cria::jni
