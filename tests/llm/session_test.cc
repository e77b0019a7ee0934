#include "llm/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "llm/session_fixture.h"

namespace cria {
namespace {

TEST_F(SessionTest, PromptsAreRunInChunks) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(10)));
  const std::vector<ScriptedModel::ForwardCall> expected = {
      {0, {1, 2, 3, 4}}, {4, {5, 6, 7, 8}}, {8, {9, 10}}};
  EXPECT_EQ(model_.calls, expected);
  EXPECT_EQ(model_.rows_wanted, (std::vector<size_t>{0, 0, 1}));
  EXPECT_THAT(model_.rows_read, testing::ElementsAre(0));
  EXPECT_EQ(context(), Counting(10));
  EXPECT_EQ(session_.stats().prompt_tokens, 10u);
  EXPECT_EQ(session_.stats().reused_tokens, 0u);
  EXPECT_EQ(session_.stats().decoded_tokens, 0u);
}

TEST_F(SessionTest, GeneratesWhatTheModelSays) {
  for (const size_t prompt : {1, 3, 4, 5, 8, 11}) {
    session_.Clear();
    ASSERT_TRUE(Turn(session_).Prefill(Counting(prompt)));
    EXPECT_EQ(Generate({.max_tokens = 6}, StopReason::kMaxTokens), Expected(Counting(prompt), 6));
  }
}

TEST_F(SessionTest, EachStepRunsOneTokenAndTheLastOneWaits) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  model_.calls.clear();
  const Tokens generated = Generate({.max_tokens = 3}, StopReason::kMaxTokens);
  const std::vector<ScriptedModel::ForwardCall> expected = {{4, {generated[0]}},
                                                            {5, {generated[1]}}};
  EXPECT_EQ(model_.calls, expected);
  EXPECT_EQ(model_.rows_wanted, (std::vector<size_t>{1, 1, 1}));
  EXPECT_EQ(model_.rows_read, (std::vector<size_t>{0, 0, 0}));
  EXPECT_EQ(session_.stats().decoded_tokens, 2u);
  EXPECT_EQ(session_.tokens().size(), 7u);
  EXPECT_EQ(session_.tokens().back(), generated[2]);
}

TEST_F(SessionTest, GoesOnAfterMaxTokensAsIfUninterrupted) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(5)));
  Tokens generated;
  for (const size_t count : {1, 1, 4, 2}) {
    const Tokens part = Generate({.max_tokens = count}, StopReason::kMaxTokens);
    generated.insert(generated.end(), part.begin(), part.end());
  }
  EXPECT_EQ(generated, Expected(Counting(5), 8));
  EXPECT_EQ(model_.tokens_run(), 5u + 7u);
}

TEST_F(SessionTest, ACommonBeginningIsKept) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(10)));
  model_.calls.clear();
  Tokens next = Counting(6);
  next.insert(next.end(), {50, 51, 52});
  ASSERT_TRUE(Turn(session_).Prefill(next));
  EXPECT_EQ(model_.calls, (std::vector<ScriptedModel::ForwardCall>{{6, {50, 51, 52}}}));
  EXPECT_EQ(session_.stats().reused_tokens, 6u);
  EXPECT_EQ(session_.stats().prompt_tokens, 13u);
  EXPECT_EQ(Generate({.max_tokens = 3}, StopReason::kMaxTokens), Expected(next, 3));
}

TEST_F(SessionTest, ALongerPromptRunsOnlyWhatIsNew) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  ASSERT_TRUE(Turn(session_).Prefill(Counting(7)));
  EXPECT_EQ(model_.tokens_run(), 7u);
  EXPECT_EQ(session_.stats().reused_tokens, 4u);
}

TEST_F(SessionTest, TheSamePromptRunsItsLastTokenForTheLogits) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(9)));
  model_.calls.clear();
  ASSERT_TRUE(Turn(session_).Prefill(Counting(9)));
  EXPECT_EQ(model_.calls, (std::vector<ScriptedModel::ForwardCall>{{8, {9}}}));
  EXPECT_EQ(session_.stats().reused_tokens, 8u);
  ASSERT_TRUE(Turn(session_).Prefill(Counting(3)));
  EXPECT_EQ(model_.calls.back(), (ScriptedModel::ForwardCall{2, {3}}));
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens), Expected(Counting(3), 2));
}

