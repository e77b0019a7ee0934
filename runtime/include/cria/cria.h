// The C API of Cria: language models of the Llama family inside another program. C99 and C++;
// cria.hpp wraps it for C++17.
//
//   cria_plan   what a model would take and what it is, told without loading it
//   cria_model  a loaded model with one context: the KV cache, whose size is fixed at loading
//   cria_chat   a conversation in the context of a model
//
// Errors: what can fail returns a cria_status; cria_error_message() has the sentence. Nothing is
// printed, thrown or ended. Messages that name flags, as -c, mean those of the program cria; the
// options here have the same meaning.
// Threads: any thread may call, and one at a time may use a model and its chats: cria_chat_send and
// cria_complete fail with CRIA_ERROR_USAGE while another is under way, as they do in a callback.
// What any thread may call at any time says so. Callbacks run on the thread that made the call,
// before it returns, and must neither throw nor leave by longjmp.
// Texts: UTF-8, ended by a zero byte, and copied where they are kept. Bytes that are no UTF-8 are
// read as single bytes; what a model writes is always UTF-8.
// Structs: declare one with its ..._INIT, which sets struct_size and the defaults. Later versions
// append fields, whose zero means what was before. A library takes what an older header does not
// have at its default, and refuses a newer one only where fields that it lacks are not zero; it
// fills as many fields of a result as the caller has.

#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CRIA_API __attribute__((visibility("default")))
#else
#define CRIA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): C's names.

// The version of the library, "0.1.0". Any thread.
CRIA_API const char* cria_version(void);

// Who can mend what went wrong.
typedef enum cria_status {
  CRIA_OK = 0,
  CRIA_ERROR_USAGE = 1,          // An argument, or an order of calls, that cannot be.
  CRIA_ERROR_INVALID_FILE = 2,   // The model file is damaged, cut short or none.
  CRIA_ERROR_UNSUPPORTED = 3,    // It is sound but for another version or processor.
  CRIA_ERROR_NOT_FOUND = 4,      // There is no such file.
  CRIA_ERROR_IO = 5,             // The system refused to read or write.
  CRIA_ERROR_OUT_OF_MEMORY = 6,  // Memory could not be had, or would exceed a limit.
  CRIA_ERROR_OUT_OF_RANGE = 7,   // A text that the context, or a buffer, does not hold.
  CRIA_ERROR_CANCELLED = 8,      // A callback or cria_model_cancel stopped it.
  CRIA_ERROR_INTERNAL = 9        // A bug in Cria or below it.
} cria_status;

// What went wrong in the last call on this thread that failed, where, and what to do about it; ""
// before the first. Valid until the next call on this thread fails. Any thread.
CRIA_API const char* cria_error_message(void);

// ---- Models ----

// Called with how many bytes of weights are packed, of how many. Not 0 stops the loading.
typedef int (*cria_progress_callback)(uint64_t done_bytes, uint64_t total_bytes, void* data);
// Called with a sentence where weights are packed, and where they cannot be put into pack_folder.
typedef void (*cria_notice_callback)(const char* sentence, void* data);

// How keys and values lie in the KV cache: 4, 2 or about 1 bytes each.
enum { CRIA_KV_F32 = 0, CRIA_KV_F16 = 1, CRIA_KV_INT8 = 2 };

// What to do with a model whose weights are not yet packed for this processor.
enum {
  CRIA_PACK_ON_FIRST_USE = 0,  // Pack, which takes seconds for each GB, and keep the result.
  CRIA_PACK_NEVER = 1          // Fail with CRIA_ERROR_NOT_FOUND.
};

typedef struct cria_model_options {
  size_t struct_size;
  // The model file. NULL: it is, or is part of, the file behind `descriptor`.
  const char* path;
  // A folder of the application for packed weights, made where it is missing, so that only the
  // first start packs: it takes as many bytes as the model. NULL: every start packs, into memory.
  const char* pack_folder;
  cria_progress_callback on_progress;  // NULL: nobody is told.
  cria_notice_callback on_notice;      // NULL: likewise.
  void* callback_data;                 // Passed to both.
  // Where the model lies behind the descriptor: an asset inside an Android package, which must be
  // stored there uncompressed. At an offset that 64 does not divide, the tokenizer's tables take
  // private memory, and a model made by `cria pack --standalone` is refused.
  uint64_t offset_bytes;
  uint64_t length_bytes;        // 0: to the end of the file.
  uint64_t memory_limit_bytes;  // Fail where more would be taken; 0: the system's limits alone.
  int32_t descriptor;           // Is duplicated: the caller's stays the caller's. Below 0: none.
  uint32_t num_threads;         // For one token after another; 0: one for each fast core.
  uint32_t num_batch_threads;   // For reading prompts; 0: as many as num_threads.
  uint32_t context_tokens;      // Of the KV cache; 0: 2048, or the model's own where that is less.
  uint32_t chunk_tokens;        // Of a prompt that go through the model at once; 0: 128.
  int32_t kv_type;
  int32_t packing;               // CRIA_PACK_...
  int32_t ignore_memory_limits;  // Not 0: load what exceeds limits all the same.
} cria_model_options;
#define CRIA_MODEL_OPTIONS_INIT                                                                    \
  {sizeof(cria_model_options), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, -1, 0, 0, 0, 0, CRIA_KV_F32, \
   CRIA_PACK_ON_FIRST_USE,     0}

