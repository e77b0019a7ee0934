// The C API of Cria, which runs language models of the Llama family inside another program. It is
// for C99 and C++; cria.hpp wraps it for C++17.
//
//   cria_plan   what a model is and how much memory it would take, without loading it
//   cria_model  a loaded model with its context: the KV cache, whose size is fixed at loading
//   cria_chat   a conversation in the context of a model
//
// Errors: a function that can fail returns a cria_status, and cria_error_message() returns the
// sentence, which names the options of this header where one helps. The library never prints,
// throws or ends the process.
// Threads: any thread may call. Calls that read prompts or generate run at the same time, as many
// as cria_model_options.num_sequences; others wait for their turn. Only one call at a time may use
// a chat, and a callback must not generate with the same model; such a call fails with
// CRIA_ERROR_USAGE. "Any thread" below marks functions that any thread may call at any time.
// Callbacks are called on the calling thread, before the call returns; one that takes long delays
// its own call only. They must not throw, and must not leave by longjmp.
// Texts are UTF-8 and are copied if they are kept. A text with a length may contain zero bytes, and
// its pointer may be NULL if the length is 0; the length may be CRIA_ZERO_TERMINATED. A text
// without a length ends with a zero byte. Bytes that are not valid UTF-8 are read as single bytes;
// text that a model generates is always valid UTF-8.
// Structs: initialize a struct with its ..._INIT, which sets struct_size and the defaults. Later
// versions append fields; a zero in such a field means the earlier behaviour. If the caller's
// header is older than the library, the library uses the defaults of the fields that are missing.
// If it is newer, the library refuses the struct only if a field that it does not know is not zero.
// In a result, the library fills only the fields that the caller's struct has. Structs without
// struct_size, which are elements of arrays, never change.

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

// The version of the library, such as "0.1.0". Any thread.
CRIA_API const char* cria_version(void);

// What kind of error it is.
typedef enum cria_status {
  CRIA_OK = 0,
  CRIA_ERROR_USAGE = 1,          // An argument is wrong, or this call is not allowed now.
  CRIA_ERROR_INVALID_FILE = 2,   // The file is damaged, truncated or not a model.
  CRIA_ERROR_UNSUPPORTED = 3,    // The file is for another version or processor.
  CRIA_ERROR_NOT_FOUND = 4,      // The file does not exist.
  CRIA_ERROR_IO = 5,             // Reading or writing failed.
  CRIA_ERROR_OUT_OF_MEMORY = 6,  // There is too little memory, or a limit forbids it.
  CRIA_ERROR_OUT_OF_RANGE = 7,  // A text is too long for the context or a buffer, or no such index.
  CRIA_ERROR_CANCELLED = 8,     // A callback or a function ..._cancel stopped the call.
  CRIA_ERROR_INTERNAL = 9       // A bug in Cria or in a library that it uses.
} cria_status;

// The message of the last call on this thread that failed: what went wrong, where, and what to do
// about it; "" if no call has failed. Valid until the next call on this thread fails. Any thread.
CRIA_API const char* cria_error_message(void);

// ---- Texts ----

// A length: the text ends with a zero byte.
#define CRIA_ZERO_TERMINATED SIZE_MAX

typedef struct cria_text {
  const char* text;
  size_t text_bytes;
} cria_text;

typedef struct cria_message {
  const char* role;  // "system", "user", "assistant", or another that the chat template knows.
  const char* content;
  size_t role_bytes;
  size_t content_bytes;
} cria_message;

// ---- Models ----

// Called while weights are packed. Returns 0 to go on; any other value stops the loading.
typedef int (*cria_progress_callback)(uint64_t done_bytes, uint64_t total_bytes, void* data);
// Called with a sentence when weights are packed, if they cannot be written to pack_folder, if this
// processor allows no drafts, and if its temperature is not known.
typedef void (*cria_notice_callback)(const char* sentence, void* data);

// The type of keys and values in the KV cache; a value takes 4, 2 or about 1 bytes. CRIA_KV_MODEL
// is INT8, or F16 if the model file says that INT8 would change its predictions too much.
enum { CRIA_KV_F32 = 0, CRIA_KV_F16 = 1, CRIA_KV_INT8 = 2, CRIA_KV_MODEL = 3 };

