// What a session does when its context is full.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "llm/cacheless_model.h"
#include "llm/session_fixture.h"
#include "support/allocation_watch.h"

namespace cria {
namespace {

void DropFrom(Tokens& context, size_t first, size_t count) {
  const auto begin = context.begin() + static_cast<ptrdiff_t>(first);
  context.erase(begin, begin + static_cast<ptrdiff_t>(count));
}

// What a model says whose context of `full` tokens loses half of what is behind `keep` whenever it
// is full.
Tokens ExpectedShifting(Tokens context, size_t count, size_t keep, size_t full = 32) {
  Tokens generated;
  for (size_t i = 0; i < count; ++i) {
    generated.push_back(NextOf(context));
    if (context.size() == full) DropFrom(context, keep, std::max<size_t>((full - keep) / 2, 1));
    context.push_back(generated.back());
  }
  return generated;
}

class SessionShiftTest : public SessionTest {
 protected:
  GenerationOptions Shifting(size_t keep, size_t max_tokens) {
    return {.max_tokens = max_tokens,
            .make_room = [keep](Turn& turn) { return turn.DropHalfBehind(keep); }};
  }

  // Whether the cache holds the context, but for the last token, which may wait.
  void ExpectCacheAgrees() const {
    const auto tokens = session_.tokens();
    const auto cache = model_.cache();
    const size_t held = tokens.size() - 1;
    ASSERT_GE(cache.size(), held);
    EXPECT_TRUE(std::ranges::equal(cache.first(held), tokens.first(held)));
  }
};

TEST_F(SessionShiftTest, ShiftingGoesOnFarPastTheContext) {
  for (const size_t keep : {0, 1, 4, 16, 30, 31}) {
    SCOPED_TRACE(keep);
    session_.Clear();
    session_.ResetStats();
    model_.drops.clear();
    model_.calls.clear();
    ASSERT_TRUE(Turn(session_).Prefill(Counting(9)));
    EXPECT_EQ(Generate(Shifting(keep, 400), StopReason::kMaxTokens),
              ExpectedShifting(Counting(9), 400, keep));
    ExpectCacheAgrees();
    // No token is run twice.
    EXPECT_EQ(model_.tokens_run() + session_.stats().reused_tokens, 9u + 399u);
    EXPECT_EQ(session_.stats().decoded_tokens, 399u);
    EXPECT_EQ(session_.stats().dropped_tokens, 409u - session_.tokens().size());
    for (const ScriptedModel::DropCall& drop : model_.drops) {
      EXPECT_EQ(drop, (ScriptedModel::DropCall{keep, std::max<size_t>((32 - keep) / 2, 1), 32}));
    }
    // If the dropped tokens are the last ones, the cache needs no change.
    EXPECT_EQ(model_.drops.empty(), keep == 31);
  }
}

TEST_F(SessionShiftTest, ShiftingInPartsIsTheSameAsInOneGo) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(32)));
  Tokens generated;
  for (size_t count = 1; generated.size() < 400; count = count % 5 + 1) {
    const Tokens part = Generate(Shifting(4, count), StopReason::kMaxTokens);
    generated.insert(generated.end(), part.begin(), part.end());
    ExpectCacheAgrees();
  }
  EXPECT_EQ(generated, ExpectedShifting(Counting(32), generated.size(), 4));
}

TEST_F(SessionShiftTest, StopTokensAreSeenAroundAShift) {
  // The third of these is chosen by a full context; the fourth by the first that was shifted.
  const Tokens all = ExpectedShifting(Counting(30), 40, 4);
  for (size_t place = 2; place < all.size(); ++place) {
    SCOPED_TRACE(place);
    if (std::ranges::find(all, all[place]) - all.begin() < static_cast<ptrdiff_t>(place)) continue;
    session_.Clear();
    model_.drops.clear();
    ASSERT_TRUE(Turn(session_).Prefill(Counting(30)));
    const Tokens stop = {all[place]};
    GenerationOptions options = Shifting(4, 0);
    options.stop_token_ids = stop;
    EXPECT_EQ(Generate(options, StopReason::kStopToken),
              Tokens(all.begin(), all.begin() + static_cast<ptrdiff_t>(place)));
    EXPECT_EQ(model_.drops.empty(), place == 2) << "nothing makes room for a stop token";
    ExpectCacheAgrees();
  }
}