typedef struct cria_model_info {
  size_t struct_size;
  const char* name;         // Lives as long as what it was asked of.
  uint64_t num_parameters;  // A tied output head is counted once.
  uint64_t file_bytes;
  uint32_t vocab_size;
  uint32_t max_context_tokens;  // What the model was made for.
  uint32_t context_tokens;      // Of the KV cache.
  uint32_t num_threads;
  uint32_t num_batch_threads;
  int32_t has_chat_template;  // 0: it continues what it is told rather than answer.
} cria_model_info;
#define CRIA_MODEL_INFO_INIT {sizeof(cria_model_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0}

typedef struct cria_model cria_model;

// Loads a model: milliseconds where its weights are packed. Takes all memory that it will ever
// take, but for what follows from the length of texts. `*model` is NULL on failure.
CRIA_API cria_status cria_model_load(const cria_model_options* options, cria_model** model);
// Not while another call uses the model. Its memory goes with the last of its chats. NULL is
// nothing to free, here and below.
CRIA_API void cria_model_free(cria_model* model);

// Any thread.
CRIA_API cria_status cria_model_get_info(const cria_model* model, cria_model_info* info);

// Stops what cria_chat_send or cria_complete is doing with the model, before its next token or
// chunk of a prompt. Does nothing where nothing is under way. Any thread, also in a callback or a
// signal handler.
CRIA_API void cria_model_cancel(cria_model* model);

// ---- Memory, before anything is loaded ----

// Resident bytes of the whole process once a conversation has filled the context.
typedef struct cria_plan_totals {
  size_t struct_size;
  uint64_t private_bytes;  // Nobody can take them away.
  uint64_t mapped_bytes;   // Of files: the system may drop them and read them again.
  uint64_t peak_bytes;     // The most at once, loading included; what limits are compared with.
  // What RLIMIT_AS bounds. With glibc, heaps of threads may reserve 64 MB each beside it.
  uint64_t address_space_bytes;
} cria_plan_totals;
#define CRIA_PLAN_TOTALS_INIT {sizeof(cria_plan_totals), 0, 0, 0, 0}

typedef struct cria_plan cria_plan;

// Reads the model's metadata alone. `*plan` is NULL on failure. A plan never changes: any thread
// may read it.
CRIA_API cria_status cria_plan_create(const cria_model_options* options, cria_plan** plan);
CRIA_API void cria_plan_free(cria_plan* plan);

CRIA_API cria_status cria_plan_get_totals(const cria_plan* plan, cria_plan_totals* totals);
CRIA_API cria_status cria_plan_get_info(const cria_plan* plan, cria_model_info* info);
// The parts: "KV cache", "packed weights" and so on. A name lives as long as the plan; NULL beyond
// the last. `bytes` and `is_mapped` may be NULL.
CRIA_API size_t cria_plan_num_parts(const cria_plan* plan);
CRIA_API const char* cria_plan_get_part(const cria_plan* plan, size_t index, uint64_t* bytes,
                                        int* is_mapped);
// Whether the limits allow it: if not, CRIA_ERROR_OUT_OF_MEMORY with what would fit in the message.
CRIA_API cria_status cria_plan_check(const cria_plan* plan);

// ---- Generating ----

// What becomes of a text that outgrows the context.
enum {
  CRIA_WHEN_FULL_STOP = 0,  // It ends there.
  // Its oldest part is dropped and it goes on. A chat forgets whole turns but never its system
  // prompt; a completion drops the older half of what lies behind its first `keep_tokens`.
  CRIA_WHEN_FULL_SHIFT = 1
};

// How tokens are chosen. The steps apply in llama.cpp's order, with its defaults: penalty, top_k,
// top_p, min_p, temperature.
typedef struct cria_generation_options {
  size_t struct_size;
  uint64_t seed;           // The same seed gives the same answers, on the same processor.
  uint32_t max_tokens;     // Of one answer; 0: until the model ends it.
  int32_t when_full;       // CRIA_WHEN_FULL_...
  float temperature;       // 0: always the most likely token.
  uint32_t top_k;          // Among the k most likely; 0: all.
  float top_p;             // Among the most likely that together reach p; 1: all.
  float min_p;             // Those at least p times as likely as the most likely; 0: all.
  float repeat_penalty;    // Makes recent tokens less likely; 1: does not.
  uint32_t repeat_last_n;  // How many tokens count as recent.
  uint32_t keep_tokens;    // For cria_complete with CRIA_WHEN_FULL_SHIFT.
  // Not 0: cria_complete takes <|eot_id|> and the like in the prompt for the tokens that they name.
  // Never for text that comes from somebody else.
  int32_t parse_special;
} cria_generation_options;
#define CRIA_GENERATION_OPTIONS_INIT \
  {sizeof(cria_generation_options),  \
   0,                                \
   0,                                \
   CRIA_WHEN_FULL_STOP,              \
   0.8f,                             \
   40,                               \
   0.95f,                            \
   0.05f,                            \
   1.0f,                             \
   64,                               \
   4,                                \
   0}

