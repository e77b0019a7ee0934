// The native methods of org.cria.CriaNative, implemented with the C API only. The C API refuses a
// null text or option, and its sentence becomes a CriaException; a number that is not open is
// refused here.

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cria/cria.h"
#include "jni/java_structs.h"
#include "jni/java_values.h"
#include "jni/listeners.h"
#include "jni/open_handles.h"

namespace cria::jni {
namespace {

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

jlong LoadModel(JNIEnv* env, jclass, jbyteArray path, jint descriptor, jlong offset_bytes,
                jlong length_bytes, jbyteArray pack_folder, jobject given, jobject listener) {
  return Guarded(env, [&]() -> jlong {
    ModelOptions options;
    LoadReceiver receiver(env, listener);
    if (!receiver.is_usable() ||
        !options.Read(env, path, descriptor, offset_bytes, length_bytes, pack_folder, given)) {
      return 0;
    }
    options.values().on_progress = LoadReceiver::TakeProgress;
    options.values().on_notice = LoadReceiver::TakeNotice;
    options.values().callback_data = &receiver;
    const auto model = std::make_shared<Model>();
    if (!ThrowUnlessOk(env, cria_model_load(&options.values(), &model->handle))) return 0;
    return Handles().Add(model);
  });
}

void CloseModel(JNIEnv* env, jclass, jlong model) {
  Guarded(env, [&] { Handles().CloseModel(model); });
}

void CancelModel(JNIEnv*, jclass, jlong number) {
  // If the model is closed, no answer is running.
  const std::shared_ptr<Model> model = Handles().FindModel(number);
  if (model != nullptr) cria_model_cancel(model->handle);
}

void ReadModelInfo(JNIEnv* env, jclass, jlong number, jobject info) {
  Guarded(env, [&] {
    const std::shared_ptr<Model> model = FindModel(env, number);
    if (model == nullptr) return;
    cria_model_info values = CRIA_MODEL_INFO_INIT;
    if (ThrowUnlessOk(env, cria_model_get_info(model->handle, &values))) {
      WriteModelInfo(env, info, values);
    }
  });
}

// Fills a MemoryPlan and its ModelInfo. Returns the error of cria_plan_check, or null.
jbyteArray MakePlan(JNIEnv* env, jclass, jbyteArray path, jint descriptor, jlong offset_bytes,
                    jlong length_bytes, jbyteArray pack_folder, jobject given, jobject object,
                    jobject info) {
  return Guarded(env, [&]() -> jbyteArray {
    ModelOptions options;
    if (!options.Read(env, path, descriptor, offset_bytes, length_bytes, pack_folder, given)) {
      return nullptr;
    }
    cria_plan* handle = nullptr;
    const cria_status status = cria_plan_create(&options.values(), &handle);
    const std::unique_ptr<cria_plan, void (*)(cria_plan*)> plan(handle, cria_plan_free);
    if (!ThrowUnlessOk(env, status)) return nullptr;
    cria_model_info values = CRIA_MODEL_INFO_INIT;
    if (!ThrowUnlessOk(env, cria_plan_get_info(handle, &values)) ||
        !WriteModelInfo(env, info, values) || !WriteMemoryPlan(env, object, handle)) {
      return nullptr;
    }
    const cria_status check = cria_plan_check(handle);
    if (check == CRIA_ERROR_OUT_OF_MEMORY) return NewBytes(env, cria_error_message());
    ThrowUnlessOk(env, check);
    return nullptr;
  });
}

void ReadDefaults(JNIEnv* env, jclass, jobject options) {
  Guarded(env, [&] { WriteGenerationOptions(env, options, CRIA_GENERATION_OPTIONS_INIT); });
}

void Complete(JNIEnv* env, jclass, jlong number, jbyteArray prompt, jobject given, jobject listener,
              jobject reply) {
  Guarded(env, [&] {
    const std::shared_ptr<Model> model = FindModel(env, number);
    Utf8 text;
    cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
    if (model == nullptr || !text.Read(env, prompt, "prompt") ||
        !ReadGenerationOptions(env, given, options)) {
      return;
    }
    TextReceiver receiver(env, listener, *model, nullptr);
    if (!receiver.is_usable()) return;
    cria_result result = CRIA_RESULT_INIT;
    const cria_status status = cria_complete(model->handle, text.c_str(), &options,
                                             TextReceiver::Take, &receiver, &result);
    if (ThrowUnlessOk(env, status)) WriteReply(env, reply, result);
  });
}

jlong CreateChat(JNIEnv* env, jclass, jlong number, jbyteArray system_prompt, jobject given) {
  return Guarded(env, [&]() -> jlong {
    const auto chat = std::make_shared<Chat>();
    chat->model = FindModel(env, number);
    Utf8 text;
    cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
    if (chat->model == nullptr || !text.Read(env, system_prompt, "systemPrompt") ||
        !ReadGenerationOptions(env, given, options) ||
        !ThrowUnlessOk(
            env, cria_chat_create(chat->model->handle, text.c_str(), &options, &chat->handle))) {
      return 0;
    }
    const jlong opened = Handles().Add(chat);
    if (opened == 0) ThrowFailure(env, CRIA_ERROR_USAGE, "the model is closed");
    return opened;
  });
}

void CloseChat(JNIEnv* env, jclass, jlong chat) {
  Guarded(env, [&] { Handles().CloseChat(chat); });
}

void SetChatOptions(JNIEnv* env, jclass, jlong number, jobject given) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
    if (chat == nullptr || !ReadGenerationOptions(env, given, options)) return;
    ThrowUnlessOk(env, cria_chat_set_options(chat->handle, &options));
  });
}

