// What keys and values in int8 cost trained models, also after many shifts of a full context.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
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
// The most that int8 may cost to be the default of the programs.
constexpr double kMaxNats = 0.005;

struct Text {
  std::string text;
  size_t num_measured;  // Tokens whose likelihood is measured.
};

// Reads the text, which forgets `dropped` tokens behind the first whenever the context is full, and
// returns the mean negative log-likelihood, in nats, of the tokens behind the last of kShifts
// shifts.
double NatsAfterShifts(const std::filesystem::path& model, KvType type, const Text& text,
                       size_t dropped) {
  constexpr size_t kChunk = 16;
  const auto engine = Unwrap(Engine::Load(
      model.string(), {.num_threads = 1, .context_tokens = kContext, .kv_type = type}));
  Decoder& decoder = engine->decoder();
  const std::vector<int32_t> ids =
      Unwrap(engine->tokenizer().Encode(text.text, {.parse_special = true}));
  const auto sequence = Unwrap(OpenSequence::Create(decoder.sequences(), kContext));
  double sum = 0.0;
  size_t count = 0;
  size_t shifts = 0;
  size_t position = 0;
  for (size_t first = 0; first + kChunk < ids.size() && count < text.num_measured;
       first += kChunk) {
    while (position + kChunk > kContext) {
      Unwrap(decoder.sequences().Drop(sequence.id(), 1, dropped));
      Unwrap(decoder.CarryOutMoves());
      position -= dropped;
      ++shifts;
    }
    Unwrap(decoder.ForwardSequence(sequence.id(), std::span(ids).subspan(first, kChunk), position,
                                   kChunk));
    position += kChunk;
    if (shifts < kShifts) continue;
    for (size_t row = 0; row < kChunk; ++row) {
      const auto logits = Unwrap(decoder.Logits(row));
      sum += LogSumExp(logits) - logits[static_cast<size_t>(ids[first + row + 1])];
      ++count;
    }
  }
  EXPECT_GE(count, text.num_measured) << "the text is too short";
  return sum / static_cast<double>(count);
}

void ExpectCheap(const std::filesystem::path& checkpoint, const Text& text) {
  if (support::IsEmulated()) GTEST_SKIP() << "the kernels of the KV cache have tests of their own";
  const support::TemporaryDirectory directory;
  const auto model = directory.path() / "model.cria";
  Unwrap(Convert(checkpoint, model, {.weights = Scheme::kQc8w}));
  // Half of the context, as a text does, and a few tokens, as a conversation may.
  for (const size_t dropped : {kContext / 2, size_t{16}}) {
    const double exact = NatsAfterShifts(model, KvType::kF32, text, dropped);
    const double cost = NatsAfterShifts(model, KvType::kInt8, text, dropped) - exact;
    EXPECT_LT(cost, kMaxNats) << dropped << " tokens are dropped, of " << exact << " nats";
    testing::Test::RecordProperty("nats_of_dropping_" + std::to_string(dropped),
                                  std::to_string(cost));
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

}  // namespace
}  // namespace cria
