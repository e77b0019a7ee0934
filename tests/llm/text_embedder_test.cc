// Embeddings against pooled hidden states of the reference decoder, beside other texts, and with
// bad input.

#include "llm/text_embedder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <latch>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "llm/pooled_hidden.h"
#include "llm/scheduler_fixture.h"
#include "llm/tiny_engine.h"
#include "reference/reference_decoder.h"
#include "support/sleeping_thread.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

constexpr size_t kTinyContext = 128;
constexpr Pooling kPoolings[] = {Pooling::kLast, Pooling::kMean};

Tokens SomeText(size_t count, uint32_t seed) {
  Tokens tokens(count);
  std::mt19937 random(seed);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 250);
  return tokens;
}

// Pools by the definition, in float64.
std::vector<double> ReferenceEmbedding(const reference::ReferenceModel& model, const Tokens& text,
                                       Pooling pooling) {
  reference::ReferenceDecoder decoder(model);
  std::vector<double> pooled(model.config.hidden_size);
  for (const int32_t token : text) {
    decoder.Step(token);
    for (size_t i = 0; i < pooled.size(); ++i) {
      const double hidden = decoder.hidden()[i];
      pooled[i] = pooling == Pooling::kLast ? hidden
                                            : pooled[i] + hidden / static_cast<double>(text.size());
    }
  }
  double square = 0.0;
  for (const double value : pooled) square += value * value;
  for (double& value : pooled) value /= std::sqrt(square);
  return pooled;
}

std::vector<float> EmbeddingOf(Engine& engine, const Tokens& text, Pooling pooling) {
  TextEmbedder embedder(engine.scheduler());
  std::vector<float> embedding(engine.decoder().hidden_size());
  Unwrap(embedder.Embed(text, {.pooling = pooling}, embedding));
  return embedding;
}

std::unique_ptr<Engine> LoadForTexts(const TinyModelFile& model, size_t num_sequences = 1) {
  return Unwrap(Engine::Load(model.path(), {.num_threads = 1,
                                            .context_tokens = num_sequences * kTinyContext,
                                            .num_sequences = num_sequences,
                                            .chunk_tokens = 16,
                                            .kv_type = KvType::kF32}));
}

TEST(TextEmbedder, PoolsAsTheReference) {
  // Causal attention, a window, and a tied head.
  for (const auto& make : {support::SpecGqa, support::SpecMinistral, support::SpecQwen3}) {
    const support::CheckpointSpec spec = make();
    const reference::ReferenceModel reference = support::MakeModel(spec);
    const TinyModelFile model(spec, 0, {.weights = Scheme::kF32});
    const auto engine = LoadForTexts(model);
    // A chunk has 16 tokens.
    for (const size_t length : {1, 2, 16, 17, 50}) {
      const Tokens text = SomeText(length, static_cast<uint32_t>(length));
      for (const Pooling pooling : kPoolings) {
        const std::vector<double> expected = ReferenceEmbedding(reference, text, pooling);
        const std::vector<float> embedding = EmbeddingOf(*engine, text, pooling);
        double cosine = 0.0;
        double square = 0.0;
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_NEAR(embedding[i], expected[i], 1e-5);
          cosine += embedding[i] * expected[i];
          square += static_cast<double>(embedding[i]) * embedding[i];
        }
        EXPECT_GT(cosine, 0.999999) << length;
        EXPECT_NEAR(square, 1.0, 1e-5);
      }
    }
  }
}

TEST(TextEmbedder, AVectorThatIsNotNormalizedIsTheMean) {
  const TinyModelFile model(support::SpecGqa(), 0, {.weights = Scheme::kF32});
  const auto engine = LoadForTexts(model);
  TextEmbedder embedder(engine->scheduler());
  const auto plain = [&](std::span<const int32_t> text, Pooling pooling) {
    std::vector<float> vector(engine->decoder().hidden_size());
    Unwrap(embedder.Embed(text, {.pooling = pooling, .is_normalized = false}, vector));
    return vector;
  };
  const Tokens text = SomeText(20, 1);
  std::vector<double> mean(engine->decoder().hidden_size());
  for (size_t length = 1; length <= text.size(); ++length) {
    const std::vector<float> last = plain(std::span(text).first(length), Pooling::kLast);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += last[i] / static_cast<double>(text.size());
  }
  const std::vector<float> pooled = plain(text, Pooling::kMean);
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(pooled[i], mean[i], 1e-5);
}

