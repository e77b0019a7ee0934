// Whole conversions: what a model loses with and without calibration.

#include "converter/calibrate/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "decode/loaded_model.h"
#include "support/emulation.h"
#include "support/files.h"
#include "support/plant_channels.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using reference::ReferenceModel;

// Words of random letters, which are all that a model of random weights knows.
std::string Words(size_t count, uint32_t seed) {
  std::string text;
  const auto random = [&](uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % below;
  };
  for (size_t i = 0; i < count; ++i) {
    const uint32_t length = 1 + random(9);
    for (uint32_t letter = 0; letter < length; ++letter) {
      text += static_cast<char>('a' + random(26));
    }
    text += random(8) == 0 ? ". " : " ";
  }
  return text;
}

// Under emulation and with sanitizers, linear algebra is many times slower.
bool IsSlow() { return support::IsEmulated() || support::kHeapIsSanitized; }
size_t NumTokens() { return IsSlow() ? 1024 : 4096; }

class CalibrateTest : public testing::Test {
 protected:
  void Write(const ReferenceModel& model) {
    model_ = model;
    support::WriteHuggingFaceDirectory(model, folder_ / "checkpoint", {});
  }

  ConvertReport Run(const std::string& name, bool calibrates, ConvertOptions options = {}) {
    if (calibrates) options.calibration = {.text = Words(3000, 1), .max_tokens = NumTokens()};
    return Unwrap(Convert(folder_ / "checkpoint", folder_ / name, options));
  }

  // How far the logits of a converted model are from the checkpoint's, for a text that it was not
  // calibrated with.
  double ErrorOf(const std::string& name) const {
    const ModelFile file = Unwrap(ModelFile::Open((folder_ / name).string()));
    const ThreadPool threads = Unwrap(ThreadPool::Create(1));
    const auto weights = Unwrap(xnn::PackedWeights::PackInMemory(file, threads, nullptr));
    const auto decoder =
        Unwrap(Decoder::Create(file, weights, {.context_tokens = 64}, threads, threads));
    const auto sequence = Unwrap(OpenSequence::Create(decoder->sequences(), 64));
    const Tokenizer tokenizer = Unwrap(Tokenizer::Create(file.vocabulary()));
    std::vector<int32_t> ids = Unwrap(tokenizer.Encode(Words(60, 2)));
    ids.resize(60);
    Unwrap(decoder->ForwardSequence(sequence.id(), ids, 0, ids.size()));
    std::vector<float> logits;
    for (size_t row = 0; row < ids.size(); ++row) {
      const auto values = Unwrap(decoder->Logits(row));
      logits.insert(logits.end(), values.begin(), values.end());
    }
    return RootMeanSquareDifference(logits, ReferenceLogits(model_, ids));
  }

  size_t NumFiles() const {
    const std::filesystem::directory_iterator files(folder_.path());
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }

  support::TemporaryDirectory folder_;
  ReferenceModel model_;
};

TEST_F(CalibrateTest, LosesLessThanRounding) {
  std::vector<support::CheckpointSpec> specs = {support::SpecQwen2()};
  if (!IsSlow()) {
    specs.insert(specs.end(),
                 {support::SpecMinistral(), support::SpecPadded(), support::SpecQwen3Biases(),
                  support::SpecBiases(), support::SpecYarnRope()});
  }
  for (const support::CheckpointSpec& spec : specs) {
    SCOPED_TRACE(spec.config.architecture);
    Write(support::MakeModel(spec));
    const ConvertReport rounded = Run("rounded.cria", false);
    EXPECT_EQ(rounded.calibrated.num_tokens, 0);
    const ConvertReport calibrated = Run("calibrated.cria", true);
    EXPECT_EQ(calibrated.calibrated.num_matrices, 4 * model_.config.num_hidden_layers);
    EXPECT_GT(calibrated.calibrated.num_calibrated, 2 * model_.config.num_hidden_layers);
    EXPECT_LT(calibrated.calibrated.held_back_ratio, 0.9);
    const KeptPredictions& predictions = calibrated.calibrated.predictions;
    EXPECT_GE(predictions.num_tokens, NumTokens() / 8);
    EXPECT_GT(predictions.num_same, predictions.num_tokens / 2);
    EXPECT_EQ(calibrated.file_bytes, rounded.file_bytes);
    EXPECT_LT(ErrorOf("calibrated.cria"), ErrorOf("rounded.cria"));
    EXPECT_EQ(NumFiles(), 3) << "the scratch file is left";
  }
}

