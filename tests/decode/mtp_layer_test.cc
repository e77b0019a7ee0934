// The layer that guesses tokens, against the reference, and against itself after everything that
// can happen to a sequence.

#include "decode/mtp_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/loaded_model.h"
#include "reference/hugging_face_directory.h"
#include "support/emulation.h"
#include "support/family_checkpoint.h"
#include "support/schemes_and_kv_types.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

constexpr size_t kMtpTokens = 40;
constexpr size_t kNumGuesses = 3;

DecoderOptions WithMtp(DecoderOptions options) {
  options.has_mtp = true;
  options.revocable_tokens = 1 + kNumGuesses;
  return options;
}

class MtpLayerTest : public testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<const ConvertedModel> Converted(Scheme scheme) {
    return std::make_shared<const ConvertedModel>(support::FamilyNamed(GetParam()),
                                                  ConvertOptions{.weights = scheme});
  }
  void SetUp() override {
    const support::TemporaryDirectory directory;
    support::WriteFamilyDirectory(support::FamilyNamed(GetParam()), directory.path() / "model");
    model_ = reference::ReadHuggingFaceDirectory(directory.path() / "model");
    ids_ = SomeIds(kMtpTokens, model_.config.vocab_size);
  }

  // The logits of kNumGuesses guesses behind the first `position` ids, if the ids that follow these
  // are chosen.
  std::vector<float> GuessAt(LoadedModel& loaded, size_t position) const {
    std::vector<float> all;
    size_t next = position;
    Unwrap(loaded.decoder().Guess({.sequence = loaded.sequence(),
                                   .position = position,
                                   .token = ids_[position],
                                   .max_tokens = kNumGuesses},
                                  [&](std::span<float> logits) {
                                    all.insert(all.end(), logits.begin(), logits.end());
                                    return ids_[++next];
                                  }));
    return all;
  }
  std::vector<float> ExpectedAt(size_t position) const {
    reference::ReferenceDecoder decoder(model_);
    for (size_t i = 0; i < position; ++i) decoder.Step(ids_[i]);
    std::vector<float> all;
    for (size_t i = 1; i <= kNumGuesses; ++i) {
      const std::vector<int> chain(ids_.begin() + static_cast<ptrdiff_t>(position),
                                   ids_.begin() + static_cast<ptrdiff_t>(position + i));
      const std::vector<double> logits = decoder.Guess(chain);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

  reference::ReferenceModel model_;
  std::vector<int32_t> ids_;
};

TEST_P(MtpLayerTest, F32IsTheReference) {
  const auto converted = Converted(Scheme::kF32);
  for (const size_t chunk : {1, 7, 64}) {
    LoadedModel loaded(converted, WithMtp({.context_tokens = 64}), support::UsualThreads());
    for (const size_t position : {1, 2, 9, 36}) {
      loaded.Run({ids_.begin(), ids_.begin() + static_cast<ptrdiff_t>(position)}, {chunk});
      const std::vector<float> expected = ExpectedAt(position);
      EXPECT_LT(LargestDifference(GuessAt(loaded, position), expected),
                1e-4f * LargestMagnitude(expected))
          << "after " << position << " tokens in chunks of " << chunk;
    }
  }
}

// The layer reads the hidden state as it would be without a rotation.
TEST_P(MtpLayerTest, ARotatedModelGuessesTheSame) {
  // Conversions for emulated cores do not calibrate, and so do not rotate.
  if (support::IsEmulated()) return;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * i % 997) + ' ';
  const auto converted = std::make_shared<const ConvertedModel>(
      support::FamilyNamed(GetParam()),
      ConvertOptions{
          .weights = Scheme::kQc8w,
          .calibration = CalibrationOptions{.text = text, .max_tokens = 1024, .rotation = true}});
  ASSERT_TRUE(converted->Open().config().rotated_residual);
  LoadedModel loaded(converted, WithMtp({.context_tokens = 64}), support::UsualThreads());
  constexpr size_t kPosition = 20;
  loaded.Run({ids_.begin(), ids_.begin() + kPosition}, {64});
  const std::vector<float> expected = ExpectedAt(kPosition);
  // Logits of another basis would differ by their own size, about a third of the largest one.
  EXPECT_LT(RootMeanSquareDifference(GuessAt(loaded, kPosition), expected),
            0.1f * LargestMagnitude(expected));
}