// What to do if a model's weights are not packed for this processor yet.
enum {
  CRIA_PACK_ON_FIRST_USE = 0,  // Pack, which takes seconds for each GB, and keep them.
  CRIA_PACK_NEVER = 1          // Fail with CRIA_ERROR_NOT_FOUND.
};

typedef struct cria_model_options {
  size_t struct_size;
  // The model file. NULL: `descriptor` is the open file that is, or contains, the model.
  const char* path;
  // A folder of the application for packed weights, so that only the first start packs. It is
  // created if it is missing, and takes as many bytes as the model. NULL: every start packs the
  // weights into private memory.
  const char* pack_folder;
  cria_progress_callback on_progress;  // May be NULL.
  cria_notice_callback on_notice;      // May be NULL.
  void* callback_data;                 // Passed to both callbacks.
  // The position of the model in the file behind `descriptor`: for example an asset inside an
  // Android package, which must be stored uncompressed. If the offset is not a multiple of 64, the
  // tokenizer's tables take private memory, and a model made by `cria pack --standalone` is
  // refused.
  uint64_t offset_bytes;
  uint64_t length_bytes;         // 0: to the end of the file.
  uint64_t memory_limit_bytes;   // Loading fails above it; 0: only the system's limits hold.
  int32_t descriptor;            // Duplicated; the caller may close it. Below 0: none.
  uint32_t num_threads;          // For generating; 0: one for each fast core.
  uint32_t num_batch_threads;    // For reading prompts; 0: as many as num_threads.
  uint32_t context_tokens;       // Size of the KV cache; 0: 2048, or the model's own if less.
  uint32_t chunk_tokens;         // Tokens of a prompt that are read at once; 0: 128.
  int32_t kv_type;               // CRIA_KV_...
  int32_t packing;               // CRIA_PACK_...
  int32_t ignore_memory_limits;  // Not 0: load the model even if it exceeds a limit.
  // How many chats and completions run at the same time; 0: one. They share the context: a call is
  // admitted when there is room for its prompt and `max_tokens`, or for its equal share if that is
  // 0. More calls wait for their turn.
  uint32_t num_sequences;
  uint32_t reserved;  // Must be 0.
  // Drafts are guesses of the next tokens, which the model then checks together. They change no
  // text, only the time that it takes. On processors where they could change a text, there are
  // none, and on_notice is told.
  //
  // A much smaller model with the same vocabulary, which makes drafts; NULL: none.
  const char* draft_model_path;
  // Drafts are what followed the last so many tokens earlier in the text; 0: none of these.
  uint32_t draft_ngram_tokens;
  uint32_t max_draft_tokens;  // The longest draft; 0: 8.
  // Drafts are no shorter, even if that is not expected to pay; 0: they are as long as pays.
  uint32_t min_draft_tokens;
  // A draft that no n-gram made ends before a token that its source gives a smaller probability; 0:
  // none.
  float min_draft_probability;
  // How many calls with a `constraint` may run at the same time; 0: none. Each takes memory, which
  // is part of the plan.
  uint64_t max_constraints;
  // From 5 °C below this temperature of the processor on, fewer threads compute, and they pause
  // between tokens, so that the board need not slow down by itself: from 30 to 125; 0: no limit.
  // This changes no text. Where the system does not tell the temperature, the limit has no effect,
  // and on_notice is told.
  double max_temperature_celsius;
  // Not 0: where n-grams find no draft, the model's own layer for multi-token prediction makes one.
  // Loading fails if the model has none, or if there is a draft_model_path, too.
  int32_t draft_mtp;
  uint32_t reserved_2;  // Must be 0.
} cria_model_options;
#define CRIA_MODEL_OPTIONS_INIT   \
  {                               \
      sizeof(cria_model_options), \
      NULL,                       \
      NULL,                       \
      NULL,                       \
      NULL,                       \
      NULL,                       \
      0,                          \
      0,                          \
      0,                          \
      -1,                         \
      0,                          \
      0,                          \
      0,                          \
      0,                          \
      CRIA_KV_MODEL,              \
      CRIA_PACK_ON_FIRST_USE,     \
      0,                          \
      0,                          \
      0,                          \
      NULL,                       \
      0,                          \
      0,                          \
      0,                          \
      0,                          \
      0,                          \
      0,                          \
      0,                          \
      0}

