#include "jni/java_structs.h"

#include <algorithm>
#include <cstddef>

namespace cria::jni {
namespace {

constexpr Field kModelOptionFields[] = {
    {"memoryLimitBytes", FieldKind::kBytes, offsetof(cria_model_options, memory_limit_bytes)},
    {"numThreads", FieldKind::kCount, offsetof(cria_model_options, num_threads)},
    {"numBatchThreads", FieldKind::kCount, offsetof(cria_model_options, num_batch_threads)},
    {"contextTokens", FieldKind::kCount, offsetof(cria_model_options, context_tokens)},
    {"chunkTokens", FieldKind::kCount, offsetof(cria_model_options, chunk_tokens)},
    {"numSequences", FieldKind::kCount, offsetof(cria_model_options, num_sequences)},
    {"draftNgramTokens", FieldKind::kCount, offsetof(cria_model_options, draft_ngram_tokens)},
    {"maxDraftTokens", FieldKind::kCount, offsetof(cria_model_options, max_draft_tokens)},
    {"minDraftTokens", FieldKind::kCount, offsetof(cria_model_options, min_draft_tokens)},
    {"minDraftProbability", FieldKind::kFloat, offsetof(cria_model_options, min_draft_probability)},
    {"maxConstraints", FieldKind::kBytes, offsetof(cria_model_options, max_constraints)},
    {"maxTemperatureCelsius", FieldKind::kDouble,
     offsetof(cria_model_options, max_temperature_celsius)},
    {"draftMtp", FieldKind::kFlag, offsetof(cria_model_options, draft_mtp)},
    {"kvType", FieldKind::kChoice, offsetof(cria_model_options, kv_type),
     "Lorg/cria/ModelOptions$KvType;"},
    {"packing", FieldKind::kChoice, offsetof(cria_model_options, packing),
     "Lorg/cria/ModelOptions$Packing;"},
    {"ignoreMemoryLimits", FieldKind::kFlag, offsetof(cria_model_options, ignore_memory_limits)},
};

constexpr Field kGenerationOptionFields[] = {
    {"seed", FieldKind::kBits, offsetof(cria_generation_options, seed)},
    {"maxTokens", FieldKind::kCount, offsetof(cria_generation_options, max_tokens)},
    {"temperature", FieldKind::kFloat, offsetof(cria_generation_options, temperature)},
    {"topK", FieldKind::kCount, offsetof(cria_generation_options, top_k)},
    {"topP", FieldKind::kFloat, offsetof(cria_generation_options, top_p)},
    {"minP", FieldKind::kFloat, offsetof(cria_generation_options, min_p)},
    {"repeatPenalty", FieldKind::kFloat, offsetof(cria_generation_options, repeat_penalty)},
    {"repeatLastN", FieldKind::kCount, offsetof(cria_generation_options, repeat_last_n)},
    {"presencePenalty", FieldKind::kFloat, offsetof(cria_generation_options, presence_penalty)},
    {"frequencyPenalty", FieldKind::kFloat, offsetof(cria_generation_options, frequency_penalty)},
    {"typicalP", FieldKind::kFloat, offsetof(cria_generation_options, typical_p)},
    {"xtcProbability", FieldKind::kFloat, offsetof(cria_generation_options, xtc_probability)},
    {"xtcThreshold", FieldKind::kFloat, offsetof(cria_generation_options, xtc_threshold)},
    {"dryMultiplier", FieldKind::kFloat, offsetof(cria_generation_options, dry_multiplier)},
    {"dryBase", FieldKind::kFloat, offsetof(cria_generation_options, dry_base)},
    {"dryAllowedLength", FieldKind::kCount, offsetof(cria_generation_options, dry_allowed_length)},
    {"dryPenaltyLastN", FieldKind::kCount, offsetof(cria_generation_options, dry_penalty_last_n)},
    {"keepTokens", FieldKind::kCount, offsetof(cria_generation_options, keep_tokens)},
    {"parseSpecial", FieldKind::kFlag, offsetof(cria_generation_options, parse_special)},
};
constexpr Field kGenerationChoiceFields[] = {
    {"whenFull", FieldKind::kChoice, offsetof(cria_generation_options, when_full),
     "Lorg/cria/GenerationOptions$WhenFull;"},
    {"constraintKind", FieldKind::kChoice, offsetof(cria_generation_options, constraint_kind),
     "Lorg/cria/GenerationOptions$ConstraintKind;"},
};

constexpr Field kReplyFields[] = {
    {"firstTextSeconds", FieldKind::kDouble, offsetof(cria_result, first_text_seconds)},
    {"totalSeconds", FieldKind::kDouble, offsetof(cria_result, total_seconds)},
    {"promptTokensPerSecond", FieldKind::kDouble, offsetof(cria_result, prompt_tokens_per_second)},
    {"generatedTokensPerSecond", FieldKind::kDouble,
     offsetof(cria_result, generated_tokens_per_second)},
    {"promptTokens", FieldKind::kCount, offsetof(cria_result, prompt_tokens)},
    {"reusedTokens", FieldKind::kCount, offsetof(cria_result, reused_tokens)},
    {"generatedTokens", FieldKind::kCount, offsetof(cria_result, generated_tokens)},
    {"droppedTokens", FieldKind::kCount, offsetof(cria_result, dropped_tokens)},
    {"contextUsedTokens", FieldKind::kCount, offsetof(cria_result, context_used_tokens)},
    {"draftGain", FieldKind::kDouble, offsetof(cria_result, draft_gain)},
    {"draftedTokens", FieldKind::kCount, offsetof(cria_result, drafted_tokens)},
    {"acceptedTokens", FieldKind::kCount, offsetof(cria_result, accepted_tokens)},
    {"stopCode", FieldKind::kCode, offsetof(cria_result, stop_reason)},
};

constexpr Field kModelInfoFields[] = {
    {"numParameters", FieldKind::kBytes, offsetof(cria_model_info, num_parameters)},
    {"fileBytes", FieldKind::kBytes, offsetof(cria_model_info, file_bytes)},
    {"vocabSize", FieldKind::kCount, offsetof(cria_model_info, vocab_size)},
    {"maxContextTokens", FieldKind::kCount, offsetof(cria_model_info, max_context_tokens)},
    {"contextTokens", FieldKind::kCount, offsetof(cria_model_info, context_tokens)},
    {"numThreads", FieldKind::kCount, offsetof(cria_model_info, num_threads)},
    {"numBatchThreads", FieldKind::kCount, offsetof(cria_model_info, num_batch_threads)},
    {"hasChatTemplate", FieldKind::kFlag, offsetof(cria_model_info, has_chat_template)},
};

constexpr Field kPlanFields[] = {
    {"privateBytes", FieldKind::kBytes, offsetof(cria_plan_totals, private_bytes)},
    {"mappedBytes", FieldKind::kBytes, offsetof(cria_plan_totals, mapped_bytes)},
    {"peakBytes", FieldKind::kBytes, offsetof(cria_plan_totals, peak_bytes)},
    {"addressSpaceBytes", FieldKind::kBytes, offsetof(cria_plan_totals, address_space_bytes)},
};

bool AddParts(JNIEnv* env, jobject object, const cria_plan* plan) {
  const jclass type = env->GetObjectClass(object);
  const jmethodID add_part = env->GetMethodID(type, "addPart", "([BJZ)V");
  env->DeleteLocalRef(type);
  if (add_part == nullptr) return false;
  for (size_t i = 0; i < cria_plan_num_parts(plan); ++i) {
    uint64_t bytes = 0;
    int is_mapped = 0;
    const jbyteArray name = NewBytes(env, cria_plan_get_part(plan, i, &bytes, &is_mapped));
    if (name == nullptr) return false;
    env->CallVoidMethod(object, add_part, name, static_cast<jlong>(bytes),
                        static_cast<jboolean>(is_mapped != 0 ? JNI_TRUE : JNI_FALSE));
    env->DeleteLocalRef(name);
    if (env->ExceptionCheck()) return false;
  }
  return true;
}

// The array that a method without arguments returns; null with an exception pending.
jobject CallForArray(JNIEnv* env, jobject object, jclass type, const char* name,
                     const char* signature) {
  const jmethodID method = env->GetMethodID(type, name, signature);
  const jobject array = method == nullptr ? nullptr : env->CallObjectMethod(object, method);
  return env->ExceptionCheck() ? nullptr : array;
}

}  // namespace

bool ModelOptions::Read(JNIEnv* env, jbyteArray path, jint descriptor, jlong offset_bytes,
                        jlong length_bytes, jbyteArray pack_folder, jobject options) {
  if (!path_.ReadZeroTerminated(env, path, "path") ||
      !pack_folder_.ReadZeroTerminated(env, pack_folder, "packFolder") ||
      !ReadFields(env, options, kModelOptionFields, &values_)) {
    return false;
  }
  const jclass type = env->GetObjectClass(options);
  const auto draft_model =
      static_cast<jbyteArray>(CallForArray(env, options, type, "draftModelUtf8", "()[B"));
  env->DeleteLocalRef(type);
  if (env->ExceptionCheck() ||
      !draft_model_path_.ReadZeroTerminated(env, draft_model, "draftModelPath")) {
    return false;
  }
  if (offset_bytes < 0 || length_bytes < 0) {
    ThrowFailure(env, CRIA_ERROR_USAGE, "offsetBytes or lengthBytes is less than 0");
    return false;
  }
  values_.path = path_.c_str();
  values_.pack_folder = pack_folder_.c_str();
  values_.draft_model_path = draft_model_path_.c_str();
  values_.descriptor = descriptor;
  values_.offset_bytes = static_cast<uint64_t>(offset_bytes);
  values_.length_bytes = static_cast<uint64_t>(length_bytes);
  return true;
}

bool GenerationOptions::Read(JNIEnv* env, jobject object) {
  if (!ReadFields(env, object, kGenerationOptionFields, &values_) ||
      !ReadFields(env, object, kGenerationChoiceFields, &values_)) {
    return false;
  }
  const jclass type = env->GetObjectClass(object);
  const bool is_read = ReadStopStrings(env, object, type) && ReadLogitBias(env, object, type) &&
                       ReadConstraint(env, object, type);
  env->DeleteLocalRef(type);
  return is_read;
}

bool GenerationOptions::ReadStopStrings(JNIEnv* env, jobject object, jclass type) {
  const auto given =
      static_cast<jobjectArray>(CallForArray(env, object, type, "stopUtf8", "()[[B"));
  if (given == nullptr || !ReadTexts(env, given, stop_texts_)) return false;
  env->DeleteLocalRef(given);
  for (const Utf8& text : stop_texts_) stop_strings_.push_back({text.c_str(), text.size()});
  values_.stop_strings = stop_strings_.data();
  values_.num_stop_strings = stop_strings_.size();
  return true;
}

bool GenerationOptions::ReadLogitBias(JNIEnv* env, jobject object, jclass type) {
  const auto tokens = static_cast<jintArray>(CallForArray(env, object, type, "biasTokens", "()[I"));
  if (tokens == nullptr) return false;
  const auto addends =
      static_cast<jfloatArray>(CallForArray(env, object, type, "biasAddends", "()[F"));
  if (addends == nullptr) return false;
  // Another thread may change the map between the two calls.
  const jsize count = std::min(env->GetArrayLength(tokens), env->GetArrayLength(addends));
  std::vector<jint> ids(static_cast<size_t>(count));
  std::vector<jfloat> values(static_cast<size_t>(count));
  env->GetIntArrayRegion(tokens, 0, count, ids.data());
  env->GetFloatArrayRegion(addends, 0, count, values.data());
  env->DeleteLocalRef(tokens);
  env->DeleteLocalRef(addends);
  for (size_t i = 0; i < ids.size(); ++i) logit_bias_.push_back({ids[i], values[i]});
  values_.logit_bias = logit_bias_.data();
  values_.num_logit_bias = logit_bias_.size();
  return true;
}

bool GenerationOptions::ReadConstraint(JNIEnv* env, jobject object, jclass type) {
  const auto given =
      static_cast<jbyteArray>(CallForArray(env, object, type, "constraintUtf8", "()[B"));
  if (given == nullptr) return false;
  constraint_.Read(env, given);
  env->DeleteLocalRef(given);
  if (env->ExceptionCheck()) return false;
  values_.constraint = constraint_.c_str();
  values_.constraint_bytes = constraint_.size();
  return true;
}

bool Messages::Read(JNIEnv* env, jobjectArray roles_and_contents) {
  if (!ReadTexts(env, roles_and_contents, texts_)) return false;
  for (size_t i = 0; i + 1 < texts_.size(); i += 2) {
    messages_.push_back(
        {texts_[i].c_str(), texts_[i + 1].c_str(), texts_[i].size(), texts_[i + 1].size()});
  }
  return true;
}

bool WriteGenerationOptions(JNIEnv* env, jobject object, const cria_generation_options& options) {
  return WriteFields(env, object, kGenerationOptionFields, &options);
}

bool WriteModelInfo(JNIEnv* env, jobject object, const cria_model_info& info) {
  if (!WriteFields(env, object, kModelInfoFields, &info)) return false;
  const jclass type = env->GetObjectClass(object);
  const jmethodID set_name = env->GetMethodID(type, "setName", "([B)V");
  env->DeleteLocalRef(type);
  const jbyteArray name = set_name == nullptr ? nullptr : NewBytes(env, info.name);
  if (name == nullptr) return false;
  env->CallVoidMethod(object, set_name, name);
  env->DeleteLocalRef(name);
  return !env->ExceptionCheck();
}

bool WriteMemoryPlan(JNIEnv* env, jobject object, const cria_plan* plan) {
  cria_plan_totals totals = CRIA_PLAN_TOTALS_INIT;
  return ThrowUnlessOk(env, cria_plan_get_totals(plan, &totals)) &&
         WriteFields(env, object, kPlanFields, &totals) && AddParts(env, object, plan);
}

bool WriteReply(JNIEnv* env, jobject object, const cria_result& result) {
  return WriteFields(env, object, kReplyFields, &result);
}

}  // namespace cria::jni
