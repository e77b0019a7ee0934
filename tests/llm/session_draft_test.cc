// A session with drafts against one without: the same tokens, reasons, contexts and random numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "llm/scripted_clock.h"
#include "llm/session_fixture.h"
#include "support/emulation.h"

namespace cria {
namespace {

constexpr size_t kDraftContext = 256;
constexpr size_t kDraftChunk = 24;

// A text that repeats what it said 13 tokens ago, except for about every tenth token.
int32_t RepeatWithChanges(std::span<const int32_t> context) {
  constexpr size_t kPeriod = 13;
  const auto novel = static_cast<uint32_t>(NextOf(context));
  const bool repeats = context.size() >= kPeriod && novel % 10 != 0;
  return repeats ? context[context.size() - kPeriod] : static_cast<int32_t>(novel);
}

DraftOptions Forced(size_t length, size_t ngram_tokens = 2) {
  return {.ngram_tokens = ngram_tokens, .max_tokens = length, .min_tokens = length};
}

// What a caller of a session sees.
struct DraftOutcome {
  Tokens generated;
  std::vector<double> log_probabilities;
  std::vector<StopReason> reasons;
  Tokens context;
  bool operator==(const DraftOutcome&) const = default;
};

class SessionDraftTest : public testing::Test {
 protected:
  struct Setup {
    size_t context_tokens = kDraftContext;
    ScriptedLayers layers = {};
    SamplerOptions sampler = {.temperature = 0.0f};
  };

  // Makes a session with these drafts, calls `use` and returns what it did.
  template <typename Use>
  DraftOutcome Run(const Setup& setup, const DraftOptions& drafts, const Use& use) {
    ScriptedModel model(kVocabSize, setup.context_tokens, kDraftChunk, RepeatWithChanges, 1,
                        setup.layers);
    Scheduler scheduler(model);
    Session session(scheduler, drafts.has_drafts()
                                   ? std::make_unique<Drafting>(drafts, setup.context_tokens)
                                   : nullptr);
    Sampler sampler = *Sampler::Create(setup.sampler, kVocabSize);
    DraftOutcome outcome;
    use(session, sampler, outcome);
    outcome.context.assign(session.tokens().begin(), session.tokens().end());
    stats_ = session.stats();
    num_calls_ = model.calls.size();
    return outcome;
  }

  // For every draft, `use` must do the same.
  template <typename Use>
  void ExpectSame(const Setup& setup, const Use& use) {
    const DraftOutcome expected = Run(setup, {}, use);
    EXPECT_EQ(stats_.drafted_tokens, 0u);
    EXPECT_EQ(stats_.draft_gain(), 1.0);
    for (size_t length = 1; length <= 16; length += support::IsEmulated() ? 5 : 1) {
      for (const size_t ngram_tokens : {1u, 3u}) {
        EXPECT_EQ(Run(setup, Forced(length, ngram_tokens), use), expected)
            << length << ", " << ngram_tokens;
        // Where few tokens are asked for, there is no room for long drafts.
        if (length <= 4) {
          EXPECT_GT(stats_.accepted_tokens, 0u) << length;
        }
        EXPECT_LE(stats_.accepted_tokens, stats_.drafted_tokens);
      }
    }
    EXPECT_EQ(Run(setup, {.ngram_tokens = 2, .max_tokens = 16}, use), expected) << "adapting";
  }

  // `session` is a session or a turn.
  static void Generate(auto& session, Sampler& sampler, DraftOutcome& outcome,
                       const GenerationOptions& options, size_t cancel_after = SIZE_MAX) {
    size_t count = 0;
    const auto reason = cria::Generate(session, options, sampler, [&](const GeneratedToken& token) {
      outcome.generated.push_back(token.id);
      outcome.log_probabilities.push_back(token.log_probability);
      return ++count < cancel_after;
    });
    ASSERT_TRUE(reason) << reason.error().message();
    outcome.reasons.push_back(*reason);
  }