void SendMessage(JNIEnv* env, jclass, jlong number, jbyteArray message, jobject listener,
                 jobject reply) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    Utf8 text;
    if (chat == nullptr || !text.Read(env, message, "message")) return;
    TextReceiver receiver(env, listener, *chat->model, chat.get());
    if (!receiver.is_usable()) return;
    cria_result result = CRIA_RESULT_INIT;
    const cria_status status =
        cria_chat_send(chat->handle, text.c_str(), TextReceiver::Take, &receiver, &result);
    if (ThrowUnlessOk(env, status)) WriteReply(env, reply, result);
  });
}

void ResetChat(JNIEnv* env, jclass, jlong number) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    if (chat != nullptr) ThrowUnlessOk(env, cria_chat_reset(chat->handle));
  });
}

jint ContextUsed(JNIEnv* env, jclass, jlong number) {
  return Guarded(env, [&]() -> jint {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    return chat == nullptr ? 0 : static_cast<jint>(cria_chat_context_used(chat->handle));
  });
}

jintArray Tokenize(JNIEnv* env, jclass, jlong number, jbyteArray given, jboolean add_special,
                   jboolean parse_special) {
  return Guarded(env, [&]() -> jintArray {
    const std::shared_ptr<Model> model = FindModel(env, number);
    Utf8 text;
    size_t count = 0;
    if (model == nullptr || !text.Read(env, given, "text") ||
        !ThrowUnlessOk(env, cria_tokenize(model->handle, text.c_str(), add_special, parse_special,
                                          nullptr, 0, &count))) {
      return nullptr;
    }
    // One more than needed: with a null pointer, the call would only count.
    std::vector<int32_t> tokens(count + 1);
    if (!ThrowUnlessOk(env, cria_tokenize(model->handle, text.c_str(), add_special, parse_special,
                                          tokens.data(), count, &count))) {
      return nullptr;
    }
    const jintArray array = env->NewIntArray(static_cast<jsize>(count));
    if (array == nullptr) return nullptr;
    env->SetIntArrayRegion(array, 0, static_cast<jsize>(count), tokens.data());
    return array;
  });
}

