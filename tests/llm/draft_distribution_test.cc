// With drafts, tokens have the distribution of the model: chi-squared tests of what many seeds
// choose, against the probabilities that follow from the model's logits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "llm/generator.h"
#include "llm/tiny_engine.h"
#include "llm/turn.h"
#include "support/emulation.h"
#include "xnn/row_bits.h"

namespace cria {
namespace {

using Text = std::vector<int32_t>;

constexpr size_t kTextContext = 512;
constexpr size_t kDraftTokens = 2;
// The first token follows the prompt, and the others are drafted.
constexpr size_t kPathTokens = 1 + kDraftTokens;
constexpr size_t kTopK = 3;
constexpr float kTemperature = 1.5f;

using Probabilities = std::map<Text, double>;
using Counts = std::map<Text, size_t>;

size_t NumSeeds() { return support::IsEmulated() ? 400 : 3000; }

// The steps of the sampler in double precision, on the logits behind `context`.
std::vector<std::pair<int32_t, double>> NextTokens(Session& session, const Text& context) {
  Turn turn(session);
  Unwrap(turn.Prefill(context));
  const LogitRows rows = Unwrap(turn.Logits());
  const std::span<const float> logits = rows.front();
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  std::ranges::stable_sort(ids, [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  std::vector<std::pair<int32_t, double>> next;
  double sum = 0.0;
  for (size_t i = 0; i < kTopK; ++i) {
    const double weight = std::exp((logit(ids[i]) - logit(ids[0])) / kTemperature);
    next.emplace_back(ids[i], weight);
    sum += weight;
  }
  for (auto& [id, weight] : next) weight /= sum;
  return next;
}

// The probabilities of all texts of kPathTokens behind the prompt.
Probabilities PathsBehind(Session& session, const Text& prompt) {
  Probabilities paths = {{{}, 1.0}};
  for (size_t length = 0; length < kPathTokens; ++length) {
    Probabilities longer;
    for (const auto& [path, probability] : paths) {
      Text context = prompt;
      context.insert(context.end(), path.begin(), path.end());
      for (const auto& [id, share] : NextTokens(session, context)) {
        Text next = path;
        next.push_back(id);
        longer[next] = probability * share;
      }
    }
    paths = std::move(longer);
  }
  return paths;
}

// Pearson's statistic, less what it exceeds with a probability of 1 in 10,000 if the counts have
// these probabilities (Wilson and Hilferty 1931). Paths that are expected less than five times are
// one cell.
double Excess(const Counts& counts, const Probabilities& paths, size_t num_draws) {
  double statistic = 0.0;
  double degrees = -1.0;
  double rare_expected = 0.0;
  double rare_count = 0.0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    degrees += 1.0;
  };
  size_t num_counted = 0;
  for (const auto& [path, probability] : paths) {
    const double expected = probability * static_cast<double>(num_draws);
    const auto found = counts.find(path);
    const size_t count = found == counts.end() ? 0 : found->second;
    num_counted += count;
    if (expected >= 5.0) {
      add(static_cast<double>(count), expected);
    } else {
      rare_expected += expected;
      rare_count += static_cast<double>(count);
    }
  }
  EXPECT_EQ(num_counted, num_draws) << "a text that has no probability was chosen";
  if (rare_expected > 0.0) add(rare_count, rare_expected);
  EXPECT_GT(degrees, 8.0) << "the model is too sure of its tokens for this test";
  constexpr double kQuantile = 3.719;  // A quantile of the normal distribution.
  const double variance = 2.0 / (9.0 * degrees);
  return statistic - degrees * std::pow(1.0 - variance + kQuantile * std::sqrt(variance), 3);
}

ConvertOptions WithWeights(Scheme scheme) {
  return {.weights = scheme, .embedding = scheme, .head = scheme};
}

class DraftDistribution : public testing::Test {
 protected:
  // What all tests share, because converting models takes most of their time.
  struct Models {
    Models() {
      const auto session = engine->NewSession(/*with_drafts=*/false);
      // All tokens, so that n-grams find each.
      const size_t vocab_size = session->vocab_size();
      for (size_t i = 0; i < vocab_size; ++i) {
        prompt.push_back(static_cast<int32_t>(i * 7 % vocab_size));
      }
      // What is likely behind the last one, and the last one again, so that n-grams are often
      // right.
      const int32_t last = prompt.back();
      for (const auto& [path, probability] : PathsBehind(*session, prompt)) {
        if (probability > 0.05) prompt.insert(prompt.end(), path.begin(), path.end());
      }
      prompt.push_back(last);
      paths = PathsBehind(*session, prompt);
    }

    TinyModelFile model{support::SpecGqa(), kTextContext, WithWeights(Scheme::kQb4w)};
    TinyModelFile draft_model{support::SpecGqa(), kTextContext, WithWeights(Scheme::kQc8w)};
    std::unique_ptr<Engine> engine =
        Unwrap(Engine::Load(model.path(), {.num_threads = 1,
                                           .context_tokens = kTextContext,
                                           .drafts = {.max_tokens = kDraftTokens},
                                           .draft_model_path = draft_model.path()}));
    Text prompt;
    Probabilities paths;
  };

  static void SetUpTestSuite() {
    if (xnn::RowsAreBitwiseAsAlone(Scheme::kQb4w)) models = new Models;
  }
  static void TearDownTestSuite() { delete models; }

  void SetUp() override {
    if (models == nullptr) GTEST_SKIP() << "there are no drafts on this processor";
  }

  static Counts Draw(Session& session) {
    Counts counts;
    for (size_t seed = 0; seed < NumSeeds(); ++seed) {
      Sampler sampler = Unwrap(Sampler::Create(
          {.top_k = kTopK, .top_p = 1.0f, .min_p = 0.0f, .temperature = kTemperature, .seed = seed},
          session.vocab_size()));
      Unwrap(Turn(session).Prefill(models->prompt));
      Text path;
      Unwrap(Generate(session, {.max_tokens = kPathTokens + 1}, sampler, [&](auto& token) {
        if (path.size() < kPathTokens) path.push_back(token.id);
        return true;
      }));
      ++counts[path];
    }
    return counts;
  }

  static void ExpectTheModels(DraftOptions options) {
    Engine& engine = *models->engine;
    options.max_tokens = kDraftTokens;
    options.min_tokens = kDraftTokens;
    Session session(engine.scheduler(),
                    std::make_unique<Drafting>(options, kTextContext,
                                               options.has_model ? engine.NewDrafter() : nullptr));
    EXPECT_LT(Excess(Draw(session), models->paths, NumSeeds()), 0.0);
    const SessionStats& stats = session.stats();
    EXPECT_GE(stats.drafted_tokens, NumSeeds() * kDraftTokens);
    EXPECT_LT(stats.accepted_tokens, stats.drafted_tokens);
    EXPECT_GT(stats.accepted_tokens, stats.drafted_tokens / 20);
  }

  static Models* models;
};

DraftDistribution::Models* DraftDistribution::models = nullptr;

TEST_F(DraftDistribution, OfNgramsIsTheModels) { ExpectTheModels({.ngram_tokens = 1}); }

// It chooses with the same random numbers, and so its drafts depend on what is going to be chosen.
TEST_F(DraftDistribution, OfADraftModelIsTheModels) { ExpectTheModels({.has_model = true}); }

TEST_F(DraftDistribution, WithoutDraftsIsTheModels) {
  const auto session = models->engine->NewSession(/*with_drafts=*/false);
  EXPECT_LT(Excess(Draw(*session), models->paths, NumSeeds()), 0.0);
}

// The test must be able to fail: a draft that is kept with its probability, and replaced by any
// token otherwise, is chosen too often.
TEST_F(DraftDistribution, AWrongRuleIsFound) {
  std::mt19937_64 random(1);
  const auto draw = [&] {
    double rest = std::generate_canonical<double, 53>(random);
    for (const auto& [path, probability] : models->paths) {
      rest -= probability;
      if (rest < 0.0) return path;
    }
    return models->paths.rbegin()->first;
  };
  const Text draft = std::ranges::max_element(models->paths, {}, [](const auto& path) {
                       return path.second;
                     })->first;
  constexpr size_t kNumDraws = 3000;
  Counts right, wrong;
  for (size_t i = 0; i < kNumDraws; ++i) {
    const Text first = draw();
    ++right[first];
    ++wrong[first == draft ? draft : draw()];
  }
  EXPECT_LT(Excess(right, models->paths, kNumDraws), 0.0);
  EXPECT_GT(Excess(wrong, models->paths, kNumDraws), 0.0);
}

}  // namespace
}  // namespace cria
