// Which conversations find their beginning in the KV cache.

#include "server/work/session_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "llm/generator.h"
#include "llm/tiny_engine.h"
#include "llm/turn.h"

namespace cria::server {
namespace {

using Tokens = std::vector<int32_t>;

constexpr size_t kSequences = 3;

class SessionPoolTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = std::make_unique<TinyModelFile>(support::SpecGqa(), 1024);
  }
  static void TearDownTestSuite() { model_.reset(); }

  // Reads a prompt and generates; returns how many tokens of the prompt were found.
  size_t Answer(const Tokens& prompt, Tokens* context = nullptr) {
    const SessionPool::Lease lease = pool_.Take(prompt);
    Session& session = lease.session();
    Turn turn(session, {.max_tokens = 8});
    Unwrap(turn.Prefill(prompt));
    Sampler sampler = Unwrap(Sampler::Create({.temperature = 0.0f}, session.vocab_size()));
    Unwrap(Generate(turn, {.max_tokens = 8}, sampler, [](const GeneratedToken&) { return true; }));
    if (context != nullptr) context->assign(session.tokens().begin(), session.tokens().end());
    last_index_ = lease.index();
    return session.stats().reused_tokens;
  }

  static std::unique_ptr<TinyModelFile> model_;
  std::unique_ptr<Engine> engine_ = Unwrap(Engine::Load(
      model_->path(), {.num_threads = 1, .context_tokens = 1024, .num_sequences = kSequences}));
  SessionPool pool_{*engine_};
  size_t last_index_ = 0;
};

std::unique_ptr<TinyModelFile> SessionPoolTest::model_;

Tokens Random(size_t count, uint32_t seed) {
  Tokens tokens(count);
  std::mt19937 random(seed);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 250);
  return tokens;
}

Tokens Joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(SessionPoolTest, TheSecondTurnRunsOnlyWhatIsNew) {
  Tokens context;
  EXPECT_EQ(Answer(Random(100, 1), &context), 0u);
  const size_t index = last_index_;
  // The last generated token is not in the cache yet.
  EXPECT_EQ(Answer(Joined(context, Random(20, 2))), context.size() - 1);
  EXPECT_EQ(last_index_, index);
}

TEST_F(SessionPoolTest, AnotherUserSharesTheSystemPrompt) {
  const Tokens system = Random(100, 1);
  EXPECT_EQ(Answer(Joined(system, Random(150, 2))), 0u);
  const size_t first = last_index_;
  EXPECT_EQ(Answer(Joined(system, Random(150, 3))), 100u);
  EXPECT_NE(last_index_, first);
}

TEST_F(SessionPoolTest, AsManyConversationsAsSequencesTakeTurnsWithoutForgetting) {
  const Tokens system = Random(40, 1);
  std::vector<Tokens> contexts(kSequences);
  for (size_t i = 0; i < kSequences; ++i) {
    Answer(Joined(system, Random(100, static_cast<uint32_t>(i) + 2)), &contexts[i]);
  }
  for (uint32_t turn = 0; turn < 3; ++turn) {
    for (size_t i = 0; i < kSequences; ++i) {
      const size_t before = contexts[i].size();
      EXPECT_EQ(Answer(Joined(contexts[i], Random(10, turn)), &contexts[i]), before - 1)
          << turn << ", " << i;
    }
  }
}

TEST_F(SessionPoolTest, AnotherTextTakesTheSessionThatWasUsedLeastRecently) {
  std::vector<size_t> indices;
  for (uint32_t i = 0; i < kSequences; ++i) {
    Answer(Random(50, i + 1));
    indices.push_back(last_index_);
  }
  Answer(Random(50, 1));  // Uses the first one again.
  EXPECT_EQ(last_index_, indices[0]);
  Answer(Random(50, 77));
  EXPECT_EQ(last_index_, indices[1]);
}

TEST_F(SessionPoolTest, SessionsInUseAreNotTaken) {
  Tokens context;
  Answer(Random(50, 1), &context);
  const SessionPool::Lease lease = pool_.Take(context);
  EXPECT_EQ(lease.index(), last_index_);
  const SessionPool::Lease other = pool_.Take(context);
  EXPECT_NE(other.index(), lease.index());
  const auto figures = pool_.figures();
  EXPECT_TRUE(figures[lease.index()].is_busy);
  EXPECT_TRUE(figures[other.index()].is_busy);
}

TEST_F(SessionPoolTest, FiguresTellTheTokensOfFreeSessions) {
  Tokens context;
  Answer(Random(50, 1), &context);
  const auto figures = pool_.figures();
  ASSERT_EQ(figures.size(), kSequences);
  EXPECT_FALSE(figures[last_index_].is_busy);
  EXPECT_EQ(figures[last_index_].num_tokens, context.size());
  EXPECT_EQ(figures[last_index_].num_uses, 1u);
}

TEST_F(SessionPoolTest, ThereIsNoConstraintUnlessTheEngineHasSome) {
  EXPECT_EQ(pool_.Take({}).constraint(), nullptr);
}

}  // namespace
}  // namespace cria::server
