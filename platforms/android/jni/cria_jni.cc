// The native methods of org.cria.CriaNative, implemented with the C API only. The C API refuses a
// null text or option, and its sentence becomes a CriaException; a number that is not open is
// refused here.

#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cria/cria.h"
#include "jni/java_structs.h"
#include "jni/java_values.h"
#include "jni/listeners.h"
#include "jni/open_handles.h"

namespace cria::jni {
namespace {

// The text that `write(text, capacity, bytes)` writes: first its length, then the text. Null with
// an exception pending if that fails.
template <typename Write>
jbyteArray NewText(JNIEnv* env, const Write& write) {
  size_t bytes = 0;
  if (!ThrowUnlessOk(env, write(nullptr, 0, &bytes))) return nullptr;
  std::string text(bytes + 1, '\0');
  if (!ThrowUnlessOk(env, write(text.data(), text.size(), &bytes))) return nullptr;
  text.resize(bytes);
  return NewBytes(env, text);
}

// Makes an array of logits, or of the numbers of an embedding, in the same way.
template <typename Write>
jfloatArray NewNumbers(JNIEnv* env, const Write& write) {
  size_t count = 0;
  if (!ThrowUnlessOk(env, write(nullptr, 0, &count))) return nullptr;
  std::vector<float> numbers(count);
  if (!ThrowUnlessOk(env, write(numbers.data(), count, &count))) return nullptr;
  const jfloatArray array = env->NewFloatArray(static_cast<jsize>(count));
  if (array != nullptr) {
    env->SetFloatArrayRegion(array, 0, static_cast<jsize>(count), numbers.data());
  }
  return array;
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
    GenerationOptions options;
    if (model == nullptr || !options.Read(env, given)) return;
    Utf8 text;
    text.Read(env, prompt);
    TextReceiver receiver(env, listener, *model, nullptr);
    if (!receiver.is_usable()) return;
    const cria_callbacks callbacks = receiver.callbacks();
    cria_result result = CRIA_RESULT_INIT;
    const cria_status status = cria_complete_text(model->handle, text.c_str(), text.size(),
                                                  options.values(), &callbacks, &result);
    if (ThrowUnlessOk(env, status)) WriteReply(env, reply, result);
  });
}

jlong CreateChat(JNIEnv* env, jclass, jlong number, jobjectArray roles_and_contents,
                 jobject given) {
  return Guarded(env, [&]() -> jlong {
    const auto chat = std::make_shared<Chat>();
    chat->model = FindModel(env, number);
    Messages messages;
    GenerationOptions options;
    if (chat->model == nullptr || !messages.Read(env, roles_and_contents) ||
        !options.Read(env, given) ||
        !ThrowUnlessOk(env, cria_chat_create_from_messages(chat->model->handle, messages.data(),
                                                           messages.size(), options.values(),
                                                           &chat->handle))) {
      return 0;
    }
    const jlong opened = Handles().Add(chat);
    if (opened == 0) ThrowFailure(env, CRIA_ERROR_USAGE, "the model is closed");
    return opened;
  });
}

jlong LoadChat(JNIEnv* env, jclass, jlong number, jbyteArray path, jobject given,
               jbooleanArray is_context_restored) {
  return Guarded(env, [&]() -> jlong {
    const auto chat = std::make_shared<Chat>();
    chat->model = FindModel(env, number);
    Utf8 path_text;
    GenerationOptions options;
    int is_restored = 0;
    if (chat->model == nullptr || !path_text.ReadZeroTerminated(env, path, "path") ||
        !options.Read(env, given) ||
        !ThrowUnlessOk(env, cria_chat_load(chat->model->handle, path_text.c_str(), options.values(),
                                           &chat->handle, &is_restored))) {
      return 0;
    }
    const auto flag = static_cast<jboolean>(is_restored != 0 ? JNI_TRUE : JNI_FALSE);
    env->SetBooleanArrayRegion(is_context_restored, 0, 1, &flag);
    const jlong opened = Handles().Add(chat);
    if (opened == 0) ThrowFailure(env, CRIA_ERROR_USAGE, "the model is closed");
    return opened;
  });
}

void SaveChat(JNIEnv* env, jclass, jlong number, jbyteArray path) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    Utf8 text;
    if (chat == nullptr || !text.ReadZeroTerminated(env, path, "path")) return;
    ThrowUnlessOk(env, cria_chat_save(chat->handle, text.c_str()));
  });
}

void CloseChat(JNIEnv* env, jclass, jlong chat) {
  Guarded(env, [&] { Handles().CloseChat(chat); });
}

void SetChatOptions(JNIEnv* env, jclass, jlong number, jobject given) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    GenerationOptions options;
    if (chat == nullptr || !options.Read(env, given)) return;
    ThrowUnlessOk(env, cria_chat_set_options(chat->handle, options.values()));
  });
}

