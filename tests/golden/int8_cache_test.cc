// What keys and values in int8 cost trained models, also after many shifts of a full context.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/convert.h"
#include "decode/open_sequence.h"
#include "golden/test_data.h"
#include "golden/trained_model.h"
#include "llm/engine.h"
#include "llm/measure/log_sum_exp.h"
#include "reference/hugging_face_directory.h"
#include "support/checkpoint_writer.h"
#include "support/emulation.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/plant_channels.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria {
namespace {

constexpr size_t kContext = 256;
constexpr size_t kShifts = 20;
// The most, as a divergence, that int8 may cost to be the default of the programs.
constexpr double kMaxNats = 0.005;

struct Text {
  std::string text;
  size_t num_measured;  // Tokens behind which predictions are compared.
};

// A model that reads a text in chunks, and forgets tokens behind the first whenever the context is
// full.
class ForgettingReader {
 public:
  static constexpr size_t kChunk = 16;

  ForgettingReader(const std::filesystem::path& model, KvType type, size_t dropped)
      : engine_(Unwrap(Engine::Load(model.string(), {.num_threads = support::UsualThreads(),
                                                     .context_tokens = kContext,
                                                     .kv_type = type}))),
        sequence_(Unwrap(OpenSequence::Create(engine_->decoder().sequences(), kContext))),
        dropped_(dropped) {}

  Engine& engine() { return *engine_; }
  size_t num_shifts() const { return num_shifts_; }

  void Read(std::span<const int32_t> chunk) {
    Decoder& decoder = engine_->decoder();
    for (; position_ + kChunk > kContext; position_ -= dropped_, ++num_shifts_) {
      Unwrap(decoder.sequences().Drop(sequence_.id(), 1, dropped_));
      Unwrap(decoder.CarryOutMoves());
    }
    Unwrap(decoder.ForwardSequence(sequence_.id(), chunk, position_, kChunk));
    position_ += kChunk;
  }
  // Behind a token of the last chunk.
  std::vector<double> LogProbabilities(size_t row) {
    const auto logits = Unwrap(engine_->decoder().Logits(row));
    const double sum = LogSumExp(logits);
    std::vector<double> result;
    for (const float logit : logits) result.push_back(logit - sum);
    return result;
  }

