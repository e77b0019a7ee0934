#include "jni/java_values.h"

#include <cstring>

namespace cria::jni {
namespace {

const char* Signature(const Field& field) {
  switch (field.kind) {
    case FieldKind::kCount:
    case FieldKind::kCode:
      return "I";
    case FieldKind::kBytes:
    case FieldKind::kBits:
      return "J";
    case FieldKind::kFloat:
      return "F";
    case FieldKind::kDouble:
      return "D";
    case FieldKind::kFlag:
      return "Z";
    case FieldKind::kChoice:
      break;
  }
  return field.choice_class;
}

jfieldID IdOf(JNIEnv* env, jclass type, const Field& field) {
  return env->GetFieldID(type, field.name, Signature(field));
}

template <typename T>
void Store(T value, void* place) {
  std::memcpy(place, &value, sizeof value);
}

template <typename T>
T Load(const void* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

bool StoreNotNegative(JNIEnv* env, const Field& field, int64_t value, void* place) {
  if (value < 0) {
    ThrowFailure(env, CRIA_ERROR_USAGE,
                 std::string(field.name) + " is " + std::to_string(value) + ", less than 0");
    return false;
  }
  if (field.kind == FieldKind::kCount) {
    Store(static_cast<uint32_t>(value), place);
  } else {
    Store(static_cast<uint64_t>(value), place);
  }
  return true;
}

bool ReadChoice(JNIEnv* env, jobject object, jfieldID id, const Field& field, void* place) {
  const jobject choice = env->GetObjectField(object, id);
  if (choice == nullptr) {
    ThrowFailure(env, CRIA_ERROR_USAGE, std::string(field.name) + " is null");
    return false;
  }
  const jclass type = env->GetObjectClass(choice);
  const jmethodID ordinal = env->GetMethodID(type, "ordinal", "()I");
  env->DeleteLocalRef(type);
  if (ordinal == nullptr) return false;
  Store(env->CallIntMethod(choice, ordinal), place);
  env->DeleteLocalRef(choice);
  return !env->ExceptionCheck();
}

bool ReadField(JNIEnv* env, jobject object, jfieldID id, const Field& field, void* place) {
  switch (field.kind) {
    case FieldKind::kCount:
      return StoreNotNegative(env, field, env->GetIntField(object, id), place);
    case FieldKind::kBytes:
      return StoreNotNegative(env, field, env->GetLongField(object, id), place);
    case FieldKind::kBits:
      Store(static_cast<uint64_t>(env->GetLongField(object, id)), place);
      return true;
    case FieldKind::kCode:
      Store(static_cast<int32_t>(env->GetIntField(object, id)), place);
      return true;
    case FieldKind::kFloat:
      Store(env->GetFloatField(object, id), place);
      return true;
    case FieldKind::kDouble:
      Store(env->GetDoubleField(object, id), place);
      return true;
    case FieldKind::kFlag:
      Store(static_cast<int32_t>(env->GetBooleanField(object, id)), place);
      return true;
    case FieldKind::kChoice:
      break;
  }
  return ReadChoice(env, object, id, field, place);
}

void WriteField(JNIEnv* env, jobject object, jfieldID id, const Field& field, const void* place) {
  switch (field.kind) {
    case FieldKind::kCount:
    case FieldKind::kCode:
      return env->SetIntField(object, id, static_cast<jint>(Load<uint32_t>(place)));
    case FieldKind::kBytes:
    case FieldKind::kBits:
      return env->SetLongField(object, id, static_cast<jlong>(Load<uint64_t>(place)));
    case FieldKind::kFloat:
      return env->SetFloatField(object, id, Load<float>(place));
    case FieldKind::kDouble:
      return env->SetDoubleField(object, id, Load<double>(place));
    case FieldKind::kFlag:
      return env->SetBooleanField(object, id, Load<int32_t>(place) != 0 ? JNI_TRUE : JNI_FALSE);
    case FieldKind::kChoice:
      break;
  }
}

// The object's class, for looking up fields; throws if the object is null.
jclass TypeOf(JNIEnv* env, jobject object) {
  if (object != nullptr) return env->GetObjectClass(object);
  ThrowFailure(env, CRIA_ERROR_USAGE, "an object for options or results is null");
  return nullptr;
}

}  // namespace

void ThrowFailure(JNIEnv* env, cria_status status, std::string_view message) {
  if (env->ExceptionCheck()) return;
  const jclass type = env->FindClass("org/cria/CriaException");
  if (type == nullptr) return;
  const jmethodID constructor = env->GetMethodID(type, "<init>", "(I[B)V");
  const jbyteArray bytes = constructor == nullptr ? nullptr : NewBytes(env, message);
  if (bytes == nullptr) return;
  const jobject failure = env->NewObject(type, constructor, static_cast<jint>(status), bytes);
  if (failure != nullptr && !env->ExceptionCheck()) env->Throw(static_cast<jthrowable>(failure));
}

bool ThrowUnlessOk(JNIEnv* env, cria_status status) {
  if (env->ExceptionCheck()) return false;
  if (status == CRIA_OK) return true;
  ThrowFailure(env, status, cria_error_message());
  return false;
}

void ThrowOutOfMemory(JNIEnv* env) {
  if (env->ExceptionCheck()) return;
  const jclass type = env->FindClass("java/lang/OutOfMemoryError");
  if (type != nullptr) env->ThrowNew(type, "there is not enough memory in the native heap");
}

void Utf8::Read(JNIEnv* env, jbyteArray bytes) {
  text_.reset();
  if (bytes == nullptr) return;
  text_.emplace(static_cast<size_t>(env->GetArrayLength(bytes)), '\0');
  env->GetByteArrayRegion(bytes, 0, static_cast<jsize>(text_->size()),
                          reinterpret_cast<jbyte*>(text_->data()));
}

bool Utf8::ReadZeroTerminated(JNIEnv* env, jbyteArray bytes, std::string_view name) {
  Read(env, bytes);
  if (!text_ || text_->find('\0') == std::string::npos) return true;
  ThrowFailure(env, CRIA_ERROR_USAGE,
               std::string(name) + " has the character U+0000, which ends texts");
  return false;
}

bool ReadTexts(JNIEnv* env, jobjectArray given, std::vector<Utf8>& texts) {
  texts.resize(static_cast<size_t>(env->GetArrayLength(given)));
  for (size_t i = 0; i < texts.size(); ++i) {
    const jobject text = env->GetObjectArrayElement(given, static_cast<jsize>(i));
    if (env->ExceptionCheck()) return false;
    texts[i].Read(env, static_cast<jbyteArray>(text));
    env->DeleteLocalRef(text);
  }
  return true;
}

jbyteArray NewBytes(JNIEnv* env, std::string_view bytes) {
  const auto count = static_cast<jsize>(bytes.size());
  const jbyteArray array = env->NewByteArray(count);
  if (array == nullptr) return nullptr;
  env->SetByteArrayRegion(array, 0, count, reinterpret_cast<const jbyte*>(bytes.data()));
  return array;
}

bool ReadFields(JNIEnv* env, jobject object, std::span<const Field> fields, void* values) {
  const jclass type = TypeOf(env, object);
  if (type == nullptr) return false;
  for (const Field& field : fields) {
    const jfieldID id = IdOf(env, type, field);
    void* const place = static_cast<std::byte*>(values) + field.offset;
    if (id == nullptr || !ReadField(env, object, id, field, place)) return false;
  }
  env->DeleteLocalRef(type);
  return true;
}

bool WriteFields(JNIEnv* env, jobject object, std::span<const Field> fields, const void* values) {
  const jclass type = TypeOf(env, object);
  if (type == nullptr) return false;
  for (const Field& field : fields) {
    const jfieldID id = IdOf(env, type, field);
    if (id == nullptr) return false;
    WriteField(env, object, id, field, static_cast<const std::byte*>(values) + field.offset);
  }
  env->DeleteLocalRef(type);
  return true;
}

}  // namespace cria::jni
