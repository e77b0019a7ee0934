// Fields of other servers that nothing here implements: which are refused by name, and which are
// ignored.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using UnsupportedFieldsTest = ApiTest;

// Fields of the four APIs that would change the answer, and values with which they change nothing.
TEST_F(UnsupportedFieldsTest, FieldsThatAreNotImplementedByName) {
  struct Unsupported {
    const char* field;
    const char* value;
    const char* neutral = "null";
  };
  // Steps of the sampler, which ollama has in its options.
  const std::vector<Unsupported> steps = {{"tfs_z", "0.5", "1"},
                                          {"top_n_sigma", "1.5", "-1"},
                                          {"mirostat", "2", "0"},
                                          {"dynatemp_range", "0.5", "0"},
                                          {"adaptive_target", "0.5", "-1"},
                                          {"no_repeat_ngram_size", "3", "0"},
                                          {"penalty_alpha", "0.6", "0.0"},
                                          {"guidance_scale", "1.5", "1.0"},
                                          {"do_sample", "false", "true"},
                                          {"min_keep", "3", "0"},
                                          {"penalize_newline", "false", "true"},
                                          {"penalize_nl", "false", "true"},
                                          {"samplers", R"(["top_k"])", "\"\""}};
  std::vector<Unsupported> both = {{"use_beam_search", "true", "false"},
                                   {"best_of", "2", "1"},
                                   {"length_penalty", "2.00", "1.0"},
                                   {"min_tokens", "50", "0"},
                                   {"stop_token_ids", "[1]", "[]"},
                                   {"allowed_token_ids", "[1]", "[]"},
                                   {"bad_words", R"(["x"])", "[]"},
                                   {"include_stop_str_in_output", "true", "false"},
                                   {"skip_special_tokens", "false", "true"},
                                   {"truncate_prompt_tokens", "5"},
                                   {"prompt_logprobs", "0"},
                                   {"prompt_embeds", "\"x\""},
                                   {"logits_processors", R"(["x"])", "[]"},
                                   {"return_tokens_as_token_ids", "true", "false"},
                                   {"return_token_ids", "true", "false"},
                                   {"guided_whitespace_pattern", "\"x\""},
                                   {"structural_tag", "{}"},
                                   {"vllm_xargs", R"({"a": 1})", "{}"},
                                   {"regex", "\"a\""},
                                   {"ebnf", "\"root ::= 'a'\""},
                                   {"stop_regex", "\"a\"", "[]"},
                                   {"no_stop_trim", "true", "false"},
                                   {"custom_logit_processor", "\"x\""},
                                   {"custom_params", R"({"a": 1})", "{}"},
                                   {"lora_path", "\"x\""},
                                   {"separate_reasoning", "false", "true"},
                                   {"return_hidden_states", "true", "false"},
                                   {"thinking", R"({"type": "disabled"})"},
                                   {"n_cmpl", "2", "1"},
                                   {"n_indent", "2", "0"},
                                   {"t_max_prompt_ms", "5", "-1"},
                                   {"t_max_predict_ms", "5", "-1"},
                                   {"post_sampling_probs", "true", "false"},
                                   {"return_tokens", "true", "false"},
                                   {"response_fields", R"(["content"])", "[]"},
                                   {"grammar_lazy", "true", "false"},
                                   {"grammar_triggers", "[{}]", "[]"},
                                   {"preserved_tokens", R"(["x"])", "[]"},
                                   {"thinking_forced_open", "true", "false"},
                                   {"lora", R"([{"id": 0}])", "[]"},
                                   {"image_data", "[{}]", "[]"},
                                   {"multimodal_data", R"(["x"])", "[]"},
                                   {"suffix", "\"x\"", "\"\""}};
  both.insert(both.end(), steps.begin(), steps.end());
  std::vector<Unsupported> chat = {{"functions", "[{}]", "[]"},
                                   {"function_call", "\"f\"", "\"auto\""},
                                   {"modalities", R"(["audio"])", R"(["text"])"},
                                   {"audio", "{}"},
                                   {"prediction", "{}"},
                                   {"web_search_options", "{}"},
                                   {"verbosity", "\"high\"", "\"medium\""},
                                   {"reasoning_format", "\"none\"", "\"auto\""},
                                   {"include_reasoning", "false", "true"},
                                   {"parse_tool_calls", "false", "true"},
                                   {"add_generation_prompt", "false", "true"},
                                   {"add_special_tokens", "true", "false"},
                                   {"chat_template", "\"x\""},
                                   {"documents", "[{}]", "[]"},
                                   {"echo", "true", "false"}};
  std::vector<Unsupported> responses = {{"previous_response_id", "\"resp_1\""},
                                        {"conversation", R"({"id": "conv_1"})"},
                                        {"prompt", R"({"id": "pmpt_1"})"},
                                        {"background", "true", "false"},
                                        {"context_management", "[{}]", "[]"},
                                        {"truncation", "\"auto\"", "\"disabled\""},
                                        {"moderation", "{}"},
                                        {"messages", "[]"},
                                        {"response_format", R"({"type": "text"})"},
                                        {"logprobs", "true", "false"},
                                        {"n", "2", "1"},
                                        {"max_tokens", "5"},
                                        {"max_completion_tokens", "5"},
                                        {"n_predict", "5"},
                                        {"n_probs", "1", "0"},
                                        {"continue_final_message", "true", "false"}};
  responses.insert(responses.end(), chat.begin(), chat.end());
  responses.insert(responses.end(), both.begin(), both.end());
  std::vector<Unsupported> completion = {
      {"add_special_tokens", "false", "true"}, {"thinking_token_budget", "5", "-1"},
      {"thinking_budget", "5", "-1"},          {"max_thinking_tokens", "5", "-1"},
      {"reasoning_budget", "0", "-1"},         {"reasoning_budget_tokens", "0", "-1"},
      {"thinking_budget_tokens", "0", "-1"}};
  chat.insert(chat.end(), both.begin(), both.end());
  completion.insert(completion.end(), both.begin(), both.end());
  const auto expect = [&](const char* path, Json request, const std::string& where,
                          const std::vector<Unsupported>& fields) {
    for (const Unsupported& tested : fields) {
      SCOPED_TRACE(std::string(path) + " " + tested.field);
      Json changed = request;
      Json& place = where.empty() ? changed : changed[where];
      place[tested.field] = Json::parse(tested.value);
      const auto refused = Post(path, changed);
      EXPECT_EQ(refused->status, 400);
      const Json error = refused->json()["error"];
      const std::string name = (where.empty() ? "" : where + ".") + tested.field;
      if (error.is_object()) {
        EXPECT_EQ(error["param"], name);
        EXPECT_EQ(error["code"], "unsupported_parameter");
      }
      EXPECT_THAT(std::string(error.is_object() ? error["message"] : error),
                  testing::StartsWith(name + " "));
      place[tested.field] = Json::parse(tested.neutral);
      EXPECT_EQ(Post(path, changed)->status, 200);
    }
  };
  expect("/v1/chat/completions", Chat("Who?", 1), "", chat);
  const Json response = {{"input", "Who?"}, {"max_output_tokens", 1}};
  expect("/v1/responses", response, "", responses);
  expect("/v1/responses", response, "reasoning",
         {{"summary", "\"detailed\"", "\"auto\""},
          {"generate_summary", "\"concise\"", "\"auto\""},
          {"context", "\"all_turns\"", "\"auto\""},
          {"mode", "\"pro\"", "\"standard\""}});
  expect("/v1/completions", {{"prompt", "a"}, {"max_tokens", 1}}, "", completion);
  const Json ollama = {{"model", "tiny"},
                       {"messages", {{{"role", "user"}, {"content", "Who?"}}}},
                       {"prompt", "Who?"},
                       {"stream", false},
                       {"options", {{"num_predict", 1}}}};
  expect("/api/chat", ollama, "options", steps);
  expect("/api/generate", ollama, "options", steps);
  expect("/api/chat", ollama, "", {{"_debug_render_only", "true", "false"}});
  expect("/api/generate", ollama, "",
         {{"suffix", "\"x\"", "\"\""},
          {"images", R"(["x"])", "[]"},
          {"template", "\"x\"", "\"\""},
          {"context", "[1]", "[]"},
          {"_debug_render_only", "true", "false"},
          {"width", "64", "0"},
          {"height", "64", "0"},
          {"steps", "4", "0"}});
}