TEST_F(SessionShiftTest, ACancelledShiftHandsNoTokenOutAndCanBeDoneLater) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(31)));
  const GenerationOptions cancelled = {
      .make_room = [](Turn&) { return Status(Fail(ErrorCode::kCancelled, "not now")); }};
  const Tokens all = ExpectedShifting(Counting(31), 60, 4);
  EXPECT_EQ(Generate(cancelled, StopReason::kCancelled), Tokens(all.begin(), all.begin() + 1));
  EXPECT_EQ(session_.tokens().size(), 32u);
  EXPECT_EQ(Generate(Shifting(4, 59), StopReason::kMaxTokens), Tokens(all.begin() + 1, all.end()));
}

TEST_F(SessionShiftTest, CancellingIsSeenBetweenShifts) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(4)));
  std::atomic<bool> cancel = false;
  GenerationOptions options = Shifting(4, 0);
  options.cancel = &cancel;
  Sampler sampler = Greedy();
  Tokens generated;
  const auto reason = cria::Generate(session_, options, sampler, [&](const GeneratedToken& token) {
    generated.push_back(token.id);
    cancel = generated.size() == 333;
    return true;
  });
  ASSERT_TRUE(reason);
  EXPECT_EQ(*reason, StopReason::kCancelled);
  EXPECT_EQ(generated, ExpectedShifting(Counting(4), 333, 4));
}

TEST_F(SessionShiftTest, AFailedShiftCanBeTriedAgain) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(31)));
  model_.fail_moves = true;
  Sampler sampler = Greedy();
  Tokens generated;
  const auto failed = cria::Generate(session_, Shifting(4, 0), sampler, CollectInto(generated));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "the script says so");
  EXPECT_EQ(session_.tokens().size(), 32u);
  model_.fail_moves = false;
  const Tokens rest = Generate(Shifting(4, 50), StopReason::kMaxTokens);
  generated.insert(generated.end(), rest.begin(), rest.end());
  EXPECT_EQ(generated, ExpectedShifting(Counting(31), generated.size(), 4));
}

TEST_F(SessionShiftTest, WhoMakesNoRoomIsStopped) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(30)));
  size_t asked = 0;
  const GenerationOptions idle = {.make_room = [&](Turn&) {
    ++asked;
    return Status();
  }};
  EXPECT_EQ(Generate(idle, StopReason::kContextFull), Expected(Counting(30), 3));
  EXPECT_EQ(asked, 1u);
}

TEST_F(SessionShiftTest, ANewContextMakesRoomAsWell) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(32)));
  const GenerationOptions anew = {
      .max_tokens = 6, .make_room = [&](Turn& turn) { return turn.Prefill(Counting(5, 50)); }};
  Tokens expected = Expected(Counting(32), 1);
  Tokens next = Counting(5, 50);
  next.push_back(expected[0]);
  for (const int32_t token : Expected(next, 5)) expected.push_back(token);
  EXPECT_EQ(Generate(anew, StopReason::kMaxTokens), expected);
}

TEST_F(SessionShiftTest, AShiftThatKeepsEverythingIsAnError) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(32)));
  for (const size_t keep : {size_t{32}, SIZE_MAX}) {
    Sampler sampler = Greedy();
    const auto refused = cria::Generate(session_, Shifting(keep, 0), sampler, FailAtToken);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  }
}

TEST_F(SessionShiftTest, WhatIsDroppedWasNeverThere) {
  // The last token of the context waits outside the cache: 11 tokens, of which 10 are in it.
  struct Case {
    size_t first;
    size_t count;
    size_t num_drops;  // Calls of the model.
    size_t run_later;  // Tokens run before the next logits.
  };
  for (const Case& c : {Case{0, 3, 1, 1}, Case{2, 1, 1, 1}, Case{4, 6, 0, 1}, Case{5, 6, 0, 1},
                        Case{10, 1, 0, 1}, Case{3, 0, 0, 1}, Case{11, 0, 0, 1}}) {
    SCOPED_TRACE(testing::Message() << c.count << " behind " << c.first);
    session_.Clear();
    ASSERT_TRUE(Turn(session_).Prefill(Counting(10)));
    Generate({.max_tokens = 1}, StopReason::kMaxTokens);
    Tokens expected = context();
    DropFrom(expected, c.first, c.count);
    model_.drops.clear();
    ASSERT_TRUE(Turn(session_).Drop(c.first, c.count));
    EXPECT_EQ(context(), expected);
    EXPECT_EQ(model_.drops.size(), c.num_drops);
    const size_t run = model_.tokens_run();
    EXPECT_EQ(Generate({.max_tokens = 4}, StopReason::kMaxTokens), Expected(expected, 4));
    EXPECT_EQ(model_.tokens_run() - run, c.run_later + 3);
    ExpectCacheAgrees();
  }
}

