#pragma once

#include <jni.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cria/cria.h"

// Texts, numbers and exceptions on their way between Java and C. What fails leaves an exception
// pending, with which a native method must return at once.
namespace cria::jni {

// Throws a CriaException.
void ThrowFailure(JNIEnv* env, cria_status status, std::string_view message);
// The same of a call that failed on this thread; false where it did.
bool ThrowUnlessOk(JNIEnv* env, cria_status status);
void ThrowOutOfMemory(JNIEnv* env);

// What `call` returns. No C++ exception may reach Java's frames.
template <typename Call>
auto Guarded(JNIEnv* env, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    ThrowOutOfMemory(env);
    return decltype(call())();
  }
}

// Texts cross as the bytes of their UTF-8, since what JNI calls UTF-8 writes characters beyond
// U+FFFF and U+0000 differently. As they came from Java, or absent where it passed null.
class Utf8 {
 public:
  // False: an exception is pending, also where a zero character would end the text early.
  bool Read(JNIEnv* env, jbyteArray bytes, std::string_view name);
  const char* c_str() const { return text_ ? text_->c_str() : nullptr; }

 private:
  std::optional<std::string> text_;
};

// Null with an exception pending where there is no memory.
jbyteArray NewBytes(JNIEnv* env, std::string_view bytes);

// How a number lies in the field of a Java object, and in a struct of cria.h.
enum class FieldKind : uint8_t {
  kCount,   // int, uint32_t; a negative one is refused.
  kBytes,   // long, uint64_t; likewise.
  kBits,    // long, uint64_t of any value.
  kCode,    // int, int32_t.
  kFloat,   // float, float.
  kDouble,  // double, double.
  kFlag,    // boolean, int32_t.
  kChoice,  // An enum in the order of the C API's constants, int32_t. Is read only.
};

struct Field {
  const char* name;
  FieldKind kind;
  size_t offset;                       // In the struct.
  const char* choice_class = nullptr;  // For kChoice: "Lorg/cria/...;".
};

// Both return false with an exception pending.
bool ReadFields(JNIEnv* env, jobject object, std::span<const Field> fields, void* values);
bool WriteFields(JNIEnv* env, jobject object, std::span<const Field> fields, const void* values);

}  // namespace cria::jni
