// Sessions of one engine in several threads against the same requests one after another. With
// CRIA_RANDOM_STEPS, more requests are made.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "llm/generator.h"
#include "llm/session_file.h"
#include "llm/tiny_engine.h"
#include "llm/turn.h"
#include "support/emulation.h"
#include "support/temporary_directory.h"
#include "xnn/row_bits.h"

namespace cria {
namespace {

using Tokens = std::vector<int32_t>;

constexpr size_t kVocabulary = 250;
constexpr size_t kContextTokens = 1024;
constexpr size_t kKeptTokens = 8;

// One request of a random test.
struct Step {
  Tokens prompt;
  size_t drop_first = 0;
  size_t drop_count = 0;  // Tokens of the prompt, after it was read; 0: none.
  size_t max_tokens = 0;
  bool is_cancelled = false;
  bool goes_on_from_file = false;  // Saved after the answer, and continued by another session.
};

Step RandomStep(std::mt19937& random) {
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  Step step;
  // One of three texts is the beginning of every prompt.
  std::mt19937 text(static_cast<uint32_t>(below(3)));
  for (size_t count = 1 + below(150); count > 0; --count) {
    step.prompt.push_back(static_cast<int32_t>(text() % kVocabulary));
  }
  for (size_t count = below(40); count > 0; --count) {
    step.prompt.push_back(static_cast<int32_t>(below(kVocabulary)));
  }
  if (below(4) == 0 && step.prompt.size() > kKeptTokens + 1) {
    step.drop_first = kKeptTokens;
    step.drop_count = 1 + below(step.prompt.size() - kKeptTokens - 1);
  }
  step.max_tokens = 1 + below(12);
  step.is_cancelled = below(10) == 0;
  step.goes_on_from_file = below(12) == 0;
  return step;
}

Tokens Generate(Turn& turn, size_t max_tokens) {
  Sampler sampler = Unwrap(Sampler::Create({.temperature = 0.0f}, 300));
  Tokens generated;
  Unwrap(Generate(turn, {.max_tokens = max_tokens}, sampler, [&](const GeneratedToken& token) {
    generated.push_back(token.id);
    return true;
  }));
  return generated;
}

// Does the step with a session of its own or, if it is cancelled, begins it.
Tokens Answer(Engine& engine, const Step& step, const std::string& path) {
  const std::unique_ptr<Session> own_session = engine.NewSession();
  Session& session = *own_session;
  std::atomic<bool> cancel = step.is_cancelled;
  // After the request, others may take what a drop has left, which cannot be computed again.
  Turn turn(session,
            {.max_tokens = step.max_tokens, .kept_tokens = kKeptTokens, .cancel = &cancel});
  const Status read = turn.Prefill(step.prompt);
  if (!read && read.error().code() == ErrorCode::kCancelled) return {};
  Unwrap(read);
  if (step.drop_count > 0) Unwrap(turn.Drop(step.drop_first, step.drop_count));
  Tokens generated = Generate(turn, step.max_tokens);
  if (step.goes_on_from_file) {
    Unwrap(SaveSession(path, SessionContent::kText, {}, turn, session.tokens().size(), engine));
  }
  return generated;
}

// Goes on from the file of another session.
Tokens Continue(Engine& engine, const std::string& path) {
  const std::unique_ptr<Session> own_session = engine.NewSession();
  Session& session = *own_session;
  Turn turn(session, {.max_tokens = 5});
  EXPECT_EQ(Unwrap(LoadSession(path, SessionContent::kText, engine, turn)).why_read_again, "");
  return Generate(turn, 5);
}

Tokens AnswerAndContinue(Engine& engine, const Step& step, const std::string& path) {
  Tokens generated = Answer(engine, step, path);
  if (generated.empty() || !step.goes_on_from_file) return generated;
  const Tokens more = Continue(engine, path);
  generated.insert(generated.end(), more.begin(), more.end());
  return generated;
}

size_t NumSteps() {
  if (const char* steps = std::getenv("CRIA_RANDOM_STEPS"))
    return std::strtoull(steps, nullptr, 10);
  return support::IsEmulated() ? 12 : 120;
}

struct ParallelCase {
  const char* name;
  size_t num_sequences;
  Scheme weights;
  KvType kv_type;
};

class ParallelSessions : public testing::TestWithParam<ParallelCase> {};

TEST_P(ParallelSessions, AnswerAsOneAfterAnother) {
  constexpr size_t kThreads = 4;
  const auto& [name, max_sequences, weights, kv_type] = GetParam();
  // Where f32 products round rows differently beside other rows, this is too small to change a
  // token.
  const TinyModelFile model(support::SpecGqa(), kContextTokens, {.weights = weights});
  const support::TemporaryDirectory folder;
  const auto load = [&](size_t num_sequences, const DraftOptions& drafts) {
    return Unwrap(Engine::Load(model.path(), {.num_threads = 2,
                                              .context_tokens = kContextTokens,
                                              .num_sequences = num_sequences,
                                              .kv_type = kv_type,
                                              .drafts = drafts}));
  };
  // Drafts change nothing, and share a small room.
  const auto engine = load(max_sequences, {.ngram_tokens = 1, .max_tokens = 5, .min_tokens = 1});
  const auto alone = load(1, {});
  const size_t num_steps = NumSteps() / kThreads;
  std::vector<std::vector<Step>> steps(kThreads);
  std::vector<std::vector<Tokens>> answers(kThreads);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        std::mt19937 random(static_cast<uint32_t>(100 * max_sequences + i));
        for (size_t k = 0; k < num_steps; ++k) {
          steps[i].push_back(RandomStep(random));
          const std::string path = folder / std::to_string(i).c_str();
          answers[i].push_back(AnswerAndContinue(*engine, steps[i].back(), path));
        }
      });
    }
  }
  for (size_t i = 0; i < kThreads; ++i) {
    for (size_t k = 0; k < num_steps; ++k) {
      EXPECT_EQ(answers[i][k], AnswerAndContinue(*alone, steps[i][k], folder / "alone"))
          << i << ", " << k;
    }
  }
  // A few steps may find nothing to share.
  if (NumSteps() >= 100) {
    EXPECT_GT(engine->scheduler().stats().num_shared_tokens, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ParallelSessions,
                         testing::Values(ParallelCase{"TwoF32", 2, Scheme::kF32, KvType::kF32},
                                         ParallelCase{"FourF32", 4, Scheme::kF32, KvType::kF32},
                                         ParallelCase{"FourF16", 4, Scheme::kF32, KvType::kF16},
                                         ParallelCase{"FourInt8", 4, Scheme::kQc8w, KvType::kInt8},
                                         ParallelCase{"ThreeInt4", 3, Scheme::kQb4w,
                                                      KvType::kInt8}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace cria
