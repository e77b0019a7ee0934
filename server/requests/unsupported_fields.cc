#include "server/requests/unsupported_fields.h"

#include <span>

namespace cria::server {
namespace {

struct UnsupportedField {
  const char* name;
  const char* neutral = "[]";  // The values that change nothing, as a JSON list.
  const char* advice = "";     // What a client is told; "": to leave the field out.
};

constexpr const char* kOnlyText = "is not supported: this model reads only texts";
constexpr const char* kUseChoices = "is not supported unless it is 1; n is the number of choices";

constexpr UnsupportedField kSamplingFields[] = {
    {"tfs_z", "[1]", "is not supported unless it is 1"},
    {"top_n_sigma", "[-1, 0]", "is not supported unless it is 0"},
    {"mirostat", "[0]", "is not supported unless it is 0"},
    {"dynatemp_range", "[0]", "is not supported unless it is 0"},
    {"adaptive_target", "[-1]", "is not supported unless it is -1"},
    {"no_repeat_ngram_size", "[0]", "is not supported unless it is 0"},
    {"penalty_alpha", "[0]", "is not supported unless it is 0"},
    {"guidance_scale", "[1]", "is not supported unless it is 1"},
    {"do_sample", "[true]", "is not supported unless it is true; use temperature 0"},
    {"min_keep", "[0, 1]", "is not supported unless it is 0"},
    {"penalize_newline", "[true]", "is not supported unless it is true"},
    {"penalize_nl", "[true]", "is not supported unless it is true"},
    {"samplers", R"([""])",
     "is not supported: the steps are the penalties, DRY, top_k, typical_p, top_p, min_p, XTC and "
     "temperature, and a neutral value skips one"},
};

// All of OpenAI's requests may have these.
constexpr UnsupportedField kOpenAiFields[] = {
    // vLLM's.
    {"use_beam_search", "[false]"},
    {"length_penalty", "[1]"},
    {"min_tokens", "[0]"},
    {"stop_token_ids", "[[]]", "is not supported; use stop"},
    {"allowed_token_ids", "[[]]"},
    {"bad_words", "[[]]", "is not supported; use logit_bias"},
    {"include_stop_str_in_output", "[false]"},
    {"skip_special_tokens", "[true]"},
    {"truncate_prompt_tokens"},
    {"prompt_logprobs"},
    {"prompt_embeds"},
    {"logits_processors", "[[]]"},
    {"return_tokens_as_token_ids", "[false]"},
    {"return_token_ids", "[false]"},
    {"guided_whitespace_pattern"},
    {"structural_tag"},
    {"vllm_xargs", "[{}]"},
    // SGLang's.
    {"regex", "[]", "is not supported; use guided_regex"},
    {"ebnf", "[]", "is not supported; use grammar, whose form is GBNF"},
    {"stop_regex", "[[]]", "is not supported; use stop"},
    {"no_stop_trim", "[false]"},
    {"custom_logit_processor"},
    {"custom_params", "[{}]"},
    {"lora_path"},
    {"separate_reasoning", "[true]"},
    {"return_hidden_states", "[false]"},
    // Other APIs have these.
    {"thinking", "[]", "is not supported; use enable_thinking"},
    // llama-server's.
    {"n_cmpl", "[1]", kUseChoices},
    {"n_indent", "[0]"},
    {"t_max_prompt_ms", "[0, -1]"},
    {"t_max_predict_ms", "[0, -1]"},
    {"post_sampling_probs", "[false]"},
    {"return_tokens", "[false]"},
    {"response_fields", "[[]]"},
    {"grammar_lazy", "[false]"},
    {"grammar_triggers", "[[]]"},
    {"preserved_tokens", "[[]]"},
    {"thinking_forced_open", "[false]"},
    {"lora", "[[]]"},
    {"image_data", "[[]]", kOnlyText},
    {"multimodal_data", "[[]]", kOnlyText},
};

constexpr UnsupportedField kChatFields[] = {
    {"functions", "[[]]", "is not supported; use tools"},
    {"function_call", R"(["none", "auto"])", "is not supported; use tool_choice"},
    {"modalities", R"([["text"]])", "has more than text, which is all that this model writes"},
    {"audio"},
    {"prediction"},
    {"web_search_options"},
    {"verbosity", R"(["medium"])"},
    {"reasoning_format", R"(["auto", "deepseek"])",
     "is not supported: reasoning is always apart from the answer"},
    {"include_reasoning", "[true]"},
    {"parse_tool_calls", "[true]"},
    {"add_special_tokens", "[false]"},
    {"chat_template", "[]", "is not supported; /v1/completions takes prompts in any form"},
    {"documents", "[[]]"},
    {"echo", "[false]"},
    {"suffix", R"([""])"},
};

constexpr const char* kNothingIsStored =
    "is not supported: this server stores no conversations; send all items in input";
constexpr const char* kUseMaxOutputTokens = "is not supported; use max_output_tokens";

constexpr UnsupportedField kResponsesFields[] = {
    {"previous_response_id", "[]", kNothingIsStored},
    {"conversation", "[]", kNothingIsStored},
    {"prompt", "[]", "is not supported: this server stores no prompts"},
    {"background", "[false]", "is not supported unless it is false"},
    {"context_management", "[[]]"},
    {"truncation", R"(["disabled"])", "is not supported unless it is \"disabled\""},
    {"moderation"},
    {"messages", "[]", "is not supported; use input"},
    {"response_format", "[]", "is not supported; use text.format"},
    {"logprobs", "[false]",
     "is not supported; include has \"message.output_text.logprobs\" for it"},
    {"n", "[1]", "is not supported unless it is 1"},
    {"max_tokens", "[]", kUseMaxOutputTokens},
    {"max_completion_tokens", "[]", kUseMaxOutputTokens},
    {"n_predict", "[]", kUseMaxOutputTokens},
    {"n_probs", "[0]", "is not supported; use top_logprobs"},
    {"continue_final_message", "[false]"},
    {"add_generation_prompt", "[true]"},
};

constexpr UnsupportedField kReasoningFields[] = {
    {"summary", R"(["auto"])", "is not supported unless it is \"auto\": reasoning is sent whole"},
    {"generate_summary", R"(["auto"])",
     "is not supported unless it is \"auto\": reasoning is sent whole"},
    {"context", R"(["auto"])", "is not supported unless it is \"auto\""},
    {"mode", R"(["standard"])", "is not supported unless it is \"standard\""},
};

constexpr UnsupportedField kCompletionFields[] = {
    {"thinking_token_budget", "[-1]"},   {"thinking_budget", "[-1]"},
    {"max_thinking_tokens", "[-1]"},     {"reasoning_budget", "[-1]"},
    {"reasoning_budget_tokens", "[-1]"}, {"thinking_budget_tokens", "[-1]"},
    {"add_special_tokens", "[true]"},
};

constexpr UnsupportedField kEmbeddingFields[] = {
    {"embd_normalize", "[2]", "is not supported unless it is 2"},
    {"normalize", "[true]", "is not supported unless it is true"},
    {"pooling", "[]", "is not supported: the model file says how hidden states are pooled"},
    {"messages", "[]", "is not supported; use input"},
    {"truncate_prompt_tokens"},
    {"add_special_tokens", "[true]"},
};

constexpr UnsupportedField kAnthropicFields[] = {
    {"mcp_servers", "[[]]"},
    {"container"},
    {"context_management"},
    {"output_format", "[]", "is not supported; use output_config"},
};

constexpr UnsupportedField kRerankFields[] = {
    {"max_tokens_per_doc", "[]", "is not supported; a document must fit the context"},
    {"max_chunks_per_doc", "[1]"},
    {"rank_fields", R"([[], ["text"]])"},
    {"overlap_tokens", "[0]"},
    {"truncation", "[false]", "is not supported; a document must fit the context"},
};

constexpr UnsupportedField kOllamaChatFields[] = {
    {"_debug_render_only", "[false]"},
};

constexpr UnsupportedField kOllamaGenerateFields[] = {
    {"images", "[[]]", kOnlyText},
    {"template", R"([""])", "is not supported; use raw to write the whole prompt"},
    {"context", "[[]]", "is not supported; send earlier messages to /api/chat"},
    {"_debug_render_only", "[false]"},
    {"width", "[0]"},
    {"height", "[0]"},
    {"steps", "[0]"},
};

void Refuse(const Fields& fields, std::span<const UnsupportedField> unsupported) {
  for (const UnsupportedField& field : unsupported) {
    if (!fields.Has(field.name)) continue;
    const Json neutral = Json::parse(field.neutral);
    if (fields.IsOneOf(field.name, neutral.get_ref<const Json::array_t&>())) continue;
    fields.Unsupported(field.name, {}, field.advice);
  }
}

void RefuseUnsupportedInOpenAi(const Fields& request) {
  Refuse(request, kOpenAiFields);
  const Json one = 1;
  const Json* const best_of = request.Find("best_of");
  const Json* const choices = request.Find("n");
  if (best_of != nullptr && *best_of != (choices == nullptr ? one : *choices)) {
    request.Unsupported("best_of", {}, "is not supported unless it is n");
  }
}

}  // namespace

void RefuseUnsupportedSampling(const Fields& fields) { Refuse(fields, kSamplingFields); }

void RefuseUnsupportedInChat(const Fields& request) {
  Refuse(request, kChatFields);
  RefuseUnsupportedInOpenAi(request);
}

void RefuseUnsupportedInResponses(const Fields& request) {
  Refuse(request, kResponsesFields);
  RefuseUnsupportedInChat(request);
  if (const auto reasoning = request.Object("reasoning")) Refuse(*reasoning, kReasoningFields);
}

void RefuseUnsupportedInCompletions(const Fields& request) {
  Refuse(request, kCompletionFields);
  RefuseUnsupportedInOpenAi(request);
}

void RefuseUnsupportedInEmbeddings(const Fields& request) { Refuse(request, kEmbeddingFields); }

void RefuseUnsupportedInRerank(const Fields& request) { Refuse(request, kRerankFields); }

void RefuseUnsupportedInAnthropic(const Fields& request) { Refuse(request, kAnthropicFields); }

void RefuseUnsupportedInOllamaChat(const Fields& request) { Refuse(request, kOllamaChatFields); }

void RefuseUnsupportedInOllamaGenerate(const Fields& request) {
  Refuse(request, kOllamaGenerateFields);
}

}  // namespace cria::server