TEST_F(SessionTest, GeneratedTokensAreReusedExceptTheOneThatWaits) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  Generate({.max_tokens = 3}, StopReason::kMaxTokens);
  Tokens dialogue = context();
  dialogue.insert(dialogue.end(), {60, 61});
  model_.calls.clear();
  ASSERT_TRUE(Turn(session_).Prefill(dialogue));
  EXPECT_EQ(session_.stats().reused_tokens, 6u);
  EXPECT_EQ(model_.tokens_run(), 3u);
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens), Expected(dialogue, 2));
}

TEST_F(SessionTest, WhatTheCacheHasIsFoundAfterClear) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  session_.Clear();
  EXPECT_TRUE(session_.tokens().empty());
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  EXPECT_EQ(session_.stats().reused_tokens, 3u);
  EXPECT_EQ(model_.tokens_run(), 5u);
}

TEST_F(SessionTest, TheStopTokenEndsAndIsNotHandedOut) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  const Tokens all = Expected(Counting(4), 4);
  const Tokens stops = {all[3], 99};
  EXPECT_EQ(Generate({.stop_token_ids = stops}, StopReason::kStopToken),
            Tokens(all.begin(), all.begin() + 3));
  EXPECT_EQ(session_.tokens().size(), 7u);
  // It can be gone past, and the logits are those of the same place.
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens)[0], all[3]);
}

TEST_F(SessionTest, AFullContextIsAReasonOfItsOwn) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(30)));
  // Tokens 31 and 32 fill the cache; what comes after them can still be said.
  EXPECT_EQ(Generate({}, StopReason::kContextFull), Expected(Counting(30), 3));
  EXPECT_EQ(session_.tokens().size(), 32u);
  EXPECT_EQ(session_.context_tokens(), 32u);
}

TEST_F(SessionTest, APromptOfTheWholeContextIsAnsweredWithOneToken) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(32)));
  EXPECT_EQ(Generate({}, StopReason::kContextFull), Expected(Counting(32), 1));
}

TEST_F(SessionTest, APromptThatIsTooLongChangesNothing) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(5)));
  const Status refused = Turn(session_).Prefill(Counting(33));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfRange);
  EXPECT_NE(refused.error().message().find("33"), std::string::npos);
  EXPECT_NE(refused.error().message().find("32"), std::string::npos);
  EXPECT_EQ(context(), Counting(5));
  EXPECT_EQ(model_.tokens_run(), 5u);
  EXPECT_EQ(Generate({.max_tokens = 3}, StopReason::kMaxTokens), Expected(Counting(5), 3));
}

TEST_F(SessionTest, AnEmptyPromptIsAnErrorAndChangesNothing) {
  const Status refused = Turn(session_).Prefill({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  Sampler sampler = Greedy();
  const auto generated = cria::Generate(session_, {}, sampler, FailAtToken);
  ASSERT_FALSE(generated);
  EXPECT_EQ(generated.error().code(), ErrorCode::kUsage);
}

TEST_F(SessionTest, TheModelsErrorComesThroughAndTheSessionStaysUsable) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  model_.fail_at_call = 2;
  const Status failed = Turn(session_).Prefill(Counting(9));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "the script says so");
  EXPECT_EQ(context(), Counting(8)) << "what has run is kept";
  model_.fail_at_call = SIZE_MAX;
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens), Expected(Counting(8), 2));
}

TEST_F(SessionTest, LogitsOfAnotherPlaceAreNotUsedAfterAFailedPrefill) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(8)));
  Tokens other = Counting(3);
  other.push_back(77);
  model_.fail_at_call = model_.calls.size();
  ASSERT_FALSE(Turn(session_).Prefill(other));
  model_.fail_at_call = SIZE_MAX;
  EXPECT_EQ(context(), Counting(3));
  EXPECT_EQ(Generate({.max_tokens = 3}, StopReason::kMaxTokens), Expected(Counting(3), 3));
}

TEST_F(SessionTest, TokensOutsideTheVocabularyChangeNothing) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  for (const int32_t wrong : {-1, static_cast<int32_t>(kVocabSize)}) {
    Tokens tokens = Counting(9);
    tokens.back() = wrong;
    const Status refused = Turn(session_).Prefill(tokens);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfRange);
  }
  EXPECT_EQ(context(), Counting(4));
  EXPECT_EQ(model_.tokens_run(), 4u);
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens), Expected(Counting(4), 2));
}

TEST_F(SessionTest, AFailedStepCanBeTriedAgain) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(3)));
  model_.fail_at_call = model_.calls.size() + 2;
  Sampler sampler = Greedy();
  Tokens generated;
  const auto failed = cria::Generate(session_, {}, sampler, CollectInto(generated));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "the script says so");
  EXPECT_EQ(generated, Expected(Counting(3), 3));
  model_.fail_at_call = SIZE_MAX;
  const Tokens rest = Generate({.max_tokens = 2}, StopReason::kMaxTokens);
  const Tokens all = Expected(Counting(3), 5);
  EXPECT_EQ(rest, Tokens(all.begin() + 3, all.end()));
}

