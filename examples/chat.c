/* Asks a model one question and prints the answer as it comes: chat MODEL QUESTION */

#include <cria/cria.h>
#include <stdio.h>

static int print_text(const char* text, size_t text_bytes, void* data) {
  (void)data;
  /* Not 0 stops the answer: nobody listens any more. */
  return fwrite(text, 1, text_bytes, stdout) != text_bytes || fflush(stdout) != 0;
}

int main(int argc, char** argv) {
  cria_model_options options = CRIA_MODEL_OPTIONS_INIT;
  cria_result result = CRIA_RESULT_INIT;
  cria_model* model = NULL;
  cria_chat* chat = NULL;
  cria_status status;
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL QUESTION\n", argv[0]);
    return 2;
  }
  options.path = argv[1];
  status = cria_model_load(&options, &model);
  if (status == CRIA_OK) status = cria_chat_create(model, NULL, NULL, &chat);
  if (status == CRIA_OK) status = cria_chat_send(chat, argv[2], print_text, NULL, &result);
  if (status != CRIA_OK) fprintf(stderr, "%s\n", cria_error_message());
  if (status == CRIA_OK) printf("\n(%.0f tokens/s)\n", result.generated_tokens_per_second);
  cria_chat_free(chat);
  cria_model_free(model);
  return status == CRIA_OK ? 0 : 1;
}
