// A session with a constraint against a naive reference, which asks the model for every token that
// the constraint gives a choice of, one by one: the same tokens, reasons and random numbers,
// whatever drafts there are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "llm/constraint_fixture.h"
#include "llm/generator.h"
#include "llm/measure/log_sum_exp.h"
#include "llm/turn.h"
#include "support/emulation.h"

namespace cria {
namespace {

using testing::HasSubstr;

constexpr size_t kRoomyContext = 256;
constexpr size_t kWideChunk = 24;
// A list of objects with some choice, several tokens without, and an end.
constexpr const char* kObjects = "(\\{\"name\": \"[abc]{3}\", \"n\": [0-4]{2}\\}\\n)+";

// Repeats what the text said one object ago, except for about every eighth token.
int32_t RepeatObjects(std::span<const int32_t> context) {
  constexpr size_t kPeriod = 19;
  const auto novel = static_cast<uint32_t>(NextOf(context));
  const bool repeats = context.size() >= kPeriod && novel % 8 != 0;
  return repeats ? context[context.size() - kPeriod] : static_cast<int32_t>(novel);
}

constexpr SamplerOptions kManyChoices = {.repeat_penalty = 1.1f,
                                         .top_k = 0,
                                         .top_p = 1.0f,
                                         .min_p = 0.0f,
                                         .temperature = 4.0f,
                                         .seed = 11};

struct ConstrainedText {
  Tokens tokens;
  std::vector<double> log_probabilities;
  StopReason reason = StopReason::kCancelled;
  int32_t next_choice = -1;  // Tells which random number comes next.
  bool operator==(const ConstrainedText&) const = default;
};

struct ConstrainedSetup {
  const char* pattern = kObjects;
  ScriptedModel::Script script = RepeatObjects;
  size_t context_tokens = kRoomyContext;
  SamplerOptions sampler = {.temperature = 0.0f};
  Tokens stops = {kEndToken};
  size_t max_tokens = 0;
};

class SessionConstraintTest : public testing::Test {
 protected:
  static Tokens Prompt() { return Counting(30); }

  // A choice between two tokens, which depends on the random number.
  static int32_t Draw(Sampler& sampler) {
    std::vector<float> logits(kVocabSize, 0.0f);
    return sampler.Sample(logits, {}).value_or(-2);
  }

  ConstrainedText Naive(const ConstrainedSetup& setup) {
    ScriptedModel model(kVocabSize, setup.context_tokens, kWideChunk, setup.script);
    Scheduler scheduler(model);
    Session session(scheduler);
    Sampler sampler = Unwrap(Sampler::Create(setup.sampler, kVocabSize));
    Unwrap(naive_constraint_->Set({grammar::ConstraintKind::kRegex, setup.pattern}));
    ConstrainedText text;
    text.reason = NaiveReason(setup, session, sampler, *naive_constraint_, text);
    text.next_choice = Draw(sampler);
    return text;
  }

  static StopReason NaiveReason(const ConstrainedSetup& setup, Session& session, Sampler& sampler,
                                Constraint& constraint, ConstrainedText& text) {
    Tokens context = Prompt();
    const size_t max_tokens = setup.max_tokens == 0 ? SIZE_MAX : setup.max_tokens;
    while (text.tokens.size() < max_tokens) {
      const size_t tokens_left =
          std::min(max_tokens - text.tokens.size(), setup.context_tokens + 1 - context.size());
      const Constraint::Next next = Unwrap(constraint.FindNext(setup.stops, tokens_left));
      if (next.is_over) return StopReason::kStopToken;
      int32_t token = next.forced;
      double log_probability = 0.0;
      if (token < 0) {
        Unwrap(Turn(session).Prefill(context));
        Turn turn(session, {});
        const LogitRows rows = Unwrap(turn.Logits());
        const std::span<float> logits = rows.front();
        token = Unwrap(sampler.Sample(logits, context, &next.mask));
        log_probability = logits[static_cast<size_t>(token)] - LogSumExp(logits);
      }
      if (std::ranges::contains(setup.stops, token)) return StopReason::kStopToken;
      Unwrap(constraint.Accept(token));
      text.tokens.push_back(token);
      text.log_probabilities.push_back(log_probability);
      if (context.size() == setup.context_tokens) return StopReason::kContextFull;
      context.push_back(token);
    }
    return StopReason::kMaxTokens;
  }

