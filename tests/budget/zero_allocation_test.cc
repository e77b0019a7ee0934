// Once a model is loaded, nothing asks for memory: neither reading a prompt, nor choosing tokens,
// nor turning them into text, nor dropping old ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "budget/quiet_model.h"
#include "budget/visible_allocations.h"
#include "converter/convert.h"
#include "core/format.h"
#include "decode/open_sequence.h"
#include "llm/completion.h"
#include "llm/engine.h"
#include "llm/generator.h"
#include "llm/scripted_clock.h"
#include "llm/stop_strings.h"
#include "llm/text_embedder.h"
#include "llm/turn.h"
#include "support/allocation_watch.h"
#include "support/block_gguf.h"
#include "support/converted_model.h"
#include "support/emulation.h"
#include "support/temporary_directory.h"
#include "support/thermal_zone.h"
#include "support/tiny_checkpoint.h"
#include "text/detokenizer.h"
#include "xnn/watched_allocator.h"

namespace cria {
namespace {

// Before anything else initializes XNNPACK.
const bool xnnpack_is_watched = xnn::WatchXnnpackAllocations(support::NoteAllocation);

struct SamplingCase {
  const char* name;
  size_t tokens;  // With one thread; others wait for one another at every layer, and make fewer.
  SamplerOptions options;
};
constexpr size_t kFewerForThreads = 8;
const std::vector<SamplingCase> kSamplingCases = {
    {"greedy", 40, {.temperature = 0.0f}},
    {"every step of the sampler",
     120,
     {.logit_bias = {{0, -std::numeric_limits<float>::infinity()}, {7, 0.5f}, {300, 1.0f}},
      .repeat_penalty = 1.3f,
      .presence_penalty = 0.2f,
      .frequency_penalty = 0.1f,
      .dry = {.multiplier = 0.8f},
      .top_k = 40,
      .typical_p = 0.95f,
      .top_p = 0.9f,
      .min_p = 0.05f,
      .xtc_probability = 0.5f,
      .temperature = 0.8f}},
    {"the whole vocabulary", 40, {.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .temperature = 1.5f}},
};

void ExpectQuietPrefills(Session& session) {
  const std::vector<int32_t> whole = SomeTokens(2 * kChunk + 5);
  const auto prefill = [&](const char* phase, std::span<const int32_t> tokens) {
    ExpectQuiet(phase, [&] { return Turn(session).Prefill(tokens); });
  };
  prefill("a prompt of one token", std::span(whole).first(1));
  ExpectQuiet("forgetting all", [&]() -> Status {
    session.Clear();
    return {};
  });
  prefill("a prompt of 7 tokens", std::span(whole).first(7));
  prefill("a prompt of several chunks", whole);
  std::vector<int32_t> other = whole;
  std::ranges::fill(std::span(other).last(10), 3);
  prefill("a prompt whose beginning is reused", other);
  EXPECT_EQ(session.stats().reused_tokens, whole.size() - 10);
}

// The logits after every token of a chunk, as measuring perplexity reads them.
void ExpectQuietLogits(Decoder& decoder) {
  const std::vector<int32_t> tokens = SomeTokens(kChunk);
  const auto sequence = OpenSequence::Create(decoder.sequences(), kChunk);
  ASSERT_TRUE(sequence) << sequence.error().message();
  for (const size_t num_logits : {size_t{0}, size_t{3}, kChunk}) {
    ExpectQuiet("logits after several tokens", [&]() -> Status {
      CRIA_RETURN_IF_ERROR(decoder.ForwardSequence(sequence->id(), tokens, 0, num_logits));
      for (size_t row = 0; row < num_logits; ++row) {
        CRIA_RETURN_IF_ERROR(decoder.Logits(row).transform([](std::span<float>) {}));
      }
      return {};
    });
  }
}

void ExpectQuietGeneration(Session& session, Detokenizer& detokenizer, Sampler& sampler,
                           const SamplingCase& sampling, size_t num_tokens) {
  size_t text_bytes = 0;
  double log_probability = 0.0;
  const TextCallback on_text = [&](std::string_view text) { text_bytes += text.size(); };
  // Their beginnings are common, and the strings are not.
  auto stops =
      StopStrings::Create({"e stop string that is never found", "  a  b  c", "\u20ac\u20ac"});
  ASSERT_TRUE(stops);
  const GenerationOptions generation = {
      .max_tokens = num_tokens,
      .log_probabilities = true,
      .make_room = [&](Turn& turn) { return turn.DropHalfBehind(4); },
      .on_token_text = [&](const GeneratedToken& token,
                           std::string_view) { log_probability += token.log_probability; },
      .stop_strings = &*stops};
  StopReason reason = StopReason::kCancelled;
  ExpectQuiet(sampling.name, [&] {
    Turn turn(session, generation.turn_options());
    return GenerateText(turn, detokenizer, sampler, generation, on_text)
        .transform([&](StopReason stop) { reason = stop; });
  });
  EXPECT_EQ(reason, StopReason::kMaxTokens);
  EXPECT_GT(text_bytes, 0u);
  EXPECT_LT(log_probability, 0.0);
}

void ExpectQuietStopStrings() {
  auto stops = StopStrings::Create({"END", "E N D"});
  ASSERT_TRUE(stops);
  size_t text_bytes = 0;
  ExpectQuiet("finding a stop string", [&]() -> Status {
    for (const char* piece : {"THE E", "N", "T", "E ", "N D", "more"}) {
      for (const std::string_view part : stops->Append(piece)) text_bytes += part.size();
    }
    return {};
  });
  EXPECT_TRUE(stops->is_found());
  EXPECT_EQ(text_bytes, 7u);
}

void ExpectQuietEngine(const std::string& path, const EngineOptions& options, bool mapped) {
  const size_t before = support::AllocationsSoFar();
  const auto engine = Engine::Load(path, options);
  ASSERT_TRUE(engine) << engine.error().message();
  // What is to be seen is seen.
  EXPECT_GT(support::AllocationsSoFar(), before);
  for (const MemoryLine& line : (*engine)->memory_plan().lines) {
    if (line.part != MemoryPart::kPackedWeights) continue;
    EXPECT_EQ(line.kind, mapped ? MemoryKind::kMapped : MemoryKind::kPrivate);
  }
  // Without drafts where the processor allows none.
  const std::unique_ptr<Session> own_session = (*engine)->NewSession();
  Session& session = *own_session;
  Detokenizer detokenizer((*engine)->tokenizer());
  ExpectQuietPrefills(session);
  size_t total_tokens = 0;
  for (const SamplingCase& sampling : kSamplingCases) {
    auto sampler = Sampler::Create(sampling.options, (*engine)->decoder().vocab_size(),
                                   &(*engine)->tokenizer(), (*engine)->decoder().context_tokens());
    ASSERT_TRUE(sampler);
    const size_t num_tokens = sampling.tokens / (options.num_threads > 1 ? kFewerForThreads : 1);
    ExpectQuietGeneration(session, detokenizer, *sampler, sampling, num_tokens);
    total_tokens += num_tokens;
  }
  ExpectQuietStopStrings();
  const std::vector<int32_t> prompt = SomeTokens(kChunk + 5, 11);
  const PromptCallback on_prompt = [](size_t done, size_t total) { return done <= total; };
  ExpectQuiet("a prompt with a callback", [&] { return Turn(session).Prefill(prompt, on_prompt); });
  ExpectQuiet("logits", [&] { return Turn(session).Logits().transform([](const LogitRows&) {}); });
  // The context was filled and its older part dropped on the way.
  EXPECT_GT(session.stats().dropped_tokens, 0u);
  EXPECT_GE(session.stats().decoded_tokens + kSamplingCases.size(), total_tokens);
  ExpectQuiet("dropping", [&] { return Turn(session).Drop(5, 20); });
  ExpectQuiet("dropping whole pages", [&] { return Turn(session).Drop(4, kKvPageTokens); });
  // The session's.
  Sequences& sequences = (*engine)->decoder().sequences();
  const KvPages& pages = sequences.pages();
  const SequenceId sequence = 0;
  ASSERT_TRUE(Turn(session).Prefill(SomeTokens(kContext)));
  ASSERT_FALSE(pages.CanDrop(sequence, 4, kContext - 14)) << "the window needs the first rows";
  ExpectQuiet("dropping all but some tokens", [&] { return Turn(session).Drop(4, kContext - 14); });
  ExpectQuiet("running what stays", [&] { return Turn(session).Logits().transform([](auto) {}); });
  EXPECT_EQ(pages.num_tokens(sequence), 14u);
  ExpectQuiet("reserving", [&] { return sequences.Reserve(sequence, kContext, 20); });
  // The layer with a window gives pages back.
  ASSERT_EQ(pages.num_groups(), 2u);
  ExpectQuiet("truncating", [&] { return sequences.Truncate(sequence, 0); });
  ExpectQuiet("extending", [&]() -> Status {
    for (const size_t end : {kChunk, 2 * kChunk, kContext}) {
      CRIA_RETURN_IF_ERROR(sequences.Extend(sequence, end));
    }
    return {};
  });
  EXPECT_GT(pages.group(1).first_row(sequence), 0u);
  sequences.Close(sequence);
  ExpectQuietLogits((*engine)->decoder());
}

class ZeroAllocation : public testing::TestWithParam<SchemeCase> {};

TEST_P(ZeroAllocation, AfterLoading) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  ASSERT_TRUE(xnnpack_is_watched);
  const std::string path = ModelPath(GetParam());
  // By turns, so that every number of threads and every type meets both.
  bool mapped = false;
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    for (const size_t threads : {1, 2, 3}) {
      // There, each type with one number of threads is enough.
      if (support::IsEmulated() && static_cast<size_t>(kv_type) + 1 != threads) continue;
      mapped = !mapped;
      SCOPED_TRACE(Format("{} keys and values, {} threads, weights {}", KvTypeName(kv_type),
                          threads, mapped ? "mapped" : "in memory"));
      EngineOptions options = {.num_threads = threads,
                               .context_tokens = kContext,
                               .num_checkpoints = 0,  // So that the window saves pages.
                               .chunk_tokens = kChunk,
                               .kv_type = kv_type};
      if (threads == 2) options.drafts = {.ngram_tokens = 1, .max_tokens = 6, .min_tokens = 2};
      // A product of one row of logits, of some rows, and of a whole chunk.
      options.max_logit_bytes = (threads - 1) * kChunk / 2 * sizeof(float) * kVocabulary;
      // One with a pool of its own for prompts.
      if (threads == 3) options.num_batch_threads = 2;
      if (mapped) options.packing.cache_folder = path + "-packed";
      ExpectQuietEngine(path, options, mapped);
    }
  }
}