 private:
  const std::unique_ptr<Engine> engine_;
  const OpenSequence sequence_;
  const size_t dropped_;
  size_t position_ = 0;
  size_t num_shifts_ = 0;
};

// What int8 costs in nats per token behind the last of kShifts shifts.
struct Cost {
  double divergence = 0.0;  // The mean KL divergence from f32.
  double likelihood = 0.0;  // What the text's own tokens lose; less exact.
};

Cost CostOfInt8(const std::filesystem::path& model, const Text& text, size_t dropped) {
  ForgettingReader exact(model, KvType::kF32, dropped), rounded(model, KvType::kInt8, dropped);
  const std::vector<int32_t> ids =
      Unwrap(exact.engine().tokenizer().Encode(text.text, {.parse_special = true}));
  constexpr size_t kChunk = ForgettingReader::kChunk;
  Cost cost;
  size_t count = 0;
  for (size_t first = 0; first + kChunk < ids.size() && count < text.num_measured;
       first += kChunk) {
    exact.Read(std::span(ids).subspan(first, kChunk));
    rounded.Read(std::span(ids).subspan(first, kChunk));
    if (exact.num_shifts() < kShifts) continue;
    for (size_t row = 0; row < kChunk; ++row, ++count) {
      const std::vector<double> p = exact.LogProbabilities(row), q = rounded.LogProbabilities(row);
      for (size_t id = 0; id < p.size(); ++id) cost.divergence += std::exp(p[id]) * (p[id] - q[id]);
      const auto next = static_cast<size_t>(ids[first + row + 1]);
      cost.likelihood += p[next] - q[next];
    }
  }
  EXPECT_GE(count, text.num_measured) << "the text is too short";
  cost.divergence /= static_cast<double>(count);
  cost.likelihood /= static_cast<double>(count);
  return cost;
}

void ExpectCheap(const std::filesystem::path& checkpoint, const Text& text,
                 const ConvertOptions& options = {.weights = Scheme::kQc8w}) {
  if (support::IsEmulated()) GTEST_SKIP() << "the kernels of the KV cache have tests of their own";
  const support::TemporaryDirectory directory;
  const auto model = directory.path() / "model.cria";
  Unwrap(Convert(checkpoint, model, options));
  // Half of the context, as a text does, and a few tokens, as a conversation may.
  for (const size_t dropped : {kContext / 2, size_t{16}}) {
    const Cost cost = CostOfInt8(model, text, dropped);
    EXPECT_LT(cost.divergence, kMaxNats) << dropped << " tokens are dropped";
    const std::string name = "of_dropping_" + std::to_string(dropped);
    testing::Test::RecordProperty("divergence_" + name, std::to_string(cost.divergence));
    testing::Test::RecordProperty("nats_" + name, std::to_string(cost.likelihood));
  }
}

TEST(Int8CacheTest, CostsTheDemoModelLittle) {
  ExpectCheap(support::kDemoCheckpoint, {DemoText(support::kDemoCheckpoint), 1000});
}

TEST(Int8CacheTest, CostsTheDemoModelWithLargeChannelsLittle) {
  const support::TemporaryDirectory directory;
  reference::ReferenceModel model = reference::ReadHuggingFaceDirectory(support::kDemoCheckpoint);
  support::PlantChannels(model, /*seed=*/1);
  support::WriteHuggingFaceDirectory(model, directory.path(),
                                     {.tokenizer = support::TokenizerFiles::kNone});
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    std::filesystem::copy(std::filesystem::path(support::kDemoCheckpoint) / name, directory.path());
  }
  ExpectCheap(directory.path(), {DemoText(support::kDemoCheckpoint), 1000});
}

// Also as the same function with large channels.
class Int8CacheOfStories260K : public testing::TestWithParam<const char*> {};

TEST_P(Int8CacheOfStories260K, CostsLittle) {
  CRIA_NEEDS_TEST_DATA(GetParam());
  ExpectCheap(ExternalTestData() / GetParam(),
              {support::ReadFile(ExternalTestData() / "text" / "tinystories_30KB.txt"), 4000});
}

INSTANTIATE_TEST_SUITE_P(Channels, Int8CacheOfStories260K,
                         testing::Values("stories260K", "stories260K-planted"),
                         [](const auto& tested) {
                           const bool is_planted =
                               std::string_view(tested.param).ends_with("planted");
                           return is_planted ? "Large" : "Small";
                         });

// The models that ./dev real-models fetches, with the text that the converter ships. Qwen2.5 has
// keys with large biases.
class Int8CacheOfRealModels : public testing::TestWithParam<const char*> {};

TEST_P(Int8CacheOfRealModels, CostsLittle) {
  const char* const folder = std::getenv("CRIA_REAL_MODELS");
  const std::filesystem::path file =
      std::filesystem::path(folder == nullptr ? "" : folder) / (std::string(GetParam()) + ".gguf");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "./dev real-models fetches " << file;
  ExpectCheap(
      file,
      {support::ReadFile(support::SourcePath("converter/calibrate/calibration_text.txt")), 1000},
      {.keeps_codes = true});
}

INSTANTIATE_TEST_SUITE_P(Models, Int8CacheOfRealModels,
                         testing::Values("smollm2-135m-instruct-q4_1",
                                         "qwen2.5-coder-0.5b-instruct-q4_k_m"),
                         [](const auto& tested) {
                           return std::string(tested.param).starts_with("qwen") ? "Qwen25Coder"
                                                                                : "SmolLM2";
                         });

}  // namespace
}  // namespace cria