typedef struct cria_model_info {
  size_t struct_size;
  const char* name;         // Valid as long as the model or plan.
  uint64_t num_parameters;  // A tied output head is counted once.
  uint64_t file_bytes;
  uint32_t vocab_size;
  uint32_t max_context_tokens;  // The context that the model was made for.
  uint32_t context_tokens;      // Size of the KV cache.
  uint32_t num_threads;
  uint32_t num_batch_threads;
  int32_t has_chat_template;  // 0: it continues the text instead of answering.
} cria_model_info;
#define CRIA_MODEL_INFO_INIT {sizeof(cria_model_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0}

typedef struct cria_model cria_model;

// Loads a model, which takes milliseconds if its weights are packed. After loading, only memory for
// texts is allocated, in proportion to their length. `*model` is NULL on failure.
CRIA_API cria_status cria_model_load(const cria_model_options* options, cria_model** model);
// Must not be called while another call uses the model. The memory is freed after the last of its
// chats is freed, too. NULL is allowed, here and in the other ..._free functions.
CRIA_API void cria_model_free(cria_model* model);

// Any thread.
CRIA_API cria_status cria_model_get_info(const cria_model* model, cria_model_info* info);

// Stops the call that reads a prompt or generates with this model, before the next token or chunk
// of a prompt. Does nothing if there is none. Any thread; allowed in callbacks and signal handlers.
CRIA_API void cria_model_cancel(cria_model* model);

// ---- Memory, before anything is loaded ----

// Resident bytes of the whole process after a conversation has filled the context.
typedef struct cria_plan_totals {
  size_t struct_size;
  uint64_t private_bytes;  // The kernel cannot drop them.
  uint64_t mapped_bytes;   // Bytes of files: the kernel may drop them and read them again.
  uint64_t peak_bytes;     // The maximum, loading included; compared with the limits.
  // What RLIMIT_AS limits. With glibc, heaps of threads may reserve 64 MB each in addition.
  uint64_t address_space_bytes;
} cria_plan_totals;
#define CRIA_PLAN_TOTALS_INIT {sizeof(cria_plan_totals), 0, 0, 0, 0}

typedef struct cria_plan cria_plan;

// Reads only the model's metadata. `*plan` is NULL on failure. A plan never changes: any thread may
// read it.
CRIA_API cria_status cria_plan_create(const cria_model_options* options, cria_plan** plan);
CRIA_API void cria_plan_free(cria_plan* plan);

CRIA_API cria_status cria_plan_get_totals(const cria_plan* plan, cria_plan_totals* totals);
CRIA_API cria_status cria_plan_get_info(const cria_plan* plan, cria_model_info* info);
// The parts: "KV cache", "packed weights" and so on. Returns the name of part `index`, valid as
// long as the plan, or NULL if there is no such part. `bytes` and `is_mapped` may be NULL. "other
// experts" of a mixture are mapped, too, but are not in the totals: they are read when they are
// chosen, and take only the memory that is left. So are "per-layer embeddings", of which a token
// reads a row.
CRIA_API size_t cria_plan_num_parts(const cria_plan* plan);
CRIA_API const char* cria_plan_get_part(const cria_plan* plan, size_t index, uint64_t* bytes,
                                        int* is_mapped);
// Returns CRIA_ERROR_OUT_OF_MEMORY if the limits forbid it; the message says what would fit.
CRIA_API cria_status cria_plan_check(const cria_plan* plan);

// ---- Generating ----

// What happens to a text that becomes longer than the context.
enum {
  CRIA_WHEN_FULL_STOP = 0,  // The text ends there.
  // The oldest part is dropped and the text goes on. A chat drops whole turns but never its system
  // prompt; a completion drops the older half of the tokens after its first `keep_tokens`.
  CRIA_WHEN_FULL_SHIFT = 1
};

// What is added to the logit of a token: at most 1e6; minus infinity forbids the token.
typedef struct cria_logit_bias {
  int32_t token;
  float addend;
} cria_logit_bias;