// Called with text as it becomes complete: whole characters, ended by a zero byte that `text_bytes`
// does not count, valid during the call. Not 0 stops the answer, as cria_model_cancel does.
typedef int (*cria_text_callback)(const char* text, size_t text_bytes, void* data);

// Why an answer ended.
enum {
  CRIA_STOP_END = 0,           // The model ended it.
  CRIA_STOP_MAX_TOKENS = 1,    // As many tokens as were asked for.
  CRIA_STOP_CONTEXT_FULL = 2,  // The context has no place for another token.
  CRIA_STOP_CANCELLED = 3      // cria_model_cancel or the callback; what was said is kept.
};

typedef struct cria_result {
  size_t struct_size;
  double first_text_seconds;           // From the call to the first text; 0 where there was none.
  double total_seconds;                // Of the call.
  double prompt_tokens_per_second;     // Of reading the prompt; 0 where nothing had to be read.
  double generated_tokens_per_second;  // Of the model alone, neither sampling nor the callback.
  uint32_t prompt_tokens;              // Read.
  uint32_t reused_tokens;              // Of the prompt, those that the context held already.
  uint32_t generated_tokens;
  uint32_t dropped_tokens;       // To make room (CRIA_WHEN_FULL_SHIFT).
  uint32_t context_used_tokens;  // Of the KV cache's, with this text in it.
  int32_t stop_reason;           // CRIA_STOP_...
} cria_result;
#define CRIA_RESULT_INIT {sizeof(cria_result), 0, 0, 0, 0, 0, 0, 0, 0, 0, CRIA_STOP_END}

// Continues a text. `options` NULL: the defaults; `on_text` NULL: nobody is told; `result` NULL: is
// not filled. Stopped while the prompt is read, it fails with CRIA_ERROR_CANCELLED.
CRIA_API cria_status cria_complete(cria_model* model, const char* prompt,
                                   const cria_generation_options* options,
                                   cria_text_callback on_text, void* data, cria_result* result);

// ---- Chats ----

// A model may have any number of chats. They share its context, by turns: a chat that follows
// another, or a completion, reads its messages again but for what both begin with.
typedef struct cria_chat cria_chat;

// `system_prompt` NULL or "": none. `options` NULL: the defaults. `*chat` is NULL on failure.
CRIA_API cria_status cria_chat_create(cria_model* model, const char* system_prompt,
                                      const cria_generation_options* options, cria_chat** chat);
// Not while another call uses the chat; before or after its model is freed.
CRIA_API void cria_chat_free(cria_chat* chat);

// From the next message on; the random numbers begin again at the seed.
CRIA_API cria_status cria_chat_set_options(cria_chat* chat, const cria_generation_options* options);

// Answers a message and keeps both. Where it fails, the chat is as it was before the message, but
// for turns that a full context made it forget; being stopped while the message is read is a
// failure (CRIA_ERROR_CANCELLED). Where the heap itself ends in the middle
// (CRIA_ERROR_OUT_OF_MEMORY), the chat must be reset. What may be NULL is as in cria_complete.
CRIA_API cria_status cria_chat_send(cria_chat* chat, const char* message,
                                    cria_text_callback on_text, void* data, cria_result* result);

// Forgets everything but the system prompt.
CRIA_API cria_status cria_chat_reset(cria_chat* chat);

// How much of the context the chat takes, as of its last piece of text; the rest is left. Any
// thread.
CRIA_API uint32_t cria_chat_context_used(const cria_chat* chat);
// Whether a full context has made it forget turns. Not while another call uses the chat.
CRIA_API int cria_chat_has_forgotten(const cria_chat* chat);

// ---- Tokens ----

// The tokens of a text. `*num_tokens` tells how many there are; CRIA_ERROR_OUT_OF_RANGE, and
// nothing written, where `capacity` is less. With `tokens` NULL they are only counted.
// `add_special`: begin with the token for the beginning of a text if the model wants it;
// `parse_special` as above. Any thread, as the next.
CRIA_API cria_status cria_tokenize(const cria_model* model, const char* text, int add_special,
                                   int parse_special, int32_t* tokens, size_t capacity,
                                   size_t* num_tokens);
// The text of tokens: valid UTF-8 without control tokens. `*text_bytes` tells its length without
// the zero byte that ends it; `capacity` must be larger, and `text` NULL only counts.
CRIA_API cria_status cria_detokenize(const cria_model* model, const int32_t* tokens,
                                     size_t num_tokens, char* text, size_t capacity,
                                     size_t* text_bytes);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}  // extern "C"
#endif
