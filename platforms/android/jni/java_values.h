#pragma once

#include <jni.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/cria.h"

// Conversions of texts, numbers and exceptions between Java and C. A function that fails leaves an
// exception pending; the native method must then return at once.
namespace cria::jni {

// Throws a CriaException.
void ThrowFailure(JNIEnv* env, cria_status status, std::string_view message);
// Throws one if `status` is a failure of the last call on this thread, and then returns false.
bool ThrowUnlessOk(JNIEnv* env, cria_status status);
void ThrowOutOfMemory(JNIEnv* env);

// Returns what `call` returns. C++ exceptions must not reach Java's frames.
template <typename Call>
auto Guarded(JNIEnv* env, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    ThrowOutOfMemory(env);
    return decltype(call())();
  }
}

// Texts are passed as UTF-8 bytes, because JNI's own "UTF-8" encodes U+0000 and characters above
// U+FFFF differently. Absent if Java passed null.
class Utf8 {
 public:
  void Read(JNIEnv* env, jbyteArray bytes);
  // Reads a text that is passed without its length. False: an exception is pending, because
  // a zero character would end the text early.
  bool ReadZeroTerminated(JNIEnv* env, jbyteArray bytes, std::string_view name);
  const char* c_str() const { return text_ ? text_->c_str() : nullptr; }
  // The C API refuses an absent text, by its name, because it does not end with a zero byte.
  size_t size() const { return text_ ? text_->size() : CRIA_ZERO_TERMINATED; }

 private:
  std::optional<std::string> text_;
};

// The texts of a byte[][], which must not be null. False: an exception is pending.
bool ReadTexts(JNIEnv* env, jobjectArray given, std::vector<Utf8>& texts);

// Null, with an exception pending, if there is not enough memory.
jbyteArray NewBytes(JNIEnv* env, std::string_view bytes);

// The type of a number in a Java object's field and in a struct of cria.h.
enum class FieldKind : uint8_t {
  kCount,   // int, uint32_t; negative values are refused.
  kBytes,   // long, uint64_t; negative values are refused.
  kBits,    // long, uint64_t of any value.
  kCode,    // int, int32_t.
  kFloat,   // float, float.
  kDouble,  // double, double.
  kFlag,    // boolean, int32_t.
  kChoice,  // An enum in the order of the C API's constants, int32_t. Only read.
};

struct Field {
  const char* name;
  FieldKind kind;
  size_t offset;                       // In the struct.
  const char* choice_class = nullptr;  // For kChoice: "Lorg/cria/...;".
};

// Both return false if an exception is pending.
bool ReadFields(JNIEnv* env, jobject object, std::span<const Field> fields, void* values);
bool WriteFields(JNIEnv* env, jobject object, std::span<const Field> fields, const void* values);

}  // namespace cria::jni