// Calls `generate` with the chat, callbacks and a result, and fills a Reply.
template <typename Generate>
void FillReply(JNIEnv* env, jlong number, jobject listener, jobject reply,
               const Generate& generate) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    if (chat == nullptr) return;
    TextReceiver receiver(env, listener, *chat->model, chat.get());
    if (!receiver.is_usable()) return;
    const cria_callbacks callbacks = receiver.callbacks();
    cria_result result = CRIA_RESULT_INIT;
    const Answering answering(*chat);
    const cria_status status = generate(chat->handle, &callbacks, &result);
    if (ThrowUnlessOk(env, status)) WriteReply(env, reply, result);
  });
}

void SendMessage(JNIEnv* env, jclass, jlong number, jbyteArray role, jbyteArray content,
                 jobject listener, jobject reply) {
  FillReply(env, number, listener, reply,
            [&](cria_chat* chat, const cria_callbacks* callbacks, cria_result* result) {
              Utf8 role_text;
              Utf8 content_text;
              role_text.Read(env, role);
              content_text.Read(env, content);
              const cria_message message = {role_text.c_str(), content_text.c_str(),
                                            role_text.size(), content_text.size()};
              return cria_chat_answer(chat, &message, callbacks, result);
            });
}

void AnswerChat(JNIEnv* env, jclass, jlong number, jboolean again, jobject listener,
                jobject reply) {
  FillReply(env, number, listener, reply,
            [&](cria_chat* chat, const cria_callbacks* callbacks, cria_result* result) {
              return again == JNI_TRUE ? cria_chat_regenerate(chat, callbacks, result)
                                       : cria_chat_answer(chat, nullptr, callbacks, result);
            });
}

// The roles and contents of the messages by turns.
jobjectArray ReadMessages(JNIEnv* env, jclass, jlong number) {
  return Guarded(env, [&]() -> jobjectArray {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    if (chat == nullptr) return nullptr;
    const jclass type = env->FindClass("[B");
    if (type == nullptr) return nullptr;
    const std::lock_guard lock(chat->messages_mutex);
    if (chat->is_answering) {
      ThrowFailure(env, CRIA_ERROR_USAGE, "the chat is in use: its messages are known afterwards");
      return nullptr;
    }
    const auto count = static_cast<jsize>(cria_chat_num_messages(chat->handle));
    const jobjectArray texts = env->NewObjectArray(2 * count, type, nullptr);
    for (jsize i = 0; texts != nullptr && i < 2 * count; ++i) {
      cria_message message = {};
      const cria_status status =
          cria_chat_get_message(chat->handle, static_cast<size_t>(i / 2), &message);
      if (!ThrowUnlessOk(env, status)) return nullptr;
      const jbyteArray text =
          NewBytes(env, i % 2 == 0 ? std::string_view(message.role, message.role_bytes)
                                   : std::string_view(message.content, message.content_bytes));
      if (text == nullptr) return nullptr;
      env->SetObjectArrayElement(texts, i, text);
      env->DeleteLocalRef(text);
      if (env->ExceptionCheck()) return nullptr;
    }
    return texts;
  });
}

void DropLastTurn(JNIEnv* env, jclass, jlong number) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    if (chat == nullptr) return;
    const std::lock_guard lock(chat->messages_mutex);
    ThrowUnlessOk(env, cria_chat_drop_last_turn(chat->handle));
  });
}

void SetVariables(JNIEnv* env, jclass, jlong number, jbyteArray json) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    if (chat == nullptr) return;
    Utf8 text;
    text.Read(env, json);
    ThrowUnlessOk(env, cria_chat_set_variables(chat->handle, text.c_str(), text.size()));
  });
}

void CancelChat(JNIEnv*, jclass, jlong number) {
  const std::shared_ptr<Chat> chat = Handles().FindChat(number);
  if (chat != nullptr) cria_chat_cancel(chat->handle);
}

void ClearCancelOfChat(JNIEnv*, jclass, jlong number) {
  const std::shared_ptr<Chat> chat = Handles().FindChat(number);
  if (chat != nullptr) cria_chat_clear_cancel(chat->handle);
}

jbyteArray RenderMessages(JNIEnv* env, jclass, jlong number, jobjectArray roles_and_contents,
                          jbyteArray given_variables, jboolean add_generation_prompt) {
  return Guarded(env, [&]() -> jbyteArray {
    const std::shared_ptr<Model> model = FindModel(env, number);
    Messages messages;
    if (model == nullptr || !messages.Read(env, roles_and_contents)) return nullptr;
    Utf8 variables;
    variables.Read(env, given_variables);
    const auto render = [&](char* text, size_t capacity, size_t* bytes) {
      return cria_render_messages(model->handle, messages.data(), messages.size(),
                                  variables.c_str(), variables.size(), add_generation_prompt, text,
                                  capacity, bytes);
    };
    return NewText(env, render);
  });
}

