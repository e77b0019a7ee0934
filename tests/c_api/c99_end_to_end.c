/* The whole API from C: c_api_c99 MODEL FOLDER_FOR_PACKED_WEIGHTS. Exits 1 at the first thing that is
   not as it should be. */

#include <cria/cria.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, cria_error_message());     \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)
#define CHECK_OK(call) CHECK((call) == CRIA_OK)

struct answer {
  char text[4096];
  size_t bytes;
};

static int gather(const char* text, size_t text_bytes, void* data) {
  struct answer* answer = data;
  CHECK(strlen(text) == text_bytes);
  CHECK(answer->bytes + text_bytes < sizeof answer->text);
  memcpy(answer->text + answer->bytes, text, text_bytes + 1);
  answer->bytes += text_bytes;
  return 0;
}

static int see_progress(uint64_t done_bytes, uint64_t total_bytes, void* data) {
  uint64_t* last = data;
  CHECK(done_bytes > *last && done_bytes <= total_bytes);
  *last = done_bytes;
  return 0;
}

static void see_notice(const char* sentence, void* data) {
  (void)data;
  CHECK(strlen(sentence) > 0);
}

static void plan_memory(const cria_model_options* options) {
  cria_plan* plan = NULL;
  cria_plan_totals totals = CRIA_PLAN_TOTALS_INIT;
  cria_model_info info = CRIA_MODEL_INFO_INIT;
  uint64_t private_bytes = 0, mapped_bytes = 0;
  size_t i;
  CHECK_OK(cria_plan_create(options, &plan));
  CHECK_OK(cria_plan_get_totals(plan, &totals));
  CHECK_OK(cria_plan_get_info(plan, &info));
  CHECK_OK(cria_plan_check(plan));
  CHECK(info.context_tokens == 256 && info.max_context_tokens == 512);
  for (i = 0; i < cria_plan_num_parts(plan); ++i) {
    uint64_t bytes = 0;
    int is_mapped = -1;
    CHECK(cria_plan_get_part(plan, i, &bytes, &is_mapped) != NULL);
    *(is_mapped ? &mapped_bytes : &private_bytes) += bytes;
  }
  CHECK(private_bytes == totals.private_bytes && mapped_bytes == totals.mapped_bytes);
  CHECK(totals.peak_bytes >= private_bytes + mapped_bytes);
  cria_plan_free(plan);
}

static void converse(cria_model* model) {
  cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
  cria_result result = CRIA_RESULT_INIT;
  struct answer answer = {{0}, 0};
  cria_chat* chat = NULL;
  options.temperature = 0.0f;
  options.max_tokens = 60;
  CHECK_OK(cria_chat_create(model, NULL, &options, &chat));
  CHECK_OK(cria_chat_send(chat, "Hello! Who are you?", gather, &answer, &result));
  CHECK(strstr(answer.text, "Cria") != NULL);
  CHECK(result.stop_reason == CRIA_STOP_END);
  CHECK(result.prompt_tokens > 0 && result.generated_tokens > 0);
  CHECK(result.context_used_tokens == result.prompt_tokens + result.generated_tokens);
  CHECK(cria_chat_context_used(chat) == result.context_used_tokens);
  CHECK(result.first_text_seconds > 0.0 && result.first_text_seconds <= result.total_seconds);
  CHECK(result.prompt_tokens_per_second > 0.0 && result.generated_tokens_per_second > 0.0);
  CHECK(!cria_chat_has_forgotten(chat));
  CHECK_OK(cria_chat_send(chat, "Thank you. Goodbye!", NULL, NULL, NULL));
  options.max_tokens = 1;
  CHECK_OK(cria_chat_set_options(chat, &options));
  CHECK_OK(cria_chat_send(chat, "Hello!", NULL, NULL, &result));
  CHECK(result.stop_reason == CRIA_STOP_MAX_TOKENS && result.generated_tokens == 1);
  CHECK_OK(cria_chat_reset(chat));
  CHECK(cria_chat_context_used(chat) == 0);
  cria_chat_free(chat);
}

static int see_token(const cria_token* token, void* data) {
  CHECK(token->struct_size == sizeof(cria_token) && token->log_probability <= 0.0);
  CHECK(token->index == *(uint32_t*)data);
  ++*(uint32_t*)data;
  return 0;
}