  ConstrainedText Generated(const ConstrainedSetup& setup, const DraftOptions& drafts = {}) {
    ScriptedModel model(kVocabSize, setup.context_tokens, kWideChunk, setup.script);
    Scheduler scheduler(model);
    Session session(scheduler, drafts.has_drafts()
                                   ? std::make_unique<Drafting>(drafts, setup.context_tokens)
                                   : nullptr);
    Sampler sampler = Unwrap(Sampler::Create(setup.sampler, kVocabSize));
    Unwrap(constraint_->Set({grammar::ConstraintKind::kRegex, setup.pattern}));
    ConstrainedText text;
    Turn turn(session, {.max_tokens = setup.max_tokens});
    Unwrap(turn.Prefill(Prompt()));
    text.reason = Unwrap(Generate(turn,
                                  {.max_tokens = setup.max_tokens,
                                   .stop_token_ids = setup.stops,
                                   .constraint = constraint_.get(),
                                   .log_probabilities = true},
                                  sampler, [&](const GeneratedToken& token) {
                                    text.tokens.push_back(token.id);
                                    text.log_probabilities.push_back(token.log_probability);
                                    return true;
                                  }));
    text.next_choice = Draw(sampler);
    stats_ = session.stats();
    calls_ = model.calls;
    rows_wanted_ = model.rows_wanted;
    Tokens expected = Prompt();
    expected.insert(expected.end(), text.tokens.begin(), text.tokens.end());
    expected.resize(std::min(expected.size(), setup.context_tokens));
    EXPECT_EQ(Tokens(session.tokens().begin(), session.tokens().end()), expected);
    EXPECT_EQ(stats_.generated_tokens, text.tokens.size());
    EXPECT_EQ(stats_.prompt_tokens, Prompt().size());
    return text;
  }

  // Without drafts, and with drafts of every length.
  void ExpectAsNaive(const ConstrainedSetup& setup) {
    const ConstrainedText expected = Naive(setup);
    EXPECT_EQ(Generated(setup), expected);
    EXPECT_EQ(stats_.drafted_tokens, 0u);
    for (size_t length = 1; length <= 16; length += support::IsEmulated() ? 5 : 1) {
      for (const size_t ngram_tokens : {1u, 3u}) {
        const DraftOptions drafts = {
            .ngram_tokens = ngram_tokens, .max_tokens = length, .min_tokens = length};
        EXPECT_EQ(Generated(setup, drafts), expected) << length << ", " << ngram_tokens;
        num_accepted_ += stats_.accepted_tokens;
        EXPECT_LE(stats_.accepted_tokens, stats_.drafted_tokens);
      }
    }
  }

  std::string TextOf(const ConstrainedText& text) const {
    return constraints_.vocabulary().Text(text.tokens);
  }