TEST_F(SessionTest, PrefillIsCancelledBetweenChunksAndGoesOnLater) {
  std::atomic<bool> cancel = false;
  model_.after_forward = [&] { cancel = model_.calls.size() == 2; };
  const Status stopped = Prefill(Counting(20), cancel);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(model_.tokens_run(), 8u);
  EXPECT_EQ(context(), Counting(8));
  model_.after_forward = nullptr;
  cancel = false;
  ASSERT_TRUE(Prefill(Counting(20), cancel));
  EXPECT_EQ(model_.tokens_run(), 20u);
  EXPECT_EQ(session_.stats().reused_tokens, 8u);
}

TEST_F(SessionTest, GeneratingGoesOnFromAPrefillThatWasCancelledBetweenChunks) {
  std::atomic<bool> cancel = false;
  model_.after_forward = [&] { cancel = model_.calls.size() == 2; };
  ASSERT_FALSE(Prefill(Counting(20), cancel));
  model_.after_forward = nullptr;
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens), Expected(Counting(8), 2));
  // The logits after the second chunk were not wanted: its last token is run again.
  EXPECT_EQ(model_.calls[2], (ScriptedModel::ForwardCall{7, {8}}));
}

TEST_F(SessionTest, APrefillThatIsCancelledAtOnceLeavesNoLogitsOfAnotherPlace) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(8)));
  const std::atomic<bool> cancel = true;
  Tokens other = Counting(3);
  other.push_back(77);
  ASSERT_FALSE(Prefill(other, cancel));
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens), Expected(Counting(3), 2));
}

TEST_F(SessionTest, GenerationIsCancelledBeforeTheNextToken) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  std::atomic<bool> cancel = false;
  Sampler sampler = Greedy();
  Tokens generated;
  const GenerationOptions options = {.cancel = &cancel};
  const auto reason = cria::Generate(session_, options, sampler, [&](const GeneratedToken& token) {
    generated.push_back(token.id);
    cancel = generated.size() == 2;
    return true;
  });
  ASSERT_TRUE(reason);
  EXPECT_EQ(*reason, StopReason::kCancelled);
  EXPECT_EQ(generated, Expected(Counting(4), 2));
  // And goes on where it stopped.
  const Tokens all = Expected(Counting(4), 4);
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens),
            Tokens(all.begin() + 2, all.end()));
}

TEST_F(SessionTest, ThePenaltySeesThePromptAndIsNotAppliedTwice) {
  ScriptedModel model(4, 8, 4, [](std::span<const int32_t>) { return 2; });
  Scheduler scheduler(model);
  Session session(scheduler);
  ASSERT_TRUE(Turn(session).Prefill(Tokens{1, 2}));
  // 2 is in the context, so that its 8 becomes 4: still the largest, unless it is divided again.
  auto sampler = Sampler::Create({.repeat_penalty = 2.0f, .temperature = 0.0f}, 4);
  ASSERT_TRUE(sampler);
  const Tokens stop = {2};
  for (int round = 0; round < 8; ++round) {
    const auto reason =
        cria::Generate(session, {.max_tokens = 1, .stop_token_ids = stop}, *sampler, FailAtToken);
    ASSERT_TRUE(reason);
    ASSERT_EQ(*reason, StopReason::kStopToken);
  }
}

// The logits of a scripted model are 8 for one token and 0 for all others.
TEST_F(SessionTest, LogProbabilitiesAreTheModelsOwn) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  const double total = std::exp(8.0) + (kVocabSize - 1);
  const int32_t likely = NextOf(Counting(4));
  const int32_t unlikely = likely == 3 ? 4 : 3;
  for (const bool is_forced : {false, true}) {
    // Neither the bias nor the penalty changes them.
    SamplerOptions options = {.repeat_penalty = 1.5f, .temperature = 0.0f};
    if (is_forced) options.logit_bias = {{unlikely, 20.0f}};
    auto sampler = Sampler::Create(options, kVocabSize);
    ASSERT_TRUE(sampler);
    for (const bool asks : {true, false}) {
      session_.Clear();
      ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
      GeneratedToken got = {-1, 1.0};
      ASSERT_TRUE(cria::Generate(session_, {.max_tokens = 1, .log_probabilities = asks}, *sampler,
                                 [&](const GeneratedToken& token) {
                                   got = token;
                                   return true;
                                 }));
      EXPECT_EQ(got.id, is_forced ? unlikely : likely);
      const double expected = is_forced ? -std::log(total) : 8.0 - std::log(total);
      EXPECT_NEAR(got.log_probability, asks ? expected : 0.0, 1e-6);
    }
  }
}