// What a generated text must match.
enum {
  CRIA_CONSTRAINT_NONE = 0,
  CRIA_CONSTRAINT_JSON_SCHEMA = 1,  // JSON that is valid by this JSON Schema (draft 2020-12).
  CRIA_CONSTRAINT_JSON = 2,         // Any JSON value; `constraint` is empty.
  CRIA_CONSTRAINT_JSON_OBJECT = 3,  // Any JSON object; `constraint` is empty.
  CRIA_CONSTRAINT_GRAMMAR = 4,  // The rule "root" of this grammar in llama.cpp's notation, GBNF.
  CRIA_CONSTRAINT_REGEX = 5     // This regular expression of JavaScript, from begin to end.
};

// How tokens are chosen, and where the text ends. The steps are applied in llama.cpp's order, with
// its defaults: bias, penalties, DRY, top_k, typical_p, top_p, min_p, XTC, temperature. The arrays
// and texts are copied.
typedef struct cria_generation_options {
  size_t struct_size;
  uint64_t seed;           // The same seed gives the same answers, on the same processor.
  uint32_t max_tokens;     // Maximum for one answer; 0: until the model ends it.
  int32_t when_full;       // CRIA_WHEN_FULL_...
  float temperature;       // 0: always the most likely token.
  uint32_t top_k;          // Choose among the k most likely tokens; 0: all.
  float top_p;             // Among the most likely whose probabilities reach p; 1: all.
  float min_p;             // Among those at least p times as likely as the first; 0: all.
  float repeat_penalty;    // Makes recent tokens less likely; 1: off.
  uint32_t repeat_last_n;  // How many tokens count as recent; UINT32_MAX: the whole context.
  uint32_t keep_tokens;    // First tokens that cria_complete keeps when it shifts.
  // Not 0: cria_complete reads <|eot_id|> and the like in the prompt as the tokens that they name.
  // Do not set it for text from others.
  int32_t parse_special;
  // The answer ends before the first of these strings, whether or not the model's tokens divide it.
  // What may be the beginning of one is held back until that is certain. Control tokens have no
  // text and are not found.
  const cria_text* stop_strings;
  size_t num_stop_strings;
  const cria_logit_bias* logit_bias;  // The addends of one token add up.
  size_t num_logit_bias;
  // CRIA_CONSTRAINT_...: what each answer must match. It holds from the first token, so that a
  // model that reasons before its answers does not. If the text must end within `max_tokens` or the
  // context, it is led to an end that matches. The model must have been loaded with
  // max_constraints. A constraint that is wrong or not supported is an error of the call that
  // generates.
  int32_t constraint_kind;
  int32_t reserved;  // Must be 0.
  const char* constraint;
  size_t constraint_bytes;
  float presence_penalty;   // Subtracted from the logits of recent tokens; 0: off.
  float frequency_penalty;  // Subtracted once for each time that a token is recent; 0: off.
  // Choose among the tokens whose information is nearest to the entropy and whose probabilities
  // reach p; 0 or 1: all.
  float typical_p;
  // XTC: with this probability, excludes all tokens at least as likely as the threshold but the
  // least likely of them; 0: off.
  float xtc_probability;
  float xtc_threshold;  // 0: 0.1.
  // DRY: a token that makes a repetition of n tokens longer, where n is at least
  // dry_allowed_length, has dry_multiplier * dry_base^(n - dry_allowed_length) subtracted from its
  // logit; 0: off.
  float dry_multiplier;
  float dry_base;               // 0: 1.75.
  uint32_t dry_allowed_length;  // 0: 2.
  uint32_t dry_penalty_last_n;  // How many tokens are searched; 0: the whole context.
  // Not 0: repetitions end at no text. Otherwise, they end at each of these texts; without any, at
  // line ends, colons, quotation marks and asterisks.
  int32_t dry_no_sequence_breakers;
  const cria_text* dry_sequence_breakers;
  size_t num_dry_sequence_breakers;
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
   0,                                \
   NULL,                             \
   0,                                \
   NULL,                             \
   0,                                \
   CRIA_CONSTRAINT_NONE,             \
   0,                                \
   NULL,                             \
   0,                                \
   0.0f,                             \
   0.0f,                             \
   0.0f,                             \
   0.0f,                             \
   0.0f,                             \
   0.0f,                             \
   0.0f,                             \
   0,                                \
   0,                                \
   0,                                \
   NULL,                             \
   0}