TEST_P(MtpLayerTest, LogitsOfTheModelAreTheSameWithIt) {
  const auto converted = Converted(Scheme::kQc8w);
  LoadedModel without(converted, {.context_tokens = 64}, support::UsualThreads());
  LoadedModel with(converted, WithMtp({.context_tokens = 64}), support::UsualThreads());
  EXPECT_EQ(with.Run(ids_, {16, 1}), without.Run(ids_, {16, 1}));
}

// Bits, because nothing may depend on what was computed beside a row, or before it was forgotten.
TEST_P(MtpLayerTest, GuessesDoNotDependOnWhatCameBefore) {
  const auto converted = Converted(Scheme::kQc8w);
  constexpr size_t kPosition = 20;
  LoadedModel plain(converted, WithMtp({.context_tokens = 64}), support::UsualThreads());
  plain.Run({ids_.begin(), ids_.begin() + kPosition}, {64});
  const std::vector<float> expected = GuessAt(plain, kPosition);
  EXPECT_EQ(GuessAt(plain, kPosition), expected) << "a second time";

  LoadedModel other(converted, WithMtp({.context_tokens = 64}), support::UsualThreads());
  other.Run({ids_.begin(), ids_.begin() + kPosition - 1}, {3});
  GuessAt(other, kPosition - 1);
  // As many drafts as may be refused.
  std::vector<int32_t> drafts = {ids_[kPosition - 1], 1, 2, 3};
  Unwrap(other.Forward(drafts, kPosition - 1, drafts.size()));
  EXPECT_EQ(GuessAt(other, kPosition), expected) << "after refused drafts";
  EXPECT_EQ(other.num_tokens(), kPosition);
}

TEST_P(MtpLayerTest, LogitsOfTheLastForwardStay) {
  LoadedModel loaded(Converted(Scheme::kQc8w), WithMtp({.context_tokens = 64}),
                     support::UsualThreads());
  Unwrap(loaded.Forward(std::span(ids_).first(8), 0, 2));
  const auto first = Unwrap(loaded.decoder().Logits(0));
  const std::vector<float> before(first.begin(), first.end());
  GuessAt(loaded, 8);
  EXPECT_TRUE(std::ranges::equal(first, before));
  EXPECT_TRUE(std::ranges::equal(Unwrap(loaded.decoder().Logits(0)), before));
}

TEST_P(MtpLayerTest, ANegativeChoiceEndsTheGuesses) {
  LoadedModel loaded(Converted(Scheme::kQc8w), WithMtp({.context_tokens = 64}),
                     support::UsualThreads());
  loaded.Run({1, 2, 3}, {3});
  size_t num_guesses = 0;
  Unwrap(loaded.decoder().Guess(
      {.sequence = loaded.sequence(), .position = 3, .token = 4, .max_tokens = 3},
      [&](std::span<float>) {
        ++num_guesses;
        return -1;
      }));
  EXPECT_EQ(num_guesses, 1u);
}

INSTANTIATE_TEST_SUITE_P(Families, MtpLayerTest, testing::Values("Qwen35Mtp", "Qwen3NextMtp"),
                         [](const auto& test) { return std::string(test.param); });

TEST(MtpLayerOptions, AModelWithoutTheLayerRefusesIt) {
  const auto converted = std::make_shared<const ConvertedModel>(
      support::FamilyNamed("Qwen35"), ConvertOptions{.weights = Scheme::kQc8w});
  const Status valid =
      ValidateDecoderOptions(converted->Open().config(), WithMtp({.context_tokens = 64}));
  ASSERT_FALSE(valid);
  EXPECT_EQ(valid.error().message(), "the model has no layer that guesses tokens (mtp)");
}

}  // namespace
}  // namespace cria