  SessionStats stats_;
  size_t num_calls_ = 0;
};

constexpr SamplerOptions kRandomChoice = {.repeat_penalty = 1.1f,
                                          .top_k = 0,
                                          .top_p = 1.0f,
                                          .min_p = 0.0f,
                                          .temperature = 1.5f,
                                          .seed = 7};

TEST_F(SessionDraftTest, TheTextIsTheSame) {
  const auto use = [](Session& session, Sampler& sampler, DraftOutcome& outcome) {
    ASSERT_TRUE(Turn(session).Prefill(Counting(40)));
    Generate(session, sampler, outcome, {.max_tokens = 150, .log_probabilities = true});
  };
  ExpectSame({}, use);
  ExpectSame({.sampler = kRandomChoice}, use);
}

TEST_F(SessionDraftTest, FewerForwardsAreRun) {
  const auto use = [](Session& session, Sampler& sampler, DraftOutcome& outcome) {
    ASSERT_TRUE(Turn(session).Prefill(Counting(20)));
    Generate(session, sampler, outcome, {.max_tokens = 200});
  };
  Run({}, {}, use);
  const size_t without = num_calls_;
  EXPECT_EQ(stats_.decoding_forwards, 199u);
  EXPECT_EQ(stats_.decoded_tokens, 199u);
  Run({}, Forced(8), use);
  EXPECT_LT(num_calls_, without / 2);
  EXPECT_EQ(stats_.decoded_tokens, 199u);
  EXPECT_EQ(stats_.generated_tokens, 200u);
  EXPECT_EQ(stats_.decoding_forwards + stats_.accepted_tokens, stats_.decoded_tokens);
}

TEST_F(SessionDraftTest, AnyNumberOfTokensCanBeAskedFor) {
  ExpectSame({.sampler = kRandomChoice},
             [](Session& session, Sampler& sampler, DraftOutcome& outcome) {
               ASSERT_TRUE(Turn(session).Prefill(Counting(30)));
               for (size_t count = 1; count < 16; ++count) {
                 Generate(session, sampler, outcome, {.max_tokens = count});
               }
             });
}

TEST_F(SessionDraftTest, StopTokensEndWhereTheyDid) {
  const Tokens stops = {5, 17, 40};
  const auto use = [&](Session& session, Sampler& sampler, DraftOutcome& outcome) {
    ASSERT_TRUE(Turn(session).Prefill(Counting(40)));
    for (size_t i = 0; i < 12; ++i) {
      Generate(session, sampler, outcome, {.max_tokens = 50, .stop_token_ids = stops});
      // Goes on behind the stop token.
      Generate(session, sampler, outcome, {.max_tokens = 2});
    }
  };
  ExpectSame({}, use);
  ExpectSame({.sampler = kRandomChoice}, use);
}

TEST_F(SessionDraftTest, AnAnswerCanBeStoppedAtEachToken) {
  // What was chosen behind the last token that was handed out is not part of the text, and its
  // random numbers are used again.
  ExpectSame({.sampler = kRandomChoice},
             [](Session& session, Sampler& sampler, DraftOutcome& outcome) {
               ASSERT_TRUE(Turn(session).Prefill(Counting(40)));
               for (size_t count = 1; count < 14; ++count) {
                 Generate(session, sampler, outcome, {}, count);
                 EXPECT_EQ(outcome.reasons.back(), StopReason::kCancelled);
               }
               Tokens prompt(session.tokens().begin(), session.tokens().end());
               prompt.push_back(3);
               ASSERT_TRUE(Turn(session).Prefill(prompt));
               Generate(session, sampler, outcome, {.max_tokens = 10});
             });
}

TEST_F(SessionDraftTest, AFullContextEndsTheTextAtTheSameToken) {
  for (const size_t prompt : {20u, 250u, 255u, 256u}) {
    const auto use = [prompt](Session& session, Sampler& sampler, DraftOutcome& outcome) {
      Tokens tokens = Counting(prompt);
      for (int32_t& token : tokens) token %= 13;
      ASSERT_TRUE(Turn(session).Prefill(tokens));
      Generate(session, sampler, outcome, {});
      EXPECT_EQ(outcome.reasons.back(), StopReason::kContextFull);
      EXPECT_EQ(session.tokens().size(), kDraftContext);
    };
    const DraftOutcome expected = Run({}, {}, use);
    for (size_t length = 1; length <= 16; ++length) {
      EXPECT_EQ(Run({}, Forced(length), use), expected) << length;
    }
  }
}

TEST_F(SessionDraftTest, AContextThatShiftsGoesOnTheSame) {
  const auto use = [](Session& session, Sampler& sampler, DraftOutcome& outcome) {
    ASSERT_TRUE(Turn(session).Prefill(Counting(40)));
    Generate(session, sampler, outcome,
             {.max_tokens = 400, .make_room = [&](Turn& turn) { return turn.DropHalfBehind(4); }});
    EXPECT_GT(session.stats().dropped_tokens, 200u);
  };
  ExpectSame({.context_tokens = 128, .sampler = kRandomChoice}, use);
  ExpectSame({.context_tokens = 192, .layers = {.windows = {0, 40}}, .sampler = kRandomChoice},
             use);
}

TEST_F(SessionDraftTest, ModelsWithWindowsTruncateTheirDrafts) {
  for (const std::vector<uint32_t>& windows :
       {std::vector<uint32_t>{0, 5}, std::vector<uint32_t>{0, 64, 100}}) {
    ExpectSame({.context_tokens = 640, .layers = {.windows = windows}},
               [](Session& session, Sampler& sampler, DraftOutcome& outcome) {
                 ASSERT_TRUE(Turn(session).Prefill(Counting(90)));
                 Generate(session, sampler, outcome, {.max_tokens = 200});
               });
  }
}

TEST_F(SessionDraftTest, ADraftThatIsAlwaysWrongIsRarelyMade) {
  // The 3-gram "1 2 3" is everywhere, and never followed by the same token.
  const auto script = [](std::span<const int32_t> context) {
    const size_t phase = context.size() % 4;
    return phase == 3 ? static_cast<int32_t>(4 + context.size() / 4 % 90)
                      : static_cast<int32_t>(1 + phase);
  };
  ScriptedModel model(kVocabSize, 1024, kDraftChunk, script);
  model.after_forward = [&] {
    ScriptedClock::Advance(std::chrono::microseconds(50 * model.calls.back().tokens.size()));
  };
  Scheduler scheduler(model, ScriptedClock::Now);
  const DraftOptions options = {.ngram_tokens = 3, .max_tokens = 8};
  Session session(scheduler, std::make_unique<Drafting>(options, 1024));
  ASSERT_TRUE(Turn(session).Prefill(std::vector<int32_t>{1, 2, 3, 4}));
  Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
  DraftOutcome outcome;
  Generate(session, sampler, outcome, {.max_tokens = 300});
  EXPECT_LT(session.stats().drafted_tokens, 30u);
}

TEST_F(SessionDraftTest, TheRoomForDraftsIsShared) {
  constexpr size_t kSessions = 3;
  ScriptedModel model(kVocabSize, 1024, 16, RepeatWithChanges, kSessions);
  Scheduler scheduler(model);
  EXPECT_EQ(scheduler.max_drafts(), 13u);
  std::vector<DraftOutcome> outcomes(kSessions), expected(kSessions);
  const auto answer = [&](size_t i, Session& session, DraftOutcome& outcome) {
    Turn turn(session, {.max_tokens = 120});
    ASSERT_TRUE(turn.Prefill(Counting(20 + 5 * i, static_cast<int32_t>(i))));
    SamplerOptions options = kRandomChoice;
    options.seed = i;
    Sampler sampler = *Sampler::Create(options, kVocabSize);
    Generate(turn, sampler, outcome, {.max_tokens = 120});
  };
  for (size_t i = 0; i < kSessions; ++i) {
    Session session(scheduler);
    answer(i, session, expected[i]);
  }
  model.after_forward = [] { std::this_thread::sleep_for(std::chrono::microseconds(300)); };
  {
    std::vector<std::jthread> threads;
    threads.reserve(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
      threads.emplace_back([&, i] {
        Session session(scheduler, std::make_unique<Drafting>(Forced(12), 1024));
        answer(i, session, outcomes[i]);
        EXPECT_GT(session.stats().accepted_tokens, 5u);
      });
    }
  }
  EXPECT_EQ(outcomes, expected);
}

TEST_F(SessionDraftTest, OthersFindOnlyWhatWasAccepted) {
  ScriptedModel model(kVocabSize, 1024, 16, RepeatWithChanges, 2);
  Scheduler scheduler(model);
  Tokens context;
  {
    Session session(scheduler, std::make_unique<Drafting>(Forced(10), 1024));
    ASSERT_TRUE(Turn(session).Prefill(Counting(40)));
    Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
    DraftOutcome outcome;
    Generate(session, sampler, outcome, {.max_tokens = 150}, 101);
    context.assign(session.tokens().begin(), session.tokens().end());
  }
  context.push_back(1);
  Session other(scheduler);
  // The model checks that the rows are those of the tokens.
  ASSERT_TRUE(Turn(other).Prefill(context));
  EXPECT_GE(other.stats().reused_tokens, context.size() - 2);
}

TEST_F(SessionDraftTest, AModelThatFailsEndsTheTextAsWithoutDrafts) {
  for (const size_t ngram_tokens : {0u, 1u}) {
    ScriptedModel model(kVocabSize, 256, kDraftChunk, RepeatWithChanges);
    Scheduler scheduler(model);
    Session session(
        scheduler,
        std::make_unique<Drafting>(
            DraftOptions{.ngram_tokens = 1, .max_tokens = 4, .min_tokens = ngram_tokens * 4}, 256));
    ASSERT_TRUE(Turn(session).Prefill(Counting(40)));
    Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
    DraftOutcome outcome;
    Generate(session, sampler, outcome, {.max_tokens = 10});
    model.fail_at_call = model.calls.size();
    const auto failed = cria::Generate(session, {.max_tokens = 10}, sampler,
                                       [](const GeneratedToken&) { return true; });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message(), "the script says so");
    // It goes on after that.
    model.fail_at_call = SIZE_MAX;
    Generate(session, sampler, outcome, {.max_tokens = 30});
    const DraftOutcome expected =
        Run({.context_tokens = 256}, {}, [](auto& other, auto& s, auto& o) {
          ASSERT_TRUE(Turn(other).Prefill(Counting(40)));
          Generate(other, s, o, {.max_tokens = 40});
        });
    EXPECT_EQ(outcome.generated, expected.generated);
  }
}

// The last logits that were told for the place of a token are those it was chosen from.
TEST_F(SessionDraftTest, LogitsAreToldForEveryToken) {
  for (const DraftOptions& drafts : {DraftOptions(), Forced(5)}) {
    size_t count = 0;
    Run({}, drafts, [&](Session& session, Sampler& sampler, DraftOutcome&) {
      ASSERT_TRUE(Turn(session).Prefill(Counting(20)));
      std::map<size_t, int32_t> likely;
      GenerationOptions options = {.max_tokens = 60};
      options.on_logits = [&](size_t position, std::span<const float> logits) {
        likely[position] = static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
      };
      ASSERT_TRUE(cria::Generate(session, options, sampler, [&](const GeneratedToken& token) {
        EXPECT_EQ(likely.at(session.tokens().size()), token.id);
        ++count;
        return true;
      }));
    });
    EXPECT_EQ(count, 60u);
  }
}

}  // namespace
}  // namespace cria