jbyteArray Detokenize(JNIEnv* env, jclass, jlong number, jintArray given) {
  return Guarded(env, [&]() -> jbyteArray {
    const std::shared_ptr<Model> model = FindModel(env, number);
    if (model == nullptr) return nullptr;
    if (given == nullptr) {
      ThrowFailure(env, CRIA_ERROR_USAGE, "tokens is null");
      return nullptr;
    }
    std::vector<int32_t> tokens(static_cast<size_t>(env->GetArrayLength(given)));
    env->GetIntArrayRegion(given, 0, static_cast<jsize>(tokens.size()), tokens.data());
    size_t bytes = 0;
    if (!ThrowUnlessOk(env, cria_detokenize(model->handle, tokens.data(), tokens.size(), nullptr, 0,
                                            &bytes))) {
      return nullptr;
    }
    std::string text(bytes + 1, '\0');
    if (!ThrowUnlessOk(env, cria_detokenize(model->handle, tokens.data(), tokens.size(),
                                            text.data(), text.size(), &bytes))) {
      return nullptr;
    }
    text.resize(bytes);
    return NewBytes(env, text);
  });
}

jbyteArray Version(JNIEnv* env, jclass) {
  return Guarded(env, [&] { return NewBytes(env, cria_version()); });
}

// Fills JNI's own struct, whose fields are not const.
JNINativeMethod Method(const char* name, const char* signature, void* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), function};
}

// Registering the methods, instead of exporting names that Java looks up, checks the signatures
// when the library is loaded.
bool RegisterMethods(JNIEnv* env) {
  const JNINativeMethod methods[] = {
      Method("loadModel", "([BIJJ[BLorg/cria/ModelOptions;Lorg/cria/CriaNative$LoadReceiver;)J",
             reinterpret_cast<void*>(LoadModel)),
      Method("closeModel", "(J)V", reinterpret_cast<void*>(CloseModel)),
      Method("cancel", "(J)V", reinterpret_cast<void*>(CancelModel)),
      Method("readModelInfo", "(JLorg/cria/ModelInfo;)V", reinterpret_cast<void*>(ReadModelInfo)),
      Method("makePlan",
             "([BIJJ[BLorg/cria/ModelOptions;Lorg/cria/MemoryPlan;Lorg/cria/ModelInfo;)[B",
             reinterpret_cast<void*>(MakePlan)),
      Method("readDefaults", "(Lorg/cria/GenerationOptions;)V",
             reinterpret_cast<void*>(ReadDefaults)),
      Method("complete",
             "(J[BLorg/cria/GenerationOptions;Lorg/cria/CriaNative$TextReceiver;Lorg/cria/Reply;)V",
             reinterpret_cast<void*>(Complete)),
      Method("createChat", "(J[BLorg/cria/GenerationOptions;)J",
             reinterpret_cast<void*>(CreateChat)),
      Method("closeChat", "(J)V", reinterpret_cast<void*>(CloseChat)),
      Method("setChatOptions", "(JLorg/cria/GenerationOptions;)V",
             reinterpret_cast<void*>(SetChatOptions)),
      Method("send", "(J[BLorg/cria/CriaNative$TextReceiver;Lorg/cria/Reply;)V",
             reinterpret_cast<void*>(SendMessage)),
      Method("resetChat", "(J)V", reinterpret_cast<void*>(ResetChat)),
      Method("contextUsed", "(J)I", reinterpret_cast<void*>(ContextUsed)),
      Method("tokenize", "(J[BZZ)[I", reinterpret_cast<void*>(Tokenize)),
      Method("detokenize", "(J[I)[B", reinterpret_cast<void*>(Detokenize)),
      Method("versionUtf8", "()[B", reinterpret_cast<void*>(Version)),
  };
  const jclass type = env->FindClass("org/cria/CriaNative");
  return type != nullptr &&
         env->RegisterNatives(type, methods, static_cast<jint>(std::size(methods))) == JNI_OK;
}

}  // namespace
}  // namespace cria::jni

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* machine, void*) {
  void* env = nullptr;
  if (machine->GetEnv(&env, JNI_VERSION_1_6) != JNI_OK ||
      !cria::jni::RegisterMethods(static_cast<JNIEnv*>(env))) {
    return JNI_ERR;
  }
  return JNI_VERSION_1_6;
}