TEST_F(CalibrateTest, CodesOfAHeadOfItsOwnAreChosen) {
  for (const bool rotates : {false, true}) {
    Write(support::MakeModel(support::SpecBiases()));
    ConvertOptions options = {
        .weights = Scheme::kQc8w, .embedding = Scheme::kQc8w, .head = Scheme::kW3G64};
    const ConvertReport rounded = Run("rounded.cria", false, options);
    options.calibration = {.text = Words(3000, 1), .max_tokens = NumTokens(), .rotation = rotates};
    const ConvertReport report =
        Unwrap(Convert(folder_ / "checkpoint", folder_ / "calibrated.cria", options));
    EXPECT_EQ(report.file_bytes, rounded.file_bytes);
    EXPECT_LT(ErrorOf("calibrated.cria"), 0.95 * ErrorOf("rounded.cria"));
    // What is judged are the codes that the file has.
    EXPECT_GT(report.calibrated.predictions.num_same, report.calibrated.predictions.num_tokens / 2);
    options.num_threads = 3;
    EXPECT_EQ(Unwrap(Convert(folder_ / "checkpoint", folder_ / "again.cria", options)).digest,
              report.digest);
  }
}

TEST_F(CalibrateTest, ARotatedHiddenStateComputesTheSame) {
  std::vector<support::CheckpointSpec> specs = {support::SpecBiases()};
  if (!IsSlow()) specs.insert(specs.end(), {support::SpecQwen2(), support::SpecPadded()});
  for (const support::CheckpointSpec& spec : specs) {
    SCOPED_TRACE(spec.config.architecture);
    Write(support::MakeModel(spec));
    ConvertOptions options = {.weights = Scheme::kQc8w};
    options.calibration = {.text = Words(3000, 1), .max_tokens = 1024, .rotation = false};
    Unwrap(Convert(folder_ / "checkpoint", folder_ / "plain.cria", options));
    options.calibration->rotation = true;
    options.num_threads = 1;
    const ConvertReport report =
        Unwrap(Convert(folder_ / "checkpoint", folder_ / "rotated.cria", options));
    EXPECT_TRUE(report.rotation.is_rotated);
    EXPECT_LT(ErrorOf("rotated.cria"), 1.5 * ErrorOf("plain.cria"));
    options.num_threads = 3;
    EXPECT_EQ(Unwrap(Convert(folder_ / "checkpoint", folder_ / "again.cria", options)).digest,
              report.digest);
  }
}

TEST_F(CalibrateTest, TheHiddenStateIsRotatedWhereThatLosesLess) {
  const ConvertOptions options = {.weights = Scheme::kQc8w};
  Write(support::MakeModel(support::SpecGqa()));
  const ConvertReport clean = Run("clean.cria", true, options);
  EXPECT_FALSE(clean.rotation.is_rotated);
  EXPECT_GT(clean.rotation.divergence_ratio, 0.8);
  ReferenceModel planted = model_;
  support::PlantSparseEmbeddings(planted, 5);
  Write(planted);
  const ConvertReport rotated = Run("rotated.cria", true, options);
  EXPECT_TRUE(rotated.rotation.is_rotated);
  EXPECT_GT(rotated.rotation.divergence_ratio, 0.0);
  EXPECT_LT(rotated.rotation.divergence_ratio, 0.8);
  Run("rounded.cria", false, options);
  EXPECT_LT(ErrorOf("rotated.cria"), ErrorOf("rounded.cria"));
}

TEST_F(CalibrateTest, LargeChannelsCostLittle) {
  Write(support::MakeModel(support::SpecGqa()));
  Run("clean.cria", true);
  const double clean = ErrorOf("clean.cria");
  ReferenceModel planted = model_;
  support::PlantChannels(planted, 5);
  Write(planted);
  const ConvertReport report = Run("planted.cria", true);
  EXPECT_GT(report.equalized.num_equalized, 0);
  EXPECT_LT(ErrorOf("planted.cria"), 1.3 * clean);
}

TEST_F(CalibrateTest, ThreadsDoNotChangeTheFile) {
  Write(support::MakeModel(support::SpecPadded()));
  const ConvertReport one = Run("one.cria", true, {.num_threads = 1});
  for (const size_t threads : {2, 3}) {
    EXPECT_EQ(Run("other.cria", true, {.num_threads = threads}).digest, one.digest) << threads;
  }
  EXPECT_EQ(support::ReadFile(folder_ / "other.cria"), support::ReadFile(folder_ / "one.cria"));
}

TEST_F(CalibrateTest, EverySchemeOfWeightsCanBeCalibrated) {
  Write(support::MakeModel(support::SpecGqa()));
  Run("rounded.cria", false, {.weights = Scheme::kQc8w});
  Run("calibrated.cria", true, {.weights = Scheme::kQc8w});
  EXPECT_LT(ErrorOf("calibrated.cria"), 1.05 * ErrorOf("rounded.cria"));
  Run("blocks.cria", true, {.weights = Scheme::kQb4w, .block_size = 64});
  Run("rounded-blocks.cria", false, {.weights = Scheme::kQb4w, .block_size = 64});
  EXPECT_LT(ErrorOf("blocks.cria"), ErrorOf("rounded-blocks.cria"));
  const auto refused =
      Convert(folder_ / "checkpoint", folder_ / "f32.cria",
              {.weights = Scheme::kF32, .calibration = CalibrationOptions{.text = Words(1000, 1)}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "f32.cria"));
}