// Called with the next part of the text: whole characters, followed by a zero byte that
// `text_bytes` does not count, valid during the call. Returns 0 to go on; any other value stops the
// answer, as cria_model_cancel does.
typedef int (*cria_text_callback)(const char* text, size_t text_bytes, void* data);

// A token of an answer.
typedef struct cria_token {
  size_t struct_size;  // Set by the library; fields beyond it do not exist.
  // The text that is complete with this token: whole characters, perhaps none, followed by a zero
  // byte; valid during the call. Stop strings are not removed from it.
  const char* text;
  size_t text_bytes;
  // The natural logarithm of the probability that the model gives the token, before the steps of
  // cria_generation_options.
  double log_probability;
  int32_t id;
  uint32_t index;  // 0 for the first token of the answer.
} cria_token;

// Called for each token except the one that ends the answer, before its text is passed on. Returns
// 0 to go on; any other value stops the answer after this token. With this callback, a token takes
// one exponential more for each token of the vocabulary.
typedef int (*cria_token_callback)(const cria_token* token, void* data);

// Called before a prompt is read, when the context holds `done_tokens` of its `total_tokens`, and
// after each chunk. Returns 0 to go on; any other value stops the call (CRIA_ERROR_CANCELLED). If a
// full context is read again during an answer, it is called as well, and then stops the answer.
typedef int (*cria_prompt_callback)(uint32_t done_tokens, uint32_t total_tokens, void* data);

// What a call tells while it runs. All may be NULL.
typedef struct cria_callbacks {
  size_t struct_size;
  cria_text_callback on_text;
  cria_token_callback on_token;
  cria_prompt_callback on_prompt;
  void* data;  // Passed to all of them.
} cria_callbacks;
#define CRIA_CALLBACKS_INIT {sizeof(cria_callbacks), NULL, NULL, NULL, NULL}

// Why an answer ended.
enum {
  CRIA_STOP_END = 0,           // The model ended it, or its constraint lets nothing follow.
  CRIA_STOP_MAX_TOKENS = 1,    // `max_tokens` were generated.
  CRIA_STOP_CONTEXT_FULL = 2,  // The context is full.
  CRIA_STOP_CANCELLED = 3,     // A function ..._cancel or a callback; the text so far is kept.
  CRIA_STOP_STRING = 4         // One of `stop_strings` follows.
};

typedef struct cria_result {
  size_t struct_size;
  double first_text_seconds;           // From the call to the first text; 0 if there was none.
  double total_seconds;                // The whole call.
  double prompt_tokens_per_second;     // Speed of reading the prompt; 0 if nothing was read.
  double generated_tokens_per_second;  // The model's speed, without sampling and callbacks.
  uint32_t prompt_tokens;              // Tokens of the prompt that were read.
  uint32_t reused_tokens;              // Tokens of the prompt that the context already held.
  uint32_t generated_tokens;
  uint32_t dropped_tokens;       // Dropped to make room (CRIA_WHEN_FULL_SHIFT).
  uint32_t context_used_tokens;  // In the KV cache after the call.
  int32_t stop_reason;           // CRIA_STOP_...
  // About how many times as fast drafts made generating; 1 without drafts.
  double draft_gain;
  uint32_t drafted_tokens;   // Drafts that the model checked,
  uint32_t accepted_tokens;  // and those of them that were right.
} cria_result;
#define CRIA_RESULT_INIT {sizeof(cria_result), 0, 0, 0, 0, 0, 0, 0, 0, 0, CRIA_STOP_END, 0, 0, 0}

// Continues a text. `options` may be NULL for the defaults; `on_text` and `result` may be NULL. If
// it is stopped while the prompt is read, it fails with CRIA_ERROR_CANCELLED.
CRIA_API cria_status cria_complete(cria_model* model, const char* prompt,
                                   const cria_generation_options* options,
                                   cria_text_callback on_text, void* data, cria_result* result);
// Completes a prompt of `prompt_bytes` bytes, with more callbacks. `callbacks` may be NULL.
CRIA_API cria_status cria_complete_text(cria_model* model, const char* prompt, size_t prompt_bytes,
                                        const cria_generation_options* options,
                                        const cria_callbacks* callbacks, cria_result* result);

