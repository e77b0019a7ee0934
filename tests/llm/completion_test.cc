#include "llm/completion.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

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

TEST_F(CompletionTest, EndsBeforeAStopString) {
  auto stops = StopStrings::Create({"lo.", "xyz"});
  ASSERT_TRUE(stops);
  CompletionOptions options = Options();
  options.generation.stop_strings = &*stops;
  ExpectEnds("Who?", options, StopReason::kStopString, "Hel");
  // Its last token is the last that was generated.
  EXPECT_EQ(session_.stats().generated_tokens, 6u);
  EXPECT_EQ(session_.tokens().size(), 10u);
  // The same object serves the next text.
  ExpectEnds("Who?", options, StopReason::kStopString, "Hel");
}

TEST_F(CompletionTest, WhatOnlyBeginsAStopStringIsText) {
  auto stops = StopStrings::Create({"lo!", ".."});
  ASSERT_TRUE(stops);
  CompletionOptions options = Options();
  options.generation.stop_strings = &*stops;
  ExpectEnds("Who?", options, StopReason::kStopToken, "Hello.");
  options.generation.max_tokens = 5;
  ExpectEnds("Who?", options, StopReason::kMaxTokens, "Hello");
  EXPECT_EQ(pieces_.back(), "lo") << "it was held back until the end";
}

TEST_F(CompletionTest, AStopStringMayEndWithTheLastToken) {
  auto stops = StopStrings::Create({"l\xef\xbf\xbd", "e"});
  ASSERT_TRUE(stops);
  CompletionOptions options = Options();
  options.generation.stop_strings = &*stops;
  options.generation.max_tokens = 2;
  ExpectEnds("Who?", options, StopReason::kStopString, "H");
  // What replaces a character that is cut short counts, too.
  answer_ = "Hal\xe2\x82";
  options.generation.max_tokens = 0;
  ExpectEnds("Who?", options, StopReason::kStopString, "Ha");
}

TEST_F(CompletionTest, EveryTokenComesWithItsText) {
  answer_ = "h\xc3\xa9!";
  auto stops = StopStrings::Create({"\xc3\xa9!"});
  ASSERT_TRUE(stops);
  CompletionOptions options = Options();
  std::vector<std::pair<int32_t, std::string>> tokens;
  options.generation.stop_strings = &*stops;
  options.generation.log_probabilities = true;
  options.generation.on_token_text = [&](const GeneratedToken& token, std::string_view text) {
    tokens.emplace_back(token.id, text);
    EXPECT_LT(token.log_probability, 0.0);
  };
  ExpectEnds("Who?", options, StopReason::kStopString, "h");
  // Tokens of the stop string are tokens, too.
  const std::vector<std::pair<int32_t, std::string>> expected = {{ByteToken('h'), "h"},
                                                                 {ByteToken('\xc3'), ""},
                                                                 {ByteToken('\xa9'), "\xc3\xa9"},
                                                                 {ByteToken('!'), "!"}};
  EXPECT_EQ(tokens, expected);
}

TEST_F(CompletionTest, TellsHowMuchOfThePromptIsRead) {
  CompletionOptions options = Options();
  std::vector<size_t> done;
  options.generation.on_prompt = [&](size_t done_tokens, size_t total_tokens) {
    EXPECT_EQ(total_tokens, 20u);
    done.push_back(done_tokens);
    return done_tokens < 20;
  };
  const std::string prompt(20, '?');
  const Result<StopReason> stopped = Say(prompt, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(done, (std::vector<size_t>{0, 16, 20}));
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
  // Nothing is said of a prompt that cannot be read.
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
