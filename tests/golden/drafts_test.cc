// Trained models write the same with drafts as without: with n-grams, with a draft model and with
// both, with lengths from 1 to 16, greedily and with seeds. With CRIA_RANDOM_STEPS, every prompt is
// used.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "golden/test_data.h"
#include "llm/engine.h"
#include "support/convert_model.h"
#include "support/emulation.h"
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
  Unwrap(session.Prefill(prompt));
  std::vector<int32_t> text;
  Unwrap(session.Generate({.max_tokens = 30}, sampler, [&](const GeneratedToken& token) {
    text.push_back(token.id);
    return true;
  }));
  return text;
}

void ExpectSameTexts(const std::filesystem::path& checkpoint) {
  const support::TemporaryDirectory directory;
  const auto convert = [&](const char* name, Scheme scheme) {
    const std::filesystem::path path = directory.path() / name;
    support::ConvertModel(checkpoint, path,
                          {.weights = scheme, .embedding = scheme, .head = scheme});
    return path.string();
  };
  const std::string model = convert("model.cria", Scheme::kQb4w);
  const EngineOptions options = {.num_threads = 1,
                                 .context_tokens = 256,
                                 .drafts = {.ngram_tokens = 2, .max_tokens = 16},
                                 .draft_model_path = convert("draft.cria", Scheme::kF32)};
  const auto engine = Unwrap(Engine::Load(model, options));
  ASSERT_TRUE(engine->memory_plan().options.drafts.has_model);
  SessionStats sum;
  const std::vector<std::string> prompts = DraftPrompts();
  // By default, some beginnings with one end each.
  const bool uses_all = std::getenv("CRIA_RANDOM_STEPS") != nullptr;
  const size_t step = uses_all ? 1 : support::IsEmulated() ? 24 : 6;
  for (size_t index = 0; index < prompts.size(); index += step) {
    const std::string& text = prompts[index];
    const std::vector<int32_t> prompt = Unwrap(engine->tokenizer().Encode(text));
    const float temperature = index % 4 < 2 ? 0.0f : 0.8f;
    const SamplerOptions sampling = {.temperature = temperature, .seed = index};
    Session without(engine->scheduler());
    const std::vector<int32_t> expected = Write(without, prompt, sampling);
    const size_t length = 1 + index % 16;
    for (const DraftOptions& drafts :
         {DraftOptions{.ngram_tokens = 1, .max_tokens = length, .min_tokens = length},
          DraftOptions{.max_tokens = length, .min_tokens = length, .has_model = true},
          DraftOptions{.ngram_tokens = 2, .max_tokens = length, .min_tokens = 1, .has_model = true},
          DraftOptions{.ngram_tokens = 2, .has_model = true}}) {
      Session session(engine->scheduler(),
                      std::make_unique<Drafting>(
                          drafts, engine->decoder().context_tokens(),
                          drafts.has_model ? &engine->draft_engine()->scheduler() : nullptr));
      EXPECT_EQ(Write(session, prompt, sampling), expected) << text << ", " << length;
      sum.accepted_tokens += session.stats().accepted_tokens;
      sum.drafted_tokens += session.stats().drafted_tokens;
    }
  }
  EXPECT_GT(sum.accepted_tokens, sum.drafted_tokens / 10);
  EXPECT_LT(sum.accepted_tokens, sum.drafted_tokens);
}

TEST(Drafts, TheDemoWritesTheSame) { ExpectSameTexts(CRIA_DEMO_CHECKPOINT); }

TEST(Drafts, Stories260KWritesTheSame) {
  CRIA_NEEDS_TEST_DATA("stories260K");
  ExpectSameTexts(ExternalTestData() / "stories260K");
}

}  // namespace
}  // namespace cria