// Reads a prompt and writes the logits of the token after it, one for each token of the vocabulary,
// to `logits`. `*num_logits` is set to their number; if `capacity` is less, the function returns
// CRIA_ERROR_OUT_OF_RANGE, and if `logits` is NULL, nothing is read. `parse_special`: as in
// cria_generation_options. Of the callbacks, which may be NULL, only on_prompt is used.
CRIA_API cria_status cria_get_logits(cria_model* model, const char* prompt, size_t prompt_bytes,
                                     int parse_special, const cria_callbacks* callbacks,
                                     float* logits, size_t capacity, size_t* num_logits);

// Writes the embedding of a text to `embedding`: its pooled hidden states with a Euclidean norm of
// 1, so that the product of two embeddings is the cosine of their angle. The model file says how
// they are pooled; if it does not, the last token's is taken. Names of special tokens in the text
// are these tokens. `*num_dimensions` is set to the size of an embedding; if `capacity` is less,
// the function returns CRIA_ERROR_OUT_OF_RANGE, and if `embedding` is NULL, nothing is read. Texts
// of several threads run together, and none stays in the context. Of the callbacks, which may be
// NULL, only on_prompt is used.
CRIA_API cria_status cria_embed(cria_model* model, const char* text, size_t text_bytes,
                                const cria_callbacks* callbacks, float* embedding, size_t capacity,
                                size_t* num_dimensions);

// ---- Chats ----

// A model may have any number of chats, of which `num_sequences` run at the same time. A chat that
// is not answering keeps its place in the context until others need the room; then its messages are
// read again. Chats that begin alike, as with the same system prompt, share what was read. A date
// that the chat template writes is that of the chat's first answer.
typedef struct cria_chat cria_chat;

// `system_prompt` may be NULL or "" for none, `options` NULL for the defaults. `*chat` is NULL on
// failure.
CRIA_API cria_status cria_chat_create(cria_model* model, const char* system_prompt,
                                      const cria_generation_options* options, cria_chat** chat);
// A chat that goes on from these messages. Those of the role system (or developer) at the beginning
// are its system prompt. A role that the chat template refuses is an error of the first answer.
CRIA_API cria_status cria_chat_create_from_messages(cria_model* model, const cria_message* messages,
                                                    size_t num_messages,
                                                    const cria_generation_options* options,
                                                    cria_chat** chat);
// Must not be called while another call uses the chat. Allowed before and after its model is freed.
CRIA_API void cria_chat_free(cria_chat* chat);

// Sets the options from the next message on; the random numbers start again at the seed.
CRIA_API cria_status cria_chat_set_options(cria_chat* chat, const cria_generation_options* options);
// Sets variables of the chat template from the next message on, such as `tools` or
// `enable_thinking`, which is true or false: a JSON object with their names and values, or "" for
// none. Their strings are only text, as messages are.
CRIA_API cria_status cria_chat_set_variables(cria_chat* chat, const char* json, size_t json_bytes);

// Answers a message and keeps both. If it fails, the chat is as it was before the message, except
// for turns that were dropped from a full context. Stopping it while the message is read is a
// failure (CRIA_ERROR_CANCELLED). If the heap is exhausted during the call
// (CRIA_ERROR_OUT_OF_MEMORY), the chat must be reset. The same arguments may be NULL as in
// cria_complete.
CRIA_API cria_status cria_chat_send(cria_chat* chat, const char* message,
                                    cria_text_callback on_text, void* data, cria_result* result);
// Answers a message of any role except assistant, with more callbacks. If `message` is
// NULL, answers the last message, which must not be an answer. `callbacks` may be NULL.
CRIA_API cria_status cria_chat_answer(cria_chat* chat, const cria_message* message,
                                      const cria_callbacks* callbacks, cria_result* result);
// Replaces the answer at the end by another one, with the next random numbers. If it fails, the old
// one is kept.
CRIA_API cria_status cria_chat_regenerate(cria_chat* chat, const cria_callbacks* callbacks,
                                          cria_result* result);