TEST_F(CalibrateTest, ReportsProgressAndCanBeCancelled) {
  Write(support::MakeModel(support::SpecGqa()));
  const ConvertOptions options = {
      .calibration = CalibrationOptions{.text = Words(3000, 1), .max_tokens = NumTokens()}};
  std::vector<std::string> steps;
  uint64_t last = 0;
  Unwrap(Convert(folder_ / "checkpoint", folder_ / "model.cria", options,
                 [&](const ConvertProgress& progress) {
                   if (!progress.tensor.starts_with("calibrating ") &&
                       progress.tensor != "comparing predictions") {
                     return true;
                   }
                   EXPECT_GE(progress.done_weights, last);
                   EXPECT_LE(progress.done_weights, progress.total_weights);
                   last = progress.done_weights;
                   if (steps.empty() || steps.back() != progress.tensor) {
                     steps.emplace_back(progress.tensor);
                   }
                   return true;
                 }));
  ASSERT_EQ(steps.size(), 9);
  EXPECT_EQ(steps[0], "calibrating layers.0.qkv_proj");
  EXPECT_EQ(steps[7], "calibrating layers.1.down_proj");
  EXPECT_EQ(steps[8], "comparing predictions");
  const size_t files = NumFiles();
  const auto cancelled = Convert(folder_ / "checkpoint", folder_ / "other.cria", options,
                                 [](const ConvertProgress& progress) {
                                   return progress.tensor != "calibrating layers.1.o_proj";
                                 });
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(NumFiles(), files);
}

// Stopped at several moments, the calibration goes on with the layer that it did not finish, and
// gives the same file.
TEST_F(CalibrateTest, GoesOnAfterAStop) {
  Write(support::MakeModel(support::SpecGqa()));
  ConvertOptions options = {
      .calibration = CalibrationOptions{.text = Words(3000, 1), .max_tokens = NumTokens() / 2}};
  Unwrap(Convert(folder_ / "checkpoint", folder_ / "whole.cria", options));
  const auto resume = folder_ / "resume";
  options.calibration->resume_folder = resume;
  const auto stop_at = [&](std::string_view step) {
    const auto stopped =
        Convert(folder_ / "checkpoint", folder_ / "model.cria", options,
                [&](const ConvertProgress& progress) { return progress.tensor != step; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  };
  stop_at("calibrating layers.0.o_proj");
  EXPECT_TRUE(std::filesystem::is_empty(resume));
  stop_at("calibrating layers.1.qkv_proj");
  EXPECT_THAT(support::FileNames(resume), testing::UnorderedElementsAre("activations", "layer-0"));
  stop_at("calibrating layers.1.down_proj");
  EXPECT_EQ(NumFiles(), 3) << "nothing else is left behind";

  // Neither other options nor another text go on there.
  for (const bool other_text : {false, true}) {
    ConvertOptions other = options;
    if (other_text) {
      other.calibration->text = Words(3000, 2);
    } else {
      other.block_size = 64;
    }
    const auto refused = Convert(folder_ / "checkpoint", folder_ / "model.cria", other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  }
  const std::string layer = support::ReadFile(resume / "layer-0");
  support::WriteFile(resume / "layer-0",
                     layer.substr(0, layer.size() / 2) + 'x' + layer.substr(layer.size() / 2 + 1));
  const auto damaged = Convert(folder_ / "checkpoint", folder_ / "model.cria", options);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code(), ErrorCode::kInvalidFile);
  // No file is read that is longer than that of the layer can be.
  std::filesystem::resize_file(resume / "layer-0", uintmax_t{1} << 40);
  const auto too_long = Convert(folder_ / "checkpoint", folder_ / "model.cria", options);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code(), ErrorCode::kInvalidFile);
  support::WriteFile(resume / "layer-0", layer);

  const ConvertReport report =
      Unwrap(Convert(folder_ / "checkpoint", folder_ / "model.cria", options));
  EXPECT_EQ(report.calibrated.num_resumed_layers, 1);
  EXPECT_EQ(report.calibrated.num_matrices, 8);
  EXPECT_EQ(support::ReadFile(folder_ / "model.cria"), support::ReadFile(folder_ / "whole.cria"));
  EXPECT_TRUE(std::filesystem::is_empty(resume));
}

TEST_F(CalibrateTest, RefusesTextThatIsTooShort) {
  Write(support::MakeModel(support::SpecGqa()));
  const auto refused = Convert(folder_ / "checkpoint", folder_ / "model.cria",
                               {.calibration = CalibrationOptions{.text = "Too short."}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("the calibration text has"));
  EXPECT_EQ(NumFiles(), 1);
}

}  // namespace
}  // namespace cria