// Also while another session generates, whose text is not changed either.
TEST(TextEmbedder, TextsTogetherAreAsAlone) {
  constexpr size_t kTexts = 6;
  const TinyModelFile model(support::SpecGqa(), kTinyContext, {.weights = Scheme::kQc8w});
  const auto engine = LoadForTexts(model, 4);
  const auto text = [](size_t i) { return SomeText(1 + 13 * i, static_cast<uint32_t>(i)); };
  std::vector<std::vector<float>> alone;
  for (size_t i = 0; i < kTexts; ++i) {
    for (const Pooling pooling : kPoolings) {
      alone.push_back(EmbeddingOf(*engine, text(i), pooling));
    }
  }
  const auto generate = [&] {
    const std::unique_ptr<Session> session = engine->NewSession();
    Turn turn(*session, {.max_tokens = 60});
    Unwrap(turn.Prefill(SomeText(20, 99)));
    Sampler sampler = Unwrap(engine->NewSampler({.temperature = 0.0f}));
    Tokens generated;
    Unwrap(Generate(turn, {.max_tokens = 60}, sampler, [&](const GeneratedToken& token) {
      generated.push_back(token.id);
      return true;
    }));
    return generated;
  };
  const Tokens text_alone = generate();
  std::vector<std::vector<float>> together(alone.size());
  Tokens text_together;
  {
    std::latch begun(static_cast<ptrdiff_t>(kTexts) + 1);
    std::vector<std::jthread> threads;
    threads.reserve(kTexts + 1);
    threads.emplace_back([&] {
      begun.arrive_and_wait();
      text_together = generate();
    });
    for (size_t i = 0; i < kTexts; ++i) {
      threads.emplace_back([&, i] {
        begun.arrive_and_wait();
        for (size_t pooling = 0; pooling < 2; ++pooling) {
          together[2 * i + pooling] = EmbeddingOf(*engine, text(i), kPoolings[pooling]);
        }
      });
    }
  }
  EXPECT_EQ(together, alone);
  EXPECT_EQ(text_together, text_alone);
}

TEST_F(SchedulerTest, TextsThatWaitAreOneBatch) {
  Load(3, kContext, 32);
  Session session(*scheduler_);
  std::array<std::atomic<pid_t>, 2> ids = {};
  std::array<float, 2> embeddings = {};
  std::vector<std::jthread> threads;
  threads.reserve(ids.size());
  {
    // Holds logits, so that the others wait.
    Turn turn(session, {.max_tokens = 1});
    Unwrap(turn.Prefill(Prompt(5, 9)));
    for (size_t i = 0; i < ids.size(); ++i) {
      threads.emplace_back([&, i] {
        ids[i] = support::ThisThread();
        TextEmbedder embedder(*scheduler_);
        Unwrap(embedder.Embed(Prompt(7 + i, static_cast<int32_t>(i)), {.pooling = Pooling::kMean},
                              std::span(embeddings).subspan(i, 1)));
      });
    }
    support::Await([&] {
      return std::ranges::all_of(ids, [](pid_t id) { return id != 0 && support::IsAsleep(id); });
    });
    model_->rows_read.clear();
  }
  threads.clear();
  EXPECT_THAT(embeddings, testing::Each(1.0f));
  EXPECT_THAT(model_->sequences_run, testing::ElementsAre(1, 2));
  EXPECT_THAT(model_->rows_read, testing::IsEmpty()) << "no logits are computed";
}

TEST_F(SchedulerTest, NothingOfATextStaysInTheCache) {
  Load(1);
  Session session(*scheduler_);
  ASSERT_EQ(Answer(session, Prompt(30, 1), 3).error, "");
  TextEmbedder embedder(*scheduler_);
  float embedding = 0.0f;
  Unwrap(embedder.Embed(Prompt(30, 1), {.pooling = Pooling::kMean}, {&embedding, 1}));
  EXPECT_EQ(embedding, 1.0f);
  // All tokens were run, although the cache had them, because a mean needs each hidden state.
  EXPECT_EQ(model_->tokens_run(), 30u + 2u + 30u);
  EXPECT_EQ(NumUsedPages(), 0u);
}

TEST_F(SchedulerTest, TextsThatCannotBeEmbeddedAreRefused) {
  Load(1, 64);
  TextEmbedder embedder(*scheduler_);
  std::vector<float> embedding(1);
  const auto error = [&](const Tokens& text, std::span<float> to,
                         const std::atomic<bool>* cancel = nullptr) {
    const Status status = embedder.Embed(text, {}, to, cancel);
    return status ? std::string() : std::string(status.error().message());
  };
  EXPECT_THAT(error({}, embedding), testing::HasSubstr("empty"));
  EXPECT_THAT(error(Prompt(65, 1), embedding), testing::HasSubstr("the context holds 64"));
  EXPECT_THAT(error({5, -1}, embedding), testing::HasSubstr("token id -1"));
  EXPECT_THAT(error({5, 100}, embedding), testing::HasSubstr("token id 100"));
  std::vector<float> larger(2);
  EXPECT_THAT(error({5}, larger), testing::HasSubstr("1 numbers, and there is room for 2"));
  const std::atomic<bool> cancel = true;
  EXPECT_THAT(error({5}, embedding, &cancel), testing::HasSubstr("stopped"));
  EXPECT_TRUE(model_->calls.empty());
  EXPECT_EQ(error(Prompt(64, 1), embedding), "");
}

TEST(PooledHidden, NormalizesAllButZeros) {
  std::vector<float> vector = {3.0f, -4.0f};
  PooledHidden::Normalize(vector);
  EXPECT_THAT(vector, testing::ElementsAre(0.6f, -0.8f));
  std::vector<float> zeros(3, 0.0f);
  PooledHidden::Normalize(zeros);
  EXPECT_THAT(zeros, testing::Each(0.0f));
  // Their squares are no floats.
  std::vector<float> large(4, std::numeric_limits<float>::max());
  PooledHidden::Normalize(large);
  EXPECT_THAT(large, testing::Each(0.5f));
}

}  // namespace
}  // namespace cria