// Writes the chat to a file: its messages, the variables of its template, and the keys and values
// of the messages in the context, which make up most of the file. The file replaces an older one
// when it is complete, and only its owner may read it.
CRIA_API cria_status cria_chat_save(cria_chat* chat, const char* path);
// A chat that goes on where the saved one was. The file must be of the same model
// (CRIA_ERROR_UNSUPPORTED), and if anything in it is damaged, it is refused
// (CRIA_ERROR_INVALID_FILE). `*is_context_restored`, which may be NULL, is set to 0 if its keys and
// values cannot be used, for example because of another kv_type: then the first answer reads the
// messages again. `options` and `*chat` are those of cria_chat_create.
CRIA_API cria_status cria_chat_load(cria_model* model, const char* path,
                                    const cria_generation_options* options, cria_chat** chat,
                                    int* is_context_restored);

// Stops the call under way on this chat as cria_model_cancel does or, if there is none, the next
// one: every call on it is stopped until cria_chat_clear_cancel. Any thread; allowed in callbacks
// and signal handlers.
CRIA_API void cria_chat_cancel(cria_chat* chat);
CRIA_API void cria_chat_clear_cancel(cria_chat* chat);

// Drops everything except the system prompt.
CRIA_API cria_status cria_chat_reset(cria_chat* chat);
// Drops the last turn: the last message of the role user, with those of that role right before it,
// and everything after it.
CRIA_API cria_status cria_chat_drop_last_turn(cria_chat* chat);

// The messages that were not dropped from a full context. The texts end with a zero byte that their
// lengths do not count, and are valid until the next call that changes the chat. Must not be called
// while another call uses the chat.
CRIA_API size_t cria_chat_num_messages(const cria_chat* chat);
CRIA_API cria_status cria_chat_get_message(const cria_chat* chat, size_t index,
                                           cria_message* message);

// Reads the messages, with the beginning of an answer unless the last one is an answer, and writes
// the logits of the token after them, as cria_get_logits does.
CRIA_API cria_status cria_chat_get_logits(cria_chat* chat, const cria_callbacks* callbacks,
                                          float* logits, size_t capacity, size_t* num_logits);

// The tokens that the chat takes in the context, as of its last piece of text. Any thread.
CRIA_API uint32_t cria_chat_context_used(const cria_chat* chat);
// Whether turns were dropped from a full context. Must not be called while another call uses the
// chat.
CRIA_API int cria_chat_has_forgotten(const cria_chat* chat);

// What the chat template makes of messages, without running the model. `variables`: as in
// cria_chat_set_variables. If `add_generation_prompt` is not 0, the text ends with the beginning of
// an answer. `text`, `capacity` and `*text_bytes` are those of cria_detokenize. Any thread.
CRIA_API cria_status cria_render_messages(const cria_model* model, const cria_message* messages,
                                          size_t num_messages, const char* variables,
                                          size_t variables_bytes, int add_generation_prompt,
                                          char* text, size_t capacity, size_t* text_bytes);

// ---- Tokens ----

// Most models have tokens for every byte. If a vocabulary lacks one, as some lack rare control
// characters, and has no unknown token either, it is left out of every text that the model reads.

// The tokens of a text. `*num_tokens` is set to their number. If `capacity` is less, nothing is
// written and the function returns CRIA_ERROR_OUT_OF_RANGE; if `tokens` is NULL, they are only
// counted. `add_special`: begin with the BOS token if the model wants it. `parse_special`: as in
// cria_generation_options. Any thread, as the next functions.
CRIA_API cria_status cria_tokenize(const cria_model* model, const char* text, int add_special,
                                   int parse_special, int32_t* tokens, size_t capacity,
                                   size_t* num_tokens);
CRIA_API cria_status cria_tokenize_text(const cria_model* model, const char* text,
                                        size_t text_bytes, int add_special, int parse_special,
                                        int32_t* tokens, size_t capacity, size_t* num_tokens);
// The text of tokens: valid UTF-8 without control tokens. `*text_bytes` is set to its length
// without the final zero byte; `capacity` must be larger. If `text` is NULL, the bytes are only
// counted.
CRIA_API cria_status cria_detokenize(const cria_model* model, const int32_t* tokens,
                                     size_t num_tokens, char* text, size_t capacity,
                                     size_t* text_bytes);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}  // extern "C"
#endif