TEST_F(SessionTest, WhoeverGetsATokenMayStop) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  Sampler sampler = Greedy();
  Tokens generated;
  const auto reason = cria::Generate(session_, {}, sampler, [&](const GeneratedToken& token) {
    generated.push_back(token.id);
    return generated.size() < 3;
  });
  ASSERT_TRUE(reason);
  EXPECT_EQ(*reason, StopReason::kCancelled);
  EXPECT_EQ(generated, Expected(Counting(4), 3));
  // The last token is part of the context.
  EXPECT_EQ(session_.tokens().size(), 7u);
  const Tokens all = Expected(Counting(4), 5);
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens),
            Tokens(all.begin() + 3, all.end()));
}

TEST_F(SessionTest, TellsHowMuchOfAPromptIsRead) {
  using Calls = std::vector<std::pair<size_t, size_t>>;
  Calls calls;
  const auto record = [&](size_t done, size_t total) {
    calls.emplace_back(done, total);
    return true;
  };
  ASSERT_TRUE(Turn(session_).Prefill(Counting(10), record));
  EXPECT_EQ(calls, (Calls{{0, 10}, {4, 10}, {8, 10}, {10, 10}}));
  calls.clear();
  ASSERT_TRUE(Turn(session_).Prefill(Counting(12), record));
  EXPECT_EQ(calls, (Calls{{10, 12}, {12, 12}}));
}

TEST_F(SessionTest, APromptEndsWhereItsCallbackSaysSo) {
  for (const size_t last : {size_t{0}, size_t{4}, size_t{8}, size_t{10}}) {
    const Tokens prompt = Counting(10, 1 + static_cast<int32_t>(last));
    const Status stopped =
        Turn(session_).Prefill(prompt, [&](size_t done, size_t) { return done != last; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
    EXPECT_EQ(session_.tokens().size(), last);
    // What was read is not read again.
    const size_t run = model_.tokens_run();
    ASSERT_TRUE(Turn(session_).Prefill(prompt));
    EXPECT_EQ(model_.tokens_run() - run, last == 10 ? 1 : 10 - last);
  }
}

TEST_F(SessionTest, LogitsAreThoseOfTheNextToken) {
  EXPECT_EQ(Turn(session_).Logits().error().code(), ErrorCode::kUsage);
  ASSERT_TRUE(Turn(session_).Prefill(Counting(5)));
  const auto expect_next = [&](int32_t next) {
    const auto logits = Turn(session_).Logits();
    ASSERT_TRUE(logits) << logits.error().message();
    ASSERT_EQ(logits->front().size(), kVocabSize);
    for (size_t id = 0; id < kVocabSize; ++id) {
      EXPECT_EQ(logits->front()[id], id == static_cast<size_t>(next) ? 8.0f : 0.0f);
    }
  };
  expect_next(NextOf(Counting(5)));
  EXPECT_EQ(model_.tokens_run(), 5u);
  // After generating, the last token is not in the cache yet.
  const Tokens generated = Generate({.max_tokens = 3}, StopReason::kMaxTokens);
  expect_next(Expected(Counting(5), 4).back());
  EXPECT_EQ(Generate({.max_tokens = 1}, StopReason::kMaxTokens)[0],
            Expected(Counting(5), 4).back());
  // Logits that were handed out may have been changed: Generate runs the last token again.
  EXPECT_EQ(model_.tokens_run(), 10u);
  model_.fail_at_call = model_.calls.size();
  EXPECT_FALSE(Turn(session_).Logits());
}

TEST_F(SessionTest, StatisticsCanBeResetAndTimesAreKeptApart) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  EXPECT_EQ(session_.stats().decode_time, SessionStats::Duration{});
  EXPECT_GT(session_.stats().prompt_time, SessionStats::Duration{});
  session_.ResetStats();
  Generate({.max_tokens = 3}, StopReason::kMaxTokens);
  EXPECT_EQ(session_.stats().prompt_tokens, 0u);
  EXPECT_EQ(session_.stats().decoded_tokens, 2u);
  EXPECT_EQ(session_.stats().prompt_time, SessionStats::Duration{});
}

}  // namespace
}  // namespace cria
