#pragma once

#include <jni.h>

#include <cstdint>

#include "cria/cria.h"
#include "jni/java_values.h"

// Conversions between the structs of cria.h and the Java classes of org.cria. If a function returns
// false, an exception is pending.
namespace cria::jni {

// cria_model_options, and the strings that it points to.
class ModelOptions {
 public:
  bool Read(JNIEnv* env, jbyteArray path, jint descriptor, jlong offset_bytes, jlong length_bytes,
            jbyteArray pack_folder, jobject options);

  cria_model_options& values() { return values_; }

 private:
  Utf8 path_;
  Utf8 pack_folder_;
  cria_model_options values_ = CRIA_MODEL_OPTIONS_INIT;
};

bool ReadGenerationOptions(JNIEnv* env, jobject object, cria_generation_options& options);
// Sets all fields except when_full, which Java sets itself.
bool WriteGenerationOptions(JNIEnv* env, jobject object, const cria_generation_options& options);

bool WriteModelInfo(JNIEnv* env, jobject object, const cria_model_info& info);
bool WriteMemoryPlan(JNIEnv* env, jobject object, const cria_plan* plan);
bool WriteReply(JNIEnv* env, jobject object, const cria_result& result);

}  // namespace cria::jni