// Makes an array of the numbers that the library computes of a text: `read` has the parameters of
// cria_embed.
template <typename Read>
jfloatArray ReadNumbers(JNIEnv* env, jlong number, jbyteArray given, jobject listener,
                        const Read& read) {
  return Guarded(env, [&]() -> jfloatArray {
    const std::shared_ptr<Model> model = FindModel(env, number);
    if (model == nullptr) return nullptr;
    Utf8 text;
    text.Read(env, given);
    TextReceiver receiver(env, listener, *model, nullptr);
    if (!receiver.is_usable()) return nullptr;
    const cria_callbacks callbacks = receiver.callbacks();
    return NewNumbers(env, [&](float* numbers, size_t capacity, size_t* count) {
      return read(model->handle, text.c_str(), text.size(), &callbacks, numbers, capacity, count);
    });
  });
}

jfloatArray ReadLogits(JNIEnv* env, jclass, jlong number, jbyteArray prompt, jboolean parse_special,
                       jobject listener) {
  return ReadNumbers(env, number, prompt, listener,
                     [&](cria_model* model, const char* text, size_t bytes,
                         const cria_callbacks* callbacks, auto... numbers) {
                       return cria_get_logits(model, text, bytes, parse_special, callbacks,
                                              numbers...);
                     });
}

jfloatArray Embed(JNIEnv* env, jclass, jlong number, jbyteArray text, jobject listener) {
  return ReadNumbers(env, number, text, listener, cria_embed);
}

jfloatArray ReadChatLogits(JNIEnv* env, jclass, jlong number, jobject listener) {
  return Guarded(env, [&]() -> jfloatArray {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    if (chat == nullptr) return nullptr;
    TextReceiver receiver(env, listener, *chat->model, chat.get());
    if (!receiver.is_usable()) return nullptr;
    const cria_callbacks callbacks = receiver.callbacks();
    const Answering answering(*chat);
    return NewNumbers(env, [&](float* logits, size_t capacity, size_t* count) {
      return cria_chat_get_logits(chat->handle, &callbacks, logits, capacity, count);
    });
  });
}

void ResetChat(JNIEnv* env, jclass, jlong number) {
  Guarded(env, [&] {
    const std::shared_ptr<Chat> chat = FindChat(env, number);
    if (chat == nullptr) return;
    const std::lock_guard lock(chat->messages_mutex);
    ThrowUnlessOk(env, cria_chat_reset(chat->handle));
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
    if (model == nullptr) return nullptr;
    Utf8 text;
    text.Read(env, given);
    size_t count = 0;
    const auto tokenize = [&](int32_t* tokens, size_t capacity) {
      return ThrowUnlessOk(env,
                           cria_tokenize_text(model->handle, text.c_str(), text.size(), add_special,
                                              parse_special, tokens, capacity, &count));
    };
    if (!tokenize(nullptr, 0)) return nullptr;
    // One more than needed: with a null pointer, the call would only count.
    std::vector<int32_t> tokens(count + 1);
    if (!tokenize(tokens.data(), count)) return nullptr;
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
    return NewText(env, [&](char* text, size_t capacity, size_t* bytes) {
      return cria_detokenize(model->handle, tokens.data(), tokens.size(), text, capacity, bytes);
    });
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
      Method("createChat", "(J[[BLorg/cria/GenerationOptions;)J",
             reinterpret_cast<void*>(CreateChat)),
      Method("loadChat", "(J[BLorg/cria/GenerationOptions;[Z)J", reinterpret_cast<void*>(LoadChat)),
      Method("saveChat", "(J[B)V", reinterpret_cast<void*>(SaveChat)),
      Method("closeChat", "(J)V", reinterpret_cast<void*>(CloseChat)),
      Method("setChatOptions", "(JLorg/cria/GenerationOptions;)V",
             reinterpret_cast<void*>(SetChatOptions)),
      Method("send", "(J[B[BLorg/cria/CriaNative$TextReceiver;Lorg/cria/Reply;)V",
             reinterpret_cast<void*>(SendMessage)),
      Method("answer", "(JZLorg/cria/CriaNative$TextReceiver;Lorg/cria/Reply;)V",
             reinterpret_cast<void*>(AnswerChat)),
      Method("readMessages", "(J)[[B", reinterpret_cast<void*>(ReadMessages)),
      Method("dropLastTurn", "(J)V", reinterpret_cast<void*>(DropLastTurn)),
      Method("setVariables", "(J[B)V", reinterpret_cast<void*>(SetVariables)),
      Method("cancelChat", "(J)V", reinterpret_cast<void*>(CancelChat)),
      Method("clearCancelOfChat", "(J)V", reinterpret_cast<void*>(ClearCancelOfChat)),
      Method("renderMessages", "(J[[B[BZ)[B", reinterpret_cast<void*>(RenderMessages)),
      Method("readLogits", "(J[BZLorg/cria/CriaNative$TextReceiver;)[F",
             reinterpret_cast<void*>(ReadLogits)),
      Method("embed", "(J[BLorg/cria/CriaNative$TextReceiver;)[F", reinterpret_cast<void*>(Embed)),
      Method("readChatLogits", "(JLorg/cria/CriaNative$TextReceiver;)[F",
             reinterpret_cast<void*>(ReadChatLogits)),
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
