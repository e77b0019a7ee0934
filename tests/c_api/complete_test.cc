// Continuing a prompt.

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <limits>
#include <string>

#include "c_api/c_api_fixture.h"

namespace cria_test {
namespace {

class CompleteTest : public testing::Test {
 protected:
  const ModelPtr model_ = LoadModel();
};

TEST_F(CompleteTest, ContinuesAPrompt) {
  const Answer answer = Complete(model_, "Hello! I am");
  ASSERT_EQ(answer.status, CRIA_OK) << cria_error_message();
  EXPECT_FALSE(answer.text.empty());
  EXPECT_EQ(answer.text, Complete(model_, "Hello! I am").text);
}

TEST_F(CompleteTest, ReusesWhatTheContextHolds) {
  const Answer first = Complete(model_, "Hello! I am");
  EXPECT_EQ(first.result.reused_tokens, 0u);
  const Answer again = Complete(model_, "Hello! I am");
  EXPECT_EQ(again.result.prompt_tokens, 1u);
  EXPECT_EQ(again.result.reused_tokens + 1, first.result.prompt_tokens);
}

TEST_F(CompleteTest, TemplatesAreTheCallersWhereSpecialTokensAreRead) {
  cria_generation_options options = Greedy();
  options.parse_special = 1;
  const char* const prompt =
      "<|im_start|>user\nHello! Who are you?<|im_end|>\n<|im_start|>assistant\n";
  const Answer meant = Complete(model_, prompt, options);
  EXPECT_EQ(meant.text, "Hello! I am Cria, a baby llama. What would you like to talk about?");
  EXPECT_EQ(meant.result.stop_reason, CRIA_STOP_END);
  options.parse_special = 0;
  const Answer written = Complete(model_, prompt, options);
  EXPECT_GT(written.result.prompt_tokens, meant.result.prompt_tokens);
}

TEST_F(CompleteTest, StopsAfterAsManyTokensAsWereAskedFor) {
  cria_generation_options options = Greedy();
  for (const uint32_t most : {1u, 2u, 5u}) {
    options.max_tokens = most;
    const Answer answer = Complete(model_, "Hello! I am", options);
    EXPECT_EQ(answer.result.generated_tokens, most);
    EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_MAX_TOKENS);
  }
}

TEST_F(CompleteTest, AFullContextEndsItOrShifts) {
  cria_model_options small = DemoOptions();
  small.context_tokens = 32;
  const ModelPtr model = LoadModel(small);
  // The demo model's stop tokens are forbidden, so that its text has no end.
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  const cria_logit_bias no_end[] = {{2, kForbidden}, {4, kForbidden}};
  cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
  options.logit_bias = no_end;
  options.num_logit_bias = std::size(no_end);
  options.max_tokens = 100;
  const Answer stopped = Complete(model, "llama", options);
  EXPECT_EQ(stopped.result.stop_reason, CRIA_STOP_CONTEXT_FULL);
  EXPECT_EQ(stopped.result.context_used_tokens, 32u);
  EXPECT_EQ(stopped.result.dropped_tokens, 0u);

  options.when_full = CRIA_WHEN_FULL_SHIFT;
  const Answer shifted = Complete(model, "llama", options);
  EXPECT_EQ(shifted.result.generated_tokens, 100u);
  EXPECT_EQ(shifted.result.stop_reason, CRIA_STOP_MAX_TOKENS);
  EXPECT_GT(shifted.result.dropped_tokens, 60u);

  options.keep_tokens = 32;
  ExpectFailure(Complete(model, "llama", options).status, CRIA_ERROR_USAGE, "keep_tokens");
}

TEST_F(CompleteTest, DraftsChangeNoText) {
  cria_generation_options generation = Greedy();
  generation.max_tokens = 40;
  const Answer without = Complete(LoadModel(), "llama llama llama", generation);
  EXPECT_EQ(without.result.drafted_tokens, 0u);
  EXPECT_EQ(without.result.draft_gain, 1.0);
  std::string notice;
  cria_model_options options = DemoOptions();
  options.draft_ngram_tokens = 2;
  options.draft_model_path = options.path;
  options.max_draft_tokens = 4;
  options.min_draft_tokens = 1;
  options.callback_data = &notice;
  options.on_notice = [](const char* sentence, void* data) {
    *static_cast<std::string*>(data) += sentence;
  };
  const Answer with = Complete(LoadModel(options), "llama llama llama", generation);
  EXPECT_EQ(with.text, without.text);
  EXPECT_EQ(with.result.generated_tokens, without.result.generated_tokens);
  EXPECT_LE(with.result.accepted_tokens, with.result.drafted_tokens);
  if (notice.find("no drafts") == std::string::npos) {
    EXPECT_GT(with.result.accepted_tokens, 0u);
  }
  options.max_draft_tokens = 100;
  cria_model* refused = nullptr;
  ExpectFailure(cria_model_load(&options, &refused), CRIA_ERROR_USAGE, "the longest draft is 100");
  // A program that was compiled before there were drafts.
  options.struct_size = offsetof(cria_model_options, draft_model_path);
  EXPECT_EQ(Complete(LoadModel(options), "llama llama llama", generation).text, without.text);
}

TEST_F(CompleteTest, APromptThatDoesNotFitIsRefused) {
  std::string much;
  for (int i = 0; i < 600; ++i) much += "llama ";
  ExpectFailure(
      Complete(model_, much.c_str()).status, CRIA_ERROR_OUT_OF_RANGE,
      "the prompt has more than 512 tokens, which do not fit into the context; shorten it "
      "or load the model with more context_tokens");
}

TEST_F(CompleteTest, TimesAddUp) {
  const Answer answer = Complete(model_, "Hello! I am");
  const cria_result& result = answer.result;
  EXPECT_GT(result.first_text_seconds, 0.0);
  EXPECT_LE(result.first_text_seconds, result.total_seconds);
  EXPECT_GE(result.total_seconds, result.prompt_tokens / result.prompt_tokens_per_second);
}

}  // namespace
}  // namespace cria_test