  TestConstraints constraints_{4};
  // What they learn is kept as long as the pattern is the same.
  std::unique_ptr<Constraint> naive_constraint_ = Unwrap(constraints_.TryNew());
  std::unique_ptr<Constraint> constraint_ = Unwrap(constraints_.TryNew());
  SessionStats stats_;
  std::vector<ScriptedModel::ForwardCall> calls_;
  std::vector<size_t> rows_wanted_;
  size_t num_accepted_ = 0;
};

TEST_F(SessionConstraintTest, TheTextIsThatOfTheReference) {
  ExpectAsNaive({.max_tokens = 150});
  EXPECT_GT(stats_.forced_tokens, 50u);
  EXPECT_GT(num_accepted_, 0u);
  ExpectAsNaive({.sampler = kManyChoices, .max_tokens = 150});
}

TEST_F(SessionConstraintTest, ManySeedsChooseTheSameTexts) {
  ConstrainedSetup setup = {.sampler = kManyChoices, .max_tokens = 60};
  std::set<std::string> texts;
  const uint64_t num_seeds = support::IsEmulated() ? 10 : 100;
  for (uint64_t seed = 0; seed < num_seeds; ++seed) {
    setup.sampler.seed = seed;
    const ConstrainedText expected = Naive(setup);
    texts.insert(TextOf(expected));
    EXPECT_EQ(Generated(setup), expected) << seed;
    EXPECT_EQ(Generated(setup, {.ngram_tokens = 1, .max_tokens = 5, .min_tokens = 5}), expected)
        << seed;
  }
  EXPECT_GT(texts.size(), num_seeds * 15 / 100);
}

TEST_F(SessionConstraintTest, TheModelIsAskedOnlyWhereThereIsAChoice) {
  ConstrainedSetup setup = {.pattern = "(abc|b)\": 012345678[ab]\\{\\}"};
  // It would write anything else.
  setup.script = [](std::span<const int32_t>) { return kControlToken; };
  const ConstrainedText text = Generated(setup);
  EXPECT_EQ(text.reason, StopReason::kStopToken);
  EXPECT_EQ(text, Naive(setup));
  // The prompt in two chunks, and what is forced before the second choice.
  size_t num_asked = 0;
  for (const size_t rows : rows_wanted_) num_asked += rows;
  EXPECT_EQ(stats_.forced_tokens + num_asked, text.tokens.size());
  EXPECT_LT(calls_.size(), 8u);
  EXPECT_EQ(stats_.decoded_tokens + Prompt().size(), [&] {
    size_t sum = 0;
    for (const auto& call : calls_) sum += call.tokens.size();
    return sum;
  }());
  EXPECT_EQ(stats_.decoding_forwards + 2, calls_.size());
}

TEST_F(SessionConstraintTest, AForcedTextNeedsNoModelAtAll) {
  const ConstrainedText text = Generated({.pattern = "\\{\\}\\[\\]"});
  EXPECT_EQ(TextOf(text), "{}[]");
  EXPECT_EQ(text.reason, StopReason::kStopToken);
  EXPECT_EQ(stats_.forced_tokens, 4u);
  EXPECT_EQ(calls_.size(), 2u);
  for (const double log_probability : text.log_probabilities) EXPECT_EQ(log_probability, 0.0);
}

TEST_F(SessionConstraintTest, TheModelMayEndOnlyACompleteText) {
  // It wants to end at once.
  ConstrainedSetup setup = {.pattern = "[ab]{3}(c+d)?"};
  setup.script = [](std::span<const int32_t>) { return kEndToken; };
  const ConstrainedText text = Generated(setup);
  EXPECT_EQ(text.reason, StopReason::kStopToken);
  EXPECT_EQ(text, Naive(setup));
  EXPECT_EQ(TextOf(text), "aaa");
}

TEST_F(SessionConstraintTest, WithoutStopTokensTheTextEndsWhereNothingCanFollow) {
  ConstrainedSetup setup = {.pattern = "a{2}(b|c)", .stops = {}};
  const ConstrainedText text = Generated(setup);
  EXPECT_EQ(text.reason, StopReason::kStopToken);
  EXPECT_EQ(TextOf(text).size(), 3u);
  setup.pattern = "a+";
  setup.max_tokens = 9;
  EXPECT_EQ(Generated(setup).reason, StopReason::kMaxTokens);
}

TEST_F(SessionConstraintTest, ATextIsCompleteAtEveryLimit) {
  const auto matcher = constraints_.OfRegex("\\{\"n\": \\[((\\d|[abc]+), )*\\d?\\]\\}");
  for (size_t max_tokens = 9; max_tokens < 40; ++max_tokens) {
    ConstrainedSetup setup = {.pattern = "\\{\"n\": \\[((\\d|[abc]+), )*\\d?\\]\\}",
                              .sampler = kManyChoices,
                              .max_tokens = max_tokens};
    const ConstrainedText text = Generated(setup);
    EXPECT_LE(text.tokens.size(), max_tokens);
    matcher->Restart();
    for (const int32_t token : text.tokens) Unwrap(matcher->Accept(token));
    EXPECT_TRUE(Unwrap(matcher->FindNext({}, SIZE_MAX)).mask.may_end) << TextOf(text);
    EXPECT_EQ(text, Naive(setup)) << max_tokens;
  }
}

TEST_F(SessionConstraintTest, ATextIsCompleteWhenTheContextIsFull) {
  for (const size_t context : {48u, 49u, 64u}) {
    ConstrainedSetup setup = {
        .pattern = "\\{[abc]*\\}", .context_tokens = context, .sampler = kManyChoices};
    // It never ends by itself.
    setup.script = [](std::span<const int32_t>) { return kControlToken; };
    const ConstrainedText text = Generated(setup);
    EXPECT_TRUE(TextOf(text).ends_with("}")) << TextOf(text);
    EXPECT_EQ(text, Naive(setup));
    ExpectAsNaive(setup);
  }
}

TEST_F(SessionConstraintTest, AContextThatShiftsGoesOn) {
  const ConstrainedSetup setup = {.context_tokens = 64};
  for (const DraftOptions& drafts :
       {DraftOptions{}, DraftOptions{.ngram_tokens = 1, .max_tokens = 6, .min_tokens = 6}}) {
    ScriptedModel model(kVocabSize, setup.context_tokens, kWideChunk, setup.script);
    Scheduler scheduler(model);
    Session session(scheduler, drafts.has_drafts()
                                   ? std::make_unique<Drafting>(drafts, setup.context_tokens)
                                   : nullptr);
    Sampler sampler = Unwrap(Sampler::Create(kManyChoices, kVocabSize));
    const auto constraint = constraints_.OfRegex(setup.pattern);
    Unwrap(Turn(session).Prefill(Prompt()));
    Tokens tokens;
    size_t num_uncached = 0;
    const auto make_room = [&](Turn& turn) {
      num_uncached += model.cache().size() < session.tokens().size() ? 1 : 0;
      return turn.DropHalfBehind(4);
    };
    const StopReason reason = Unwrap(Generate(
        session, {.max_tokens = 300, .constraint = constraint.get(), .make_room = make_room},
        sampler, [&](const GeneratedToken& token) {
          tokens.push_back(token.id);
          return true;
        }));
    // Another object would be longer than the limit.
    EXPECT_EQ(reason, StopReason::kStopToken);
    EXPECT_GT(tokens.size(), 280u);
    EXPECT_LE(tokens.size(), 300u);
    EXPECT_GT(session.stats().dropped_tokens, 100u);
    EXPECT_EQ(num_uncached, 0u) << "all of a full context must be in the cache";
    const auto matcher = constraints_.OfRegex(setup.pattern);
    for (const int32_t token : tokens) Unwrap(matcher->Accept(token));
    EXPECT_TRUE(Unwrap(matcher->FindNext({}, SIZE_MAX)).mask.may_end);
  }
}

TEST_F(SessionConstraintTest, ATextCanBeStoppedAtEachTokenAndGoOn) {
  const ConstrainedSetup setup = {.sampler = kManyChoices, .max_tokens = 80};
  const Tokens expected = Naive(setup).tokens;
  for (const DraftOptions& drafts :
       {DraftOptions{}, DraftOptions{.ngram_tokens = 1, .max_tokens = 4, .min_tokens = 4}}) {
    for (size_t step = 1; step < 9; ++step) {
      ScriptedModel model(kVocabSize, setup.context_tokens, kWideChunk, setup.script);
      Scheduler scheduler(model);
      Session session(scheduler, drafts.has_drafts()
                                     ? std::make_unique<Drafting>(drafts, setup.context_tokens)
                                     : nullptr);
      Sampler sampler = Unwrap(Sampler::Create(setup.sampler, kVocabSize));
      const auto constraint = constraints_.OfRegex(setup.pattern);
      Unwrap(Turn(session).Prefill(Prompt()));
      Tokens tokens;
      while (tokens.size() < setup.max_tokens) {
        size_t count = 0;
        const StopReason reason = Unwrap(Generate(session,
                                                  {.max_tokens = setup.max_tokens - tokens.size(),
                                                   .stop_token_ids = setup.stops,
                                                   .constraint = constraint.get()},
                                                  sampler, [&](const GeneratedToken& token) {
                                                    tokens.push_back(token.id);
                                                    return ++count < step;
                                                  }));
        if (reason != StopReason::kCancelled) break;
        EXPECT_EQ(count, step);
      }
      EXPECT_EQ(tokens, expected) << step;
    }
  }
}

TEST_F(SessionConstraintTest, CancellingEndsAForcedText) {
  ScriptedModel model(kVocabSize, kRoomyContext, kWideChunk, RepeatObjects);
  Scheduler scheduler(model);
  Session session(scheduler);
  Sampler sampler = Unwrap(Sampler::Create({}, kVocabSize));
  const auto constraint = constraints_.OfRegex("9{50}1");
  Unwrap(Turn(session).Prefill(Prompt()));
  std::atomic<bool> cancel = false;
  size_t count = 0;
  const auto reason = Generate(session, {.constraint = constraint.get(), .cancel = &cancel},
                               sampler, [&](const GeneratedToken&) {
                                 cancel = ++count == 3;
                                 return true;
                               });
  EXPECT_EQ(Unwrap(reason), StopReason::kCancelled);
  EXPECT_EQ(count, 3u);
}

TEST_F(SessionConstraintTest, ATextThatNoTokenCanWriteIsAnError) {
  ScriptedModel model(kVocabSize, kRoomyContext, kWideChunk, RepeatObjects);
  Scheduler scheduler(model);
  Session session(scheduler);
  Sampler sampler = Unwrap(Sampler::Create({}, kVocabSize));
  const auto constraint = constraints_.OfRegex("az");
  Unwrap(Turn(session).Prefill(Prompt()));
  const auto reason = Generate(session, {.constraint = constraint.get()}, sampler,
                               [](const GeneratedToken&) { return true; });
  ASSERT_FALSE(reason);
  EXPECT_EQ(reason.error().code(), ErrorCode::kUnsupported);
}

TEST_F(SessionConstraintTest, AModelThatFailsCanBeAskedAgain) {
  const ConstrainedSetup setup = {.sampler = kManyChoices, .max_tokens = 100};
  const Tokens expected = Naive(setup).tokens;
  ScriptedModel model(kVocabSize, setup.context_tokens, kWideChunk, setup.script);
  Scheduler scheduler(model);
  Session session(scheduler);
  Sampler sampler = Unwrap(Sampler::Create(setup.sampler, kVocabSize));
  const auto constraint = constraints_.OfRegex(setup.pattern);
  Unwrap(Turn(session).Prefill(Prompt()));
  Tokens tokens;
  for (size_t i = 0; tokens.size() < setup.max_tokens && i < 100; ++i) {
    model.fail_at_call = i % 2 == 0 ? model.calls.size() + i % 5 : SIZE_MAX;
    const auto reason = Generate(session,
                                 {.max_tokens = setup.max_tokens - tokens.size(),
                                  .stop_token_ids = setup.stops,
                                  .constraint = constraint.get()},
                                 sampler, [&](const GeneratedToken& token) {
                                   tokens.push_back(token.id);
                                   return true;
                                 });
    if (reason) break;
    EXPECT_THAT(reason.error().message(), HasSubstr("the script says so"));
  }
  EXPECT_EQ(tokens, expected);
}

}  // namespace
}  // namespace cria
