#pragma once

#include <jni.h>

#include <cstdint>
#include <vector>

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
  Utf8 draft_model_path_;
  cria_model_options values_ = CRIA_MODEL_OPTIONS_INIT;
};

// cria_generation_options, and the arrays that it points to.
class GenerationOptions {
 public:
  bool Read(JNIEnv* env, jobject object);

  const cria_generation_options* values() const { return &values_; }

 private:
  bool ReadStopStrings(JNIEnv* env, jobject object, jclass type);
  bool ReadLogitBias(JNIEnv* env, jobject object, jclass type);
  bool ReadConstraint(JNIEnv* env, jobject object, jclass type);

  std::vector<Utf8> stop_texts_;
  std::vector<cria_text> stop_strings_;
  std::vector<cria_logit_bias> logit_bias_;
  Utf8 constraint_;
  cria_generation_options values_ = CRIA_GENERATION_OPTIONS_INIT;
};

// cria_messages from a byte[][] of roles and contents by turns.
class Messages {
 public:
  bool Read(JNIEnv* env, jobjectArray roles_and_contents);

  const cria_message* data() const { return messages_.data(); }
  size_t size() const { return messages_.size(); }

 private:
  std::vector<Utf8> texts_;
  std::vector<cria_message> messages_;
};

// Sets all fields except when_full and constraint_kind, which Java sets itself.
bool WriteGenerationOptions(JNIEnv* env, jobject object, const cria_generation_options& options);

bool WriteModelInfo(JNIEnv* env, jobject object, const cria_model_info& info);
bool WriteMemoryPlan(JNIEnv* env, jobject object, const cria_plan* plan);
bool WriteReply(JNIEnv* env, jobject object, const cria_result& result);

}  // namespace cria::jni