// A hot processor, which slows the model down: readings of its sensors, pauses, fewer threads.
TEST_P(ZeroAllocation, WithPausesForHeat) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const support::TemporaryDirectory root;
  support::WriteThermalZone(root.path(), 0, "cpu-thermal", "78000\n");
  const auto engine = Engine::Load(
      ModelPath(GetParam()),
      {.num_threads = 2,
       .context_tokens = kContext,
       .chunk_tokens = kChunk,
       .thermal = {.max_celsius = 75.0,
                   .sensor_root = root.path(),
                   // Time that passes in a pause alone; a pause ends after as many readings.
                   .time = {.now = ScriptedClock::Now, .sleep = [](ScriptedClock::Clock::duration) {
                              ScriptedClock::Advance(std::chrono::seconds(1));
                            }}}});
  ASSERT_TRUE(engine) << engine.error().message();
  ASSERT_NE((*engine)->pacer(), nullptr);
  const std::unique_ptr<Session> session = (*engine)->NewSession();
  auto sampler = Sampler::Create(kSamplingCases[0].options, kVocabulary);
  ASSERT_TRUE(sampler);
  const std::vector<int32_t> prompt = SomeTokens(kChunk + 5);
  ExpectQuiet("an answer", [&] { return Answer(*session, *sampler, prompt, 10); });
  const ThermalPacer::Figures figures = (*engine)->pacer()->figures();
  EXPECT_GT(figures.paused_seconds, 0.0);
  EXPECT_EQ(figures.num_threads, 1u);
  EXPECT_EQ(figures.celsius, 78.0);
}