static void use_messages(cria_model* model) {
  const cria_message messages[] = {
      {"system", "You are a friendly assistant.", CRIA_ZERO_TERMINATED, CRIA_ZERO_TERMINATED},
      {"user", "Hello! Who are you? And", 4, 19}};
  const cria_text stop = {" baby", 5};
  cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
  cria_callbacks callbacks = CRIA_CALLBACKS_INIT;
  cria_result result = CRIA_RESULT_INIT;
  cria_message message;
  uint32_t num_tokens = 0;
  cria_chat* chat = NULL;
  char text[256];
  size_t text_bytes = 0;
  options.temperature = 0.0f;
  options.stop_strings = &stop;
  options.num_stop_strings = 1;
  callbacks.on_token = see_token;
  callbacks.data = &num_tokens;
  CHECK_OK(cria_render_messages(model, messages, 2, NULL, 0, 1, text, sizeof text, &text_bytes));
  CHECK(text_bytes == strlen(text) && strstr(text, "Who are you?<|im_end|>") != NULL);
  CHECK_OK(cria_chat_create_from_messages(model, messages, 2, &options, &chat));
  CHECK_OK(cria_chat_answer(chat, NULL, &callbacks, &result));
  CHECK(result.stop_reason == CRIA_STOP_STRING && result.generated_tokens == num_tokens);
  CHECK(cria_chat_num_messages(chat) == 3);
  CHECK_OK(cria_chat_get_message(chat, 2, &message));
  CHECK(strcmp(message.role, "assistant") == 0 && strstr(message.content, "baby") == NULL);
  CHECK_OK(cria_chat_drop_last_turn(chat));
  CHECK(cria_chat_num_messages(chat) == 1);
  cria_chat_cancel(chat);
  CHECK(cria_chat_send(chat, "Hello!", NULL, NULL, NULL) == CRIA_ERROR_CANCELLED);
  cria_chat_clear_cancel(chat);
  cria_chat_free(chat);
}

static void use_tokens(cria_model* model) {
  int32_t tokens[64];
  char text[64];
  size_t num_tokens = 0, text_bytes = 0;
  CHECK_OK(cria_tokenize(model, "a baby llama", 0, 0, NULL, 0, &num_tokens));
  CHECK(num_tokens > 0 && num_tokens <= 64);
  CHECK_OK(cria_tokenize(model, "a baby llama", 0, 0, tokens, 64, &num_tokens));
  CHECK_OK(cria_detokenize(model, tokens, num_tokens, text, sizeof text, &text_bytes));
  CHECK(strcmp(text, "a baby llama") == 0 && text_bytes == strlen(text));
}

int main(int argc, char** argv) {
  cria_model_options options = CRIA_MODEL_OPTIONS_INIT;
  cria_model_info info = CRIA_MODEL_INFO_INIT;
  cria_result result = CRIA_RESULT_INIT;
  struct answer answer = {{0}, 0};
  cria_model* model = NULL;
  uint64_t packed_bytes = 0;
  CHECK(argc == 3);
  CHECK(strlen(cria_version()) > 0);
  CHECK(cria_model_load(&options, &model) == CRIA_ERROR_USAGE && model == NULL);
  CHECK(strlen(cria_error_message()) > 0);

  options.path = argv[1];
  options.pack_folder = argv[2];
  options.context_tokens = 256;
  options.num_threads = 2;
  options.on_progress = see_progress;
  options.on_notice = see_notice;
  options.callback_data = &packed_bytes;
  plan_memory(&options);
  CHECK_OK(cria_model_load(&options, &model));
  CHECK_OK(cria_model_get_info(model, &info));
  CHECK(strcmp(info.name, "cria-demo") == 0 && info.num_parameters > 3000000);
  CHECK(info.num_threads == 2 && info.num_batch_threads == 2 && info.has_chat_template);

  converse(model);
  use_messages(model);
  use_tokens(model);
  CHECK_OK(cria_complete(model, "Cria is", NULL, gather, &answer, &result));
  CHECK(answer.bytes > 0);
  cria_model_cancel(model);
  cria_model_free(model);

  cria_chat_free(NULL);
  cria_model_free(NULL);
  cria_plan_free(NULL);
  return 0;
}
