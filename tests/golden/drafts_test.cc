// Trained models write the same with drafts as without: with n-grams, with a draft model and with
// both, with lengths from 1 to 16, greedily and with seeds. With CRIA_RANDOM_STEPS, every prompt is
// used greedily and with a seed, with every length, for int4 and int8.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "golden/test_data.h"
#include "llm/engine.h"
#include "llm/generator.h"
#include "llm/turn.h"
#include "support/convert_model.h"
#include "support/emulation.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria {
namespace {

// 50 prompts of different kinds.
std::vector<std::string> DraftPrompts() {
  const std::vector<std::string> beginnings = {"Once upon a time",
                                               "Hello! Who are you?",
                                               "one two three one two three one",
                                               "The little cat",
                                               "user\nWhere do you run?",
                                               "A list: a, b, c, a, b, c, a, b,",
                                               "Lily and Tom",
                                               "12 + 12 = 24, 13 + 13 =",
                                               "What is a KV cache? It is",
                                               "My name is Ann. My name is"};
  const std::vector<std::string> ends = {"", " there was", " and then", "\n\n", " the the the"};
  std::vector<std::string> prompts;
  for (const std::string& beginning : beginnings) {
    for (const std::string& end : ends) prompts.push_back(beginning + end);
  }
  return prompts;
}

std::vector<int32_t> Write(Session& session, const std::vector<int32_t>& prompt,
                           const SamplerOptions& options) {
  Sampler sampler = Unwrap(Sampler::Create(options, session.vocab_size()));
  Unwrap(Turn(session).Prefill(prompt));
  std::vector<int32_t> text;
  Unwrap(Generate(session, {.max_tokens = 30}, sampler, [&](const GeneratedToken& token) {
    text.push_back(token.id);
    return true;
  }));
  return text;
}

// A trained model in int4 or int8, with itself in f32 as its draft model.
class TrainedModel {
 public:
  TrainedModel(const std::filesystem::path& checkpoint, Scheme scheme) {
    const std::string model = Convert(checkpoint, "model.cria", scheme);
    engine_ = Unwrap(
        Engine::Load(model, {.num_threads = 1,
                             .context_tokens = 256,
                             .drafts = {.ngram_tokens = 2, .max_tokens = 16},
                             .draft_model_path = Convert(checkpoint, "draft.cria", Scheme::kF32)}));
  }

  // Compares what is written without drafts with what is written with drafts of every kind, whose
  // forced lengths are `lengths`.
  void ExpectSameText(const std::string& text, const SamplerOptions& sampling,
                      std::span<const size_t> lengths) {
    const std::vector<int32_t> prompt = Unwrap(engine_->tokenizer().Encode(text));
    const std::vector<int32_t> expected =
        Write(*engine_->NewSession(/*with_drafts=*/false), prompt, sampling);
    const auto expect_same = [&](const DraftOptions& drafts) {
      Session session(
          engine_->scheduler(),
          std::make_unique<Drafting>(drafts, engine_->decoder().context_tokens(),
                                     drafts.has_model ? engine_->NewDrafter() : nullptr));
      EXPECT_EQ(Write(session, prompt, sampling), expected) << text << ", " << drafts.max_tokens;
      num_accepted_ += session.stats().accepted_tokens;
      num_drafted_ += session.stats().drafted_tokens;
      ++num_compared_;
    };
    for (const size_t length : lengths) {
      expect_same({.ngram_tokens = 1, .max_tokens = length, .min_tokens = length});
      expect_same({.max_tokens = length, .min_tokens = length, .has_model = true});
      expect_same({.ngram_tokens = 2, .max_tokens = length, .min_tokens = 1, .has_model = true});
    }
    expect_same({.ngram_tokens = 2});
    expect_same({.has_model = true});
    expect_same({.ngram_tokens = 2, .has_model = true});
  }

  void ExpectThatDraftsWereRightAndWrong() const {
    std::printf("%zu texts with drafts compared, %zu of %zu drafts accepted\n", num_compared_,
                num_accepted_, num_drafted_);
    EXPECT_GT(num_accepted_, num_drafted_ / 10);
    EXPECT_LT(num_accepted_, num_drafted_);
  }

 private:
  std::string Convert(const std::filesystem::path& checkpoint, const char* name, Scheme scheme) {
    const std::filesystem::path path = directory_.path() / name;
    support::ConvertModel(checkpoint, path,
                          {.weights = scheme, .embedding = scheme, .head = scheme});
    return path.string();
  }

  support::TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
  size_t num_accepted_ = 0;
  size_t num_drafted_ = 0;
  size_t num_compared_ = 0;
};

void ExpectSameTexts(const std::filesystem::path& checkpoint) {
  const std::vector<std::string> prompts = DraftPrompts();
  if (std::getenv("CRIA_RANDOM_STEPS") == nullptr) {
    TrainedModel model(checkpoint, Scheme::kQb4w);
    // Some beginnings with one end and one length each.
    for (size_t i = 0; i < prompts.size(); i += support::IsEmulated() ? 24 : 6) {
      const std::vector<size_t> lengths = {1 + i % 16};
      model.ExpectSameText(prompts[i], {.temperature = i % 4 < 2 ? 0.0f : 0.8f, .seed = i},
                           lengths);
    }
    model.ExpectThatDraftsWereRightAndWrong();
    return;
  }
  std::vector<size_t> lengths(16);
  std::iota(lengths.begin(), lengths.end(), 1);
  for (const Scheme scheme : {Scheme::kQb4w, Scheme::kQc8w}) {
    TrainedModel model(checkpoint, scheme);
    for (size_t i = 0; i < prompts.size(); ++i) {
      for (const float temperature : {0.0f, 0.8f}) {
        model.ExpectSameText(prompts[i], {.temperature = temperature, .seed = i}, lengths);
      }
    }
    model.ExpectThatDraftsWereRightAndWrong();
  }
}

TEST(Drafts, TheDemoWritesTheSame) { ExpectSameTexts(support::kDemoCheckpoint); }

TEST(Drafts, Stories260KWritesTheSame) {
  CRIA_NEEDS_TEST_DATA("stories260K");
  ExpectSameTexts(ExternalTestData() / "stories260K");
}

}  // namespace
}  // namespace cria