TEST_F(SessionShiftTest, DroppingAllLeavesNothingToGoOnFrom) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(10)));
  ASSERT_TRUE(Turn(session_).Drop(0, 10));
  EXPECT_TRUE(session_.tokens().empty());
  Sampler sampler = Greedy();
  EXPECT_FALSE(cria::Generate(session_, {}, sampler, FailAtToken));
}

TEST_F(SessionShiftTest, DroppingWhatIsNotThereChangesNothing) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(10)));
  for (const auto& [first, count] :
       {std::pair<size_t, size_t>{11, 0}, {10, 1}, {0, 11}, {5, SIZE_MAX}, {SIZE_MAX, 2}}) {
    const Status refused = Turn(session_).Drop(first, count);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfRange);
  }
  EXPECT_EQ(context(), Counting(10));
  EXPECT_TRUE(model_.drops.empty());
}

TEST_F(SessionShiftTest, WhatLiesBehindADropIsReused) {
  ASSERT_TRUE(Turn(session_).Prefill(Counting(20)));
  ASSERT_TRUE(Turn(session_).Drop(4, 10));
  Tokens next = Counting(4);
  for (const int32_t token : Counting(6, 15)) next.push_back(token);
  next.push_back(90);
  model_.calls.clear();
  ASSERT_TRUE(Turn(session_).Prefill(next));
  EXPECT_EQ(session_.stats().reused_tokens, 10u);
  EXPECT_EQ(model_.calls, (std::vector<ScriptedModel::ForwardCall>{{10, {90}}}));
  EXPECT_EQ(Generate({.max_tokens = 2}, StopReason::kMaxTokens), Expected(next, 2));
}

// A model that records nothing, so that only the session allocates.
class ForgetfulModel final : public CachelessModel {
 public:
  ForgetfulModel() : CachelessModel(32) {}
  size_t vocab_size() const override { return logits_.size(); }
  Result<std::span<float>> Logits(size_t) override {
    std::ranges::fill(logits_, 1.0f);
    return std::span(logits_);
  }

 private:
  std::vector<float> logits_ = std::vector<float>(kVocabSize);
};

TEST(SessionMemoryTest, GeneratingTakesNothingFromTheHeap) {
  ForgetfulModel model;
  Scheduler scheduler(model);
  Session session(scheduler);
  for (const SamplerOptions& sampling :
       {SamplerOptions{}, SamplerOptions{.repeat_penalty = 1.1f, .top_k = 0},
        SamplerOptions{.repeat_penalty = 1.1f, .temperature = 0.0f},
        SamplerOptions{.logit_bias = {{3, 1.0f}, {4, -2.0f}}, .repeat_penalty = 1.1f}}) {
    session.ResetStats();
    ASSERT_TRUE(Turn(session).Prefill(Counting(10)));
    auto sampler = Sampler::Create(sampling, kVocabSize);
    ASSERT_TRUE(sampler);
    size_t handed_out = 0;
    const TokenCallback on_token = [&](const GeneratedToken&) { return ++handed_out > 0; };
    const GenerationOptions options = {
        .max_tokens = 500, .log_probabilities = true, .make_room = [&](Turn& turn) {
          return turn.DropHalfBehind(4);
        }};
    support::AllocationWatch watch("generating");
    const auto reason = cria::Generate(session, options, *sampler, on_token);
    EXPECT_EQ(watch.Finish(), "");
    ASSERT_TRUE(reason);
    EXPECT_EQ(*reason, StopReason::kMaxTokens);
    EXPECT_EQ(handed_out, 500u);
    EXPECT_GT(session.stats().dropped_tokens, 450u);
  }
}

}  // namespace
}  // namespace cria
