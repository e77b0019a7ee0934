#include "llm/completion.h"

#include <atomic>
#include <string>

#include "llm/conversation_fixture.h"

namespace cria {
namespace {

// The fixture's model says `answer_` after a "?", and then a stop token.
class CompletionTest : public ConversationTest {
 protected:
  CompletionTest() { template_name_ = "none"; }

  CompletionOptions Options() const { return {.generation = ConversationTest::Options()}; }

  Result<StopReason> Say(std::string_view prompt, const CompletionOptions& options) {
    pieces_.clear();
    return Complete(session_, *tokenizer_, *sampler_, prompt, options,
                    [this](std::string_view text) { pieces_.emplace_back(text); });
  }

  void ExpectEnds(std::string_view prompt, const CompletionOptions& options, StopReason expected,
                  const std::string& text) {
    const Result<StopReason> reason = Say(prompt, options);
    ASSERT_TRUE(reason) << reason.error().message();
    EXPECT_EQ(*reason, expected);
    EXPECT_EQ(heard(), text);
  }

  void ExpectRefused(std::string_view prompt, const CompletionOptions& options, ErrorCode code,
                     RemedyKind remedy) {
    const Result<StopReason> refused = Say(prompt, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), code) << refused.error().message();
    EXPECT_EQ(refused.error().remedy().kind, remedy);
    EXPECT_TRUE(pieces_.empty());
    EXPECT_TRUE(model_.calls.empty());
  }
};

TEST_F(CompletionTest, GoesOnFromThePromptToTheStopToken) {
  ExpectEnds("Who?", Options(), StopReason::kStopToken, "Hello.");
  EXPECT_EQ(session_.stats().prompt_tokens, 4u);
  EXPECT_EQ(session_.stats().generated_tokens, 6u);
  EXPECT_EQ(session_.tokens().size(), 10u);
}

TEST_F(CompletionTest, EndsAfterAsManyTokensAsWereAskedFor) {
  CompletionOptions options = Options();
  options.generation.max_tokens = 3;
  ExpectEnds("Who?", options, StopReason::kMaxTokens, "Hel");
}

TEST_F(CompletionTest, HandsOverWholeCharacters) {
  answer_ = "h\xc3\xa9!\xe2\x82";  // The last character is cut short.
  ExpectEnds("?", Options(), StopReason::kStopToken, "h\xc3\xa9!\xef\xbf\xbd");
  EXPECT_EQ(pieces_, (std::vector<std::string>{"h", "\xc3\xa9", "!", "\xef\xbf\xbd"}));
}

TEST_F(CompletionTest, ThePromptIsReadBeforeTheFirstText) {
  CompletionOptions options = Options();
  size_t calls = 0;
  options.on_prompt_read = [&] {
    ++calls;
    EXPECT_TRUE(pieces_.empty());
    EXPECT_EQ(session_.tokens().size(), 4u);
  };
  ExpectEnds("Who?", options, StopReason::kStopToken, "Hello.");
  EXPECT_EQ(calls, 1u);
  // Of one that cannot be read, nothing is said.
  EXPECT_FALSE(Say(std::string(500, 'x'), options));
  EXPECT_EQ(calls, 1u);
}

TEST_F(CompletionTest, SpecialTokensAreRecognizedUnlessThePromptIsSomebodyElses) {
  CompletionOptions options = Options();
  options.generation.max_tokens = 1;
  ASSERT_TRUE(Say("<|im_start|>?", options));
  EXPECT_EQ(model_.calls.front().tokens.front(), ByteVocabulary::kBeginTurn);
  options.parse_special = false;
  ASSERT_TRUE(Say("<|im_start|>?", options));
  EXPECT_EQ(session_.tokens().front(), ByteToken('<'));
}

TEST_F(CompletionTest, StopsWhereItIsCancelled) {
  std::atomic<bool> cancel = true;
  CompletionOptions options = Options();
  options.generation.cancel = &cancel;
  const Result<StopReason> while_reading = Say("Who?", options);
  ASSERT_FALSE(while_reading);
  EXPECT_EQ(while_reading.error().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(model_.calls.empty());

  cancel = false;
  const auto reason = Complete(session_, *tokenizer_, *sampler_, "Who?", options,
                               [&](std::string_view) { cancel = true; });
  ASSERT_TRUE(reason) << reason.error().message();
  EXPECT_EQ(*reason, StopReason::kCancelled);
  EXPECT_EQ(session_.stats().generated_tokens, 1u);
}

TEST_F(CompletionTest, WhatTheCacheHoldsIsNotRunAgain) {
  ASSERT_TRUE(Say("Who?", Options()));
  const size_t run = model_.tokens_run();
  ASSERT_TRUE(Say("Who?Hel", Options()));
  EXPECT_EQ(session_.stats().reused_tokens, 6u);
  EXPECT_EQ(heard(), "lo.");
  EXPECT_LT(model_.tokens_run() - run, 7u);
}

TEST_F(CompletionTest, AFullContextEndsTheTextOrShifts) {
  answer_ = std::string(1000, 'y');
  const size_t room = session_.context_tokens() - 4;
  CompletionOptions options = Options();
  // The last token is handed over, though it has no place in the cache.
  ExpectEnds("Who?", options, StopReason::kContextFull, std::string(room + 1, 'y'));
  EXPECT_TRUE(model_.drops.empty());

  options.when_full = WhenFull::kShift;
  options.generation.max_tokens = 600;
  ExpectEnds("Who?", options, StopReason::kMaxTokens, std::string(600, 'y'));
  EXPECT_FALSE(model_.drops.empty());
}

TEST_F(CompletionTest, AShiftKeepsWhatItIsToldTo) {
  answer_ = std::string(1000, 'y');
  CompletionOptions options = Options();
  options.when_full = WhenFull::kShift;
  options.generation.max_tokens = 600;
  for (const auto& [keep, kept] :
       {std::pair<size_t, size_t>{0, 0}, {2, 2}, {399, 399}, {CompletionOptions::kKeepPrompt, 4}}) {
    SCOPED_TRACE(keep);
    model_.drops.clear();
    options.keep_tokens = keep;
    const Result<StopReason> reason = Say("Who?", options);
    ASSERT_TRUE(reason) << reason.error().message();
    EXPECT_EQ(*reason, StopReason::kMaxTokens);
    for (const ScriptedModel::DropCall& drop : model_.drops) EXPECT_EQ(drop.first, kept);
  }
}

TEST_F(CompletionTest, KeepingTheWholeContextIsRefusedBeforeAnythingIsRun) {
  CompletionOptions options = Options();
  options.when_full = WhenFull::kShift;
  for (const size_t keep : {size_t{400}, size_t{401}, SIZE_MAX - 1}) {
    options.keep_tokens = keep;
    ExpectRefused("Who?", options, ErrorCode::kUsage, RemedyKind::kKeepLess);
  }
  options.keep_tokens = CompletionOptions::kKeepPrompt;
  ExpectRefused(std::string(400, 'x'), options, ErrorCode::kUsage, RemedyKind::kKeepLess);
}

TEST_F(CompletionTest, APromptThatDoesNotFitIsRefusedAsSuch) {
  const std::string prompt(401, 'x');
  ExpectRefused(prompt, Options(), ErrorCode::kOutOfRange, RemedyKind::kLargerContext);
  CompletionOptions options = Options();
  options.when_full = WhenFull::kShift;
  options.keep_tokens = CompletionOptions::kKeepPrompt;
  ExpectRefused(prompt, options, ErrorCode::kOutOfRange, RemedyKind::kLargerContext);
}

TEST_F(CompletionTest, AnEmptyPromptIsRefused) {
  ExpectRefused("", Options(), ErrorCode::kUsage, RemedyKind::kNone);
}

}  // namespace
}  // namespace cria