// Weights are in memory with one thread, and mapped with others.
void ExpectQuietModel(const support::ConvertedModel& model, size_t threads) {
  SCOPED_TRACE(Format("{} threads", threads));
  EngineOptions options = {
      .num_threads = threads, .context_tokens = kContext, .chunk_tokens = kChunk};
  if (threads > 1) options.packing.cache_folder = model.folder() / "packed";
  const auto engine = Engine::Load(model.path(), options);
  ASSERT_TRUE(engine) << engine.error().message();
  const std::unique_ptr<Session> session = (*engine)->NewSession();
  Detokenizer detokenizer((*engine)->tokenizer());
  ExpectQuietPrefills(*session);
  auto sampler = Sampler::Create(kSamplingCases[0].options, kVocabulary);
  ASSERT_TRUE(sampler);
  ExpectQuietGeneration(*session, detokenizer, *sampler, kSamplingCases[0], 20);
  TextEmbedder embedder((*engine)->scheduler());
  std::vector<float> embedding((*engine)->decoder().hidden_size());
  const std::vector<int32_t> text = SomeTokens(kChunk + 5);
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
    ExpectQuiet("an embedding",
                [&] { return embedder.Embed(text, {.pooling = pooling}, embedding); });
  }
}

// Rows of several formats, whose pieces are products of their own.
TEST(KeptCodesZeroAllocation, AfterLoading) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  support::CheckpointSpec spec = support::SpecOfBlocks();
  spec.config.vocab_size = kVocabulary;
  spec.config.max_position_embeddings = 512;
  support::SetTokenIds(spec);
  reference::ReferenceModel reference = support::MakeModel(spec);
  const support::TemporaryDirectory directory;
  const std::filesystem::path gguf = directory.path() / "model.gguf";
  support::WriteBlockGguf(
      gguf, [](const std::string& name) { return name.contains("v_proj") ? "Q6_K" : "Q4_K"; },
      reference);
  const support::ConvertedModel model(gguf, {.weights = Scheme::kQc8w, .keeps_codes = true});
  for (const size_t threads : {1, 3}) ExpectQuietModel(model, threads);
}

