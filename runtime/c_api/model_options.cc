#include "c_api/model_options.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "c_api/failure.h"
#include "c_api/versioned_struct.h"
#include "core/format.h"
#include "model/path_contents.h"

namespace cria::c_api {

// The first version had no drafts.
template <>
inline constexpr size_t kFirstVersionBytes<cria_model_options> =
    offsetof(cria_model_options, draft_model_path);

namespace {

// Where pointers have 32 bits, four bytes of padding are before max_constraints, because the
// struct_size of the version before it counted them. For this, it has 64 bits.
static_assert(offsetof(cria_model_options, max_constraints) % alignof(cria_model_options) == 0);
static_assert(sizeof(cria_model_options) ==
              offsetof(cria_model_options, reserved_2) + sizeof(uint32_t));
static_assert(offsetof(cria_model_options, draft_mtp) ==
              offsetof(cria_model_options, max_temperature_celsius) + sizeof(double));
static_assert(offsetof(cria_model_options, max_temperature_celsius) ==
              offsetof(cria_model_options, max_constraints) + sizeof(uint64_t));
static_assert(kFirstVersionBytes<cria_model_options> ==
              offsetof(cria_model_options, reserved) + sizeof(uint32_t));
static_assert(sizeof(cria_model_info) ==
              offsetof(cria_model_info, has_chat_template) + sizeof(int32_t));

Result<std::optional<KvType>> ToKvType(int32_t kv_type) {
  switch (kv_type) {
    case CRIA_KV_F32:
      return KvType::kF32;
    case CRIA_KV_F16:
      return KvType::kF16;
    case CRIA_KV_INT8:
      return KvType::kInt8;
    case CRIA_KV_MODEL:
      return std::nullopt;
    default:
      return Fail(ErrorCode::kUsage,
                  Format("kv_type is {}, which is not one of CRIA_KV_...", kv_type));
  }
}

// A tied head that is stored separately is not counted, because it is the embedding again.
uint64_t CountParameters(const ModelFile& file) {
  uint64_t parameters = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    if (tensor.spec.role == TensorRole::kLmHead && file.config().tie_word_embeddings) continue;
    parameters += uint64_t{tensor.layout.output_channels} * tensor.layout.input_channels;
  }
  return parameters;
}

}  // namespace

Result<cria_model_options> ReadModelOptions(const cria_model_options* options) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(options, "options"));
  return ReadStruct(options, cria_model_options CRIA_MODEL_OPTIONS_INIT, "cria_model_options");
}

Result<platform::File> OpenSource(const cria_model_options& options) {
  if (options.path != nullptr) {
    if (options.offset_bytes == 0 && options.length_bytes == 0) {
      return OpenModelPath(options.path);
    }
    return Fail(ErrorCode::kUsage,
                "offset_bytes and length_bytes belong to a descriptor; with path, leave them 0");
  }
  if (options.descriptor < 0) {
    return Fail(ErrorCode::kUsage, "there is no model: neither path nor descriptor is set");
  }
  std::optional<uint64_t> length_bytes;
  if (options.length_bytes != 0) length_bytes = options.length_bytes;
  return platform::File::OfDescriptor(options.descriptor, options.offset_bytes, length_bytes);
}

Result<EngineOptions> ToEngineOptions(const cria_model_options& options) {
  EngineOptions engine = {
      .num_threads = options.num_threads,
      .num_batch_threads = options.num_batch_threads,
      // On 32 bits, the largest number would mean the model's own context.
      .context_tokens = std::min<size_t>(options.context_tokens, kModelsOwnContext - 1),
      .ignore_memory_limits = options.ignore_memory_limits != 0};
  if (options.reserved != 0 || options.reserved_2 != 0) {
    return Fail(ErrorCode::kUnsupported,
                "reserved or reserved_2 of cria_model_options is not 0; use "
                "CRIA_MODEL_OPTIONS_INIT");
  }
  engine.drafts.ngram_tokens = options.draft_ngram_tokens;
  engine.drafts.min_tokens = options.min_draft_tokens;
  engine.drafts.min_probability = options.min_draft_probability;
  engine.drafts.has_mtp = options.draft_mtp != 0;
  if (options.max_draft_tokens != 0) engine.drafts.max_tokens = options.max_draft_tokens;
  engine.max_constraints = static_cast<size_t>(
      std::min<uint64_t>(options.max_constraints, std::numeric_limits<uint32_t>::max()));
  engine.thermal.max_celsius = options.max_temperature_celsius;
  if (options.draft_model_path != nullptr) engine.draft_model_path = options.draft_model_path;
  if (options.num_sequences != 0) engine.num_sequences = options.num_sequences;
  if (options.chunk_tokens != 0) engine.chunk_tokens = options.chunk_tokens;
  CRIA_ASSIGN_OR_RETURN(engine.kv_type, ToKvType(options.kv_type));
  if (options.packing != CRIA_PACK_ON_FIRST_USE && options.packing != CRIA_PACK_NEVER) {
    return Fail(ErrorCode::kUsage,
                Format("packing is {}, which is not one of CRIA_PACK_...", options.packing));
  }
  engine.packing.never_pack = options.packing == CRIA_PACK_NEVER;
  if (options.pack_folder != nullptr) engine.packing.cache_folder = options.pack_folder;
  if (options.memory_limit_bytes != 0) engine.memory_limit_bytes = options.memory_limit_bytes;
  return engine;
}

cria_model_info DescribeModel(const ModelFile& file, const MemoryPlanOptions& options,
                              const char* name) {
  const auto count = [](size_t number) { return static_cast<uint32_t>(number); };
  const size_t batch_threads =
      options.num_batch_threads != 0 ? options.num_batch_threads : options.num_threads;
  return {.struct_size = sizeof(cria_model_info),
          .name = name,
          .num_parameters = CountParameters(file),
          .file_bytes = file.size_bytes(),
          .vocab_size = file.config().vocab_size,
          .max_context_tokens = count(file.config().longest_context()),
          .context_tokens = count(options.decoder.context_tokens),
          .num_threads = count(options.num_threads),
          .num_batch_threads = count(batch_threads),
          .has_chat_template = !file.chat_template_source().empty()};
}

}  // namespace cria::c_api