// What the README of the API lists as harmless.
TEST_F(UnsupportedFieldsTest, FieldsThatChangeNoAnswerAreIgnored) {
  const std::vector<const char*> fields = {"user",
                                           "metadata",
                                           "store",
                                           "service_tier",
                                           "safety_identifier",
                                           "prompt_cache_key",
                                           "prompt_cache_retention",
                                           "max_tool_calls",
                                           "cache_prompt",
                                           "n_cache_reuse",
                                           "id_slot",
                                           "n_keep",
                                           "n_discard",
                                           "timings_per_token",
                                           "return_progress",
                                           "speculative.n_max",
                                           "speculative.n_min",
                                           "speculative.p_min",
                                           "dynatemp_exponent",
                                           "mirostat_tau",
                                           "mirostat_eta",
                                           "adaptive_decay",
                                           "priority",
                                           "request_id",
                                           "cache_salt",
                                           "kv_transfer_params",
                                           "mm_processor_kwargs",
                                           "media_io_kwargs",
                                           "spaces_between_special_tokens",
                                           "guided_decoding_backend"};
  Json chat = Chat("Who?", 3);
  Json completion = {{"prompt", "a"}, {"max_tokens", 3}, {"temperature", 0}};
  const Json chat_answer = Post("/v1/chat/completions", chat)->json()["choices"];
  const Json completion_answer = Post("/v1/completions", completion)->json()["choices"];
  for (const char* const field : fields) chat[field] = completion[field] = "x";
  EXPECT_EQ(Post("/v1/chat/completions", chat)->json()["choices"], chat_answer);
  EXPECT_EQ(Post("/v1/completions", completion)->json()["choices"], completion_answer);
  Json ollama = {{"messages", chat["messages"]},
                 {"stream", false},
                 {"options", {{"num_predict", 3}, {"temperature", 0}}}};
  const Json ollama_answer = Post("/api/chat", ollama)->json()["message"];
  for (const char* const field : {"keep_alive", "truncate", "shift"}) ollama[field] = true;
  for (const char* const field :
       {"num_keep", "numa", "num_batch", "num_gpu", "main_gpu", "use_mmap", "use_mlock",
        "num_thread", "low_vram", "f16_kv", "vocab_only", "logits_all", "mirostat_tau",
        "mirostat_eta", "draft_num_predict"}) {
    ollama["options"][field] = 1;
  }
  EXPECT_EQ(Post("/api/chat", ollama)->json()["message"], ollama_answer);
}

}  // namespace
}  // namespace cria::server