class RecurrentZeroAllocation : public testing::TestWithParam<const char*> {};

// Recurrent layers, whose states have checkpoints: a prompt is read again from one, and drafts are
// refused.
TEST_P(RecurrentZeroAllocation, AfterLoading) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const support::ConvertedModel model(support::FamilyNamed(GetParam()), {.weights = Scheme::kQc8w});
  for (const size_t threads : {1, 2}) {
    EngineOptions options = {
        .num_threads = threads, .context_tokens = 128, .num_sequences = 2, .chunk_tokens = 32};
    const bool has_mtp = std::string_view(GetParam()).ends_with("Mtp");
    options.drafts = {
        .ngram_tokens = has_mtp ? 0u : 1u, .max_tokens = 3, .min_tokens = 1, .has_mtp = has_mtp};
    const auto engine = Engine::Load(model.path(), options);
    ASSERT_TRUE(engine) << engine.error().message();
    ASSERT_TRUE((*engine)->decoder().sequences().has_checkpoints());
    const std::unique_ptr<Session> first = (*engine)->NewSession();
    const std::unique_ptr<Session> second = (*engine)->NewSession();
    auto sampler = Sampler::Create(kSamplingCases[0].options, (*engine)->decoder().vocab_size());
    ASSERT_TRUE(sampler);
    const std::vector<int32_t> prompt = SomeTokens(40);
    const std::span<const int32_t> beginning = std::span(prompt).first(30);
    for (Session* const session : {first.get(), second.get()}) {
      for (const auto& tokens : {std::span(prompt), beginning, std::span(prompt)}) {
        ExpectQuiet("an answer", [&] { return Answer(*session, *sampler, tokens, 8); });
      }
    }
    // The second one found the beginning of the first one.
    EXPECT_GT((*engine)->scheduler().stats().num_shared_tokens, 0u);
    if (has_mtp) {
      EXPECT_GT(first->stats().drafted_tokens, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mixers, RecurrentZeroAllocation,
                         testing::Values("Lfm2", "Qwen35", "Qwen35Mtp", "GraniteMamba"),
                         [](const auto& param) { return std::string(param.param); });

// Experts, a shared one and a dense layer.
TEST_P(ZeroAllocation, WithAMixture) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const support::ConvertedModel model(support::WideMixture(), GetParam().conversion);
  for (const size_t threads : {1, 3}) ExpectQuietModel(model, threads);
}

INSTANTIATE_TEST_SUITE_P(Schemes, ZeroAllocation, testing::ValuesIn(SchemeCases()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace cria
