// Calibrating mixtures of experts.

#include "converter/calibrate/mixture_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/calibrate/calibrate.h"
#include "converter/calibrate/expert_parts.h"
#include "converter/calibrate/matrix_calibration.h"
#include "converter/calibrate/mixture_steps.h"
#include "converter/calibrate/predictions.h"
#include "converter/calibrate/run_layer.h"
#include "converter/calibrate/stored_error.h"
#include "converter/convert.h"
#include "converter/open_checkpoint.h"
#include "ops/router.h"
#include "random_matrix.h"
#include "support/family_checkpoint.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using support::FamilyCheckpoint;

// Each expert but the last is chosen by half of the tokens that the ones before it leave.
FamilyCheckpoint SkewedMixture() {
  FamilyCheckpoint checkpoint = support::FamilyNamed("Mixtral");
  auto config = nlohmann::json::parse(checkpoint.config_json);
  config["num_local_experts"] = 14;
  config["num_experts_per_tok"] = 1;
  checkpoint.config_json = config.dump();
  checkpoint.router_skew = 6.0;
  return checkpoint;
}

CalibrationTokens ShuffledTokens(size_t count, size_t window_tokens) {
  constexpr uint32_t kVocabulary = 300;
  CalibrationTokens tokens = {.window_tokens = window_tokens};
  uint32_t state = 9;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.ids.push_back(static_cast<int32_t>((state >> 16) % kVocabulary));
  }
  return tokens;
}

class MixtureCalibrationTest : public testing::Test {
 protected:
  void Open(const FamilyCheckpoint& family) {
    support::WriteFamilyDirectory(family, folder_ / "checkpoint");
    checkpoint_ = Unwrap(OpenCheckpoint(folder_ / "checkpoint"));
    plan_ = PlanTensors(Unwrap(MapTensors(checkpoint_)), checkpoint_.config,
                        {.embedding = Scheme::kF32, .head = Scheme::kF32});
  }

  std::shared_ptr<ScratchFile> NewScratch() const {
    return std::make_shared<ScratchFile>(Unwrap(ScratchFile::Create(folder_ / "model.cria")));
  }

  CalibrationReport Run(const CalibrationTokens& tokens, ResumeFolder* resume = nullptr) {
    return Unwrap(
        Calibrate(tokens, checkpoint_.config, threads_, NewScratch(), nullptr, resume, plan_));
  }

  std::vector<PlannedTensor> ExpertsOf(TensorRole role, int layer) {
    return SplitExperts(*FindTensor(plan_, role, layer));
  }

  static std::vector<std::byte> CodesOf(const PlannedTensor& tensor) {
    const TensorLayout& layout = tensor.stored.layout;
    std::vector<std::byte> codes(layout.data_bytes() + layout.scale_bytes());
    const auto [data, scales] = std::pair(std::span(codes).first(layout.data_bytes()),
                                          std::span(codes).subspan(layout.data_bytes()));
    Unwrap(tensor.encoded->file->ReadAt(tensor.encoded->data_offset, data));
    Unwrap(tensor.encoded->file->ReadAt(tensor.encoded->scale_offset, scales));
    return codes;
  }

  bool IsRounded(const PlannedTensor& tensor) const {
    const CalibratedMatrix rounded =
        RoundMatrix(threads_, Unwrap(ReadMatrix(tensor)), tensor.stored.layout);
    std::vector<std::byte> codes = rounded.data;
    codes.insert(codes.end(), rounded.scales.begin(), rounded.scales.end());
    return CodesOf(tensor) == codes;
  }

  // How many tokens choose each expert of the first layer, where nothing is quantized before it but
  // attention, so that the choice of the checkpoint is that of the stored model for most tokens.
  std::vector<size_t> ChoicesInLayer0(const CalibrationTokens& tokens) {
    std::vector<size_t> windows(tokens.num_windows());
    for (size_t i = 0; i < windows.size(); ++i) windows[i] = i;
    Matrix hidden = Unwrap(EmbedWindows(tokens, windows, checkpoint_.config, plan_));
    LayerBlocks layer =
        Unwrap(MakeLayerBlocks(checkpoint_.config, threads_, tokens.window_tokens, 0, plan_));
    const Mixture mixture = *std::exchange(layer.mixture, std::nullopt);
    Unwrap(RunLayer(layer, checkpoint_.config, threads_, ReadMatrix, /*rounds=*/false, hidden));
    const MixtureSteps steps = Unwrap(MixtureSteps::Read(mixture, checkpoint_.config, threads_));
    std::vector<WeightedRows> rows(mixture.num_blocks());
    steps.Route(steps.Inputs(std::move(hidden)), 0, rows);
    std::vector<size_t> counts;
    for (const WeightedRows& each : rows) counts.push_back(each.rows.size());
    return counts;
  }

  support::TemporaryDirectory folder_;
  Checkpoint checkpoint_;
  FilePlan plan_;
  ThreadPool threads_ = Unwrap(ThreadPool::Create(2));
};

TEST_F(MixtureCalibrationTest, AnExpertThatFewTokensReachIsRounded) {
  Open(SkewedMixture());
  const CalibrationTokens tokens = ShuffledTokens(4096, 64);
  const std::vector<size_t> choices = ChoicesInLayer0(tokens);
  ASSERT_GT(choices[0], 1000);
  ASSERT_EQ(std::ranges::min(choices), 0) << "no expert is without tokens";
  const CalibrationReport report = Run(tokens);
  EXPECT_EQ(report.num_experts, 2 * choices.size());
  EXPECT_GT(report.num_rounded_experts, 4);
  EXPECT_LT(report.num_rounded_experts, report.num_experts - 4);
  EXPECT_EQ(report.num_matrices, 2 * (2 + 2 * choices.size()));

  size_t num_rounded = 0;
  for (const int layer : {0, 1}) {
    const auto gate_up = ExpertsOf(TensorRole::kExpertsGateUpProj, layer);
    const auto down = ExpertsOf(TensorRole::kExpertsDownProj, layer);
    for (size_t i = 0; i < choices.size(); ++i) {
      const bool is_rounded = IsRounded(gate_up[i]) && IsRounded(down[i]);
      num_rounded += size_t{is_rounded};
      if (layer != 0) continue;
      if (i == 0) {
        EXPECT_FALSE(is_rounded);
      }
      if (choices[i] >= 8) continue;
      EXPECT_TRUE(is_rounded) << i;
      // What no token measures is not scaled.
      EXPECT_TRUE(gate_up[i].parts[1].row_factors.empty());
      EXPECT_TRUE(down[i].parts[0].column_factors.empty());
    }
  }
  EXPECT_GE(num_rounded, report.num_rounded_experts);
}

// Behind the last layer, the two models are what the layers make of the embedding, with the weights
// as they are and as they are stored.
TEST_F(MixtureCalibrationTest, TheModelsAreThoseOfTheLayers) {
  for (const char* const name : {"Qwen2MoeDenseLayers", "Olmoe"}) {
    SCOPED_TRACE(name);
    Open(support::FamilyNamed(name));
    const ModelConfig& config = checkpoint_.config;
    const CalibrationTokens tokens = ShuffledTokens(512, 64);
    ResumeFolder resume = Unwrap(ResumeFolder::Open(folder_ / name, {}));
    Run(tokens, &resume);
    const auto scratch = NewScratch();
    ActivationFile exact(*scratch, tokens.ids.size(), config.hidden_size);
    ActivationFile stored(*scratch, tokens.ids.size(), config.hidden_size);
    Unwrap(resume.ReadActivations(tokens.ids.size(), config.hidden_size, exact, stored));
    for (const bool is_stored : {false, true}) {
      const auto read = [&](const PlannedTensor& tensor) -> Result<Matrix> {
        Matrix weights = Unwrap(ReadMatrix(tensor));
        if (!is_stored) return weights;
        const Matrix error = Unwrap(StoredError(threads_, weights, tensor, tensor.stored.layout));
        for (size_t i = 0; i < error.values().size(); ++i) {
          weights.values()[i] += error.values()[i];
        }
        return weights;
      };
      const std::vector<size_t> windows = {0, 1, 2, 3, 4, 5, 6, 7};
      Matrix hidden = Unwrap(EmbedWindows(tokens, windows, config, plan_));
      for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
        const LayerBlocks blocks =
            Unwrap(MakeLayerBlocks(config, threads_, tokens.window_tokens, layer, plan_));
        Unwrap(RunLayer(blocks, config, threads_, read, is_stored, hidden));
      }
      const Matrix rows =
          Unwrap((is_stored ? stored : exact).Read(0, tokens.ids.size(), config.hidden_size));
      double difference = 0.0, squares = 0.0;
      for (size_t i = 0; i < rows.values().size(); ++i) {
        difference += std::pow(double{rows.values()[i]} - hidden.values()[i], 2);
        squares += std::pow(double{hidden.values()[i]}, 2);
      }
      // A last bit can move an input to the next int8, and a token to another expert.
      EXPECT_LT(std::sqrt(difference / squares), is_stored ? 1e-2 : 1e-5);
    }
  }
}

TEST_F(MixtureCalibrationTest, ThreadsDoNotChangeTheFile) {
  support::WriteFamilyDirectory(support::FamilyNamed("Qwen2MoeDenseLayers"),
                                folder_ / "checkpoint");
  ConvertOptions options = {.target = SizeTarget{.bits_per_weight = 6.0}};
  options.calibration.emplace().tokens = ShuffledTokens(1024, 64);
  options.error_texts = {"the quick brown fox"};
  ConvertReport first;
  for (const size_t threads : {1, 2, 3}) {
    options.num_threads = threads;
    ConvertReport report = Unwrap(Convert(folder_ / "checkpoint", folder_ / "model.cria", options));
    if (threads == 1) {
      first = std::move(report);
      continue;
    }
    EXPECT_EQ(report.digest, first.digest) << threads;
    for (size_t i = 0; i < first.errors.size(); ++i) {
      EXPECT_EQ(report.errors[i].divergence, first.errors[i].divergence);
    }
  }
  // Four of each layer; of the last, which is the only mixture, also those of the shared expert.
  EXPECT_EQ(first.errors.size(), 4u * 4u + 2u);
  // The embedding and the head are tables, which have schemes, too.
  EXPECT_EQ(first.schemes.size(), first.errors.size() + 2);
  for (const MatrixError& error : first.errors) EXPECT_GT(error.divergence, 0.0);
}

// Also with a router whose columns are rotated and then scaled, which has no codes.
TEST_F(MixtureCalibrationTest, GoesOnAfterAStop) {
  support::WriteFamilyDirectory(support::FamilyNamed("Qwen2Moe"), folder_ / "checkpoint");
  for (const bool rotation : {false, true}) {
    ConvertOptions options;
    options.calibration = {.tokens = ShuffledTokens(1024, 64), .rotation = rotation};
    const ConvertReport whole =
        Unwrap(Convert(folder_ / "checkpoint", folder_ / "whole.cria", options));
    options.calibration->resume_folder = folder_ / "resume";
    struct Stop {
      std::string_view step;
      size_t call;  // Each expert makes several.
    };
    for (const Stop& stop : {Stop{"calibrating layers.0.experts_down_proj", 2},
                             Stop{"calibrating layers.1.experts_gate_up_proj", 10},
                             Stop{"calibrating layers.1.shared_expert_down_proj", 2}}) {
      size_t calls = 0;
      const auto stopped = Convert(folder_ / "checkpoint", folder_ / "model.cria", options,
                                   [&](const ConvertProgress& progress) {
                                     calls += size_t{progress.tensor == stop.step};
                                     return calls < stop.call;
                                   });
      ASSERT_FALSE(stopped);
      EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
    }
    const ConvertReport resumed =
        Unwrap(Convert(folder_ / "checkpoint", folder_ / "model.cria", options));
    EXPECT_EQ(resumed.calibrated.num_resumed_layers, 1);
    EXPECT_EQ(resumed.calibrated.num_matrices, whole.calibrated.num_matrices);
    EXPECT_EQ(resumed.calibrated.num_experts, 12);
    EXPECT_EQ(support::ReadFile(folder_ / "model.cria"), support::ReadFile(folder_ / "whole.cria"));
  }
}

TEST_F(MixtureCalibrationTest, ExpertsApartAreTheMatrixOfAll) {
  Open(support::FamilyNamed("Qwen2Moe"));
  Run(ShuffledTokens(512, 64));
  for (const TensorRole role : {TensorRole::kExpertsGateUpProj, TensorRole::kExpertsDownProj,
                                TensorRole::kSharedExpertDownProj}) {
    PlannedTensor& all = *FindTensor(plan_, role, 1);
    const Matrix weights = Unwrap(ReadMatrix(all));
    const Matrix error = Unwrap(StoredError(threads_, weights, all, all.stored.layout));
    const double squared_error = all.encoded->error.squared_error;
    std::vector<PlannedTensor> experts = SplitExperts(all);
    ASSERT_EQ(experts.size(), role == TensorRole::kSharedExpertDownProj ? 1 : 6);
    std::vector<float> apart, error_apart;
    for (const PlannedTensor& expert : experts) {
      const Matrix part = Unwrap(ReadMatrix(expert));
      apart.insert(apart.end(), part.values().begin(), part.values().end());
      const Matrix of_part = Unwrap(StoredError(threads_, part, expert, expert.stored.layout));
      error_apart.insert(error_apart.end(), of_part.values().begin(), of_part.values().end());
    }
    EXPECT_THAT(apart, testing::ElementsAreArray(weights.values()));
    EXPECT_THAT(error_apart, testing::ElementsAreArray(error.values()));
    double sum = 0.0;
    for (const float value : error_apart) sum += double{value} * value;
    EXPECT_NEAR(squared_error, sum, 1e-6 * sum);
    const size_t num_parts = all.parts.size();
    const std::vector<float> factors = all.parts.back().column_factors;
    JoinExperts(experts, all);
    ASSERT_EQ(all.parts.size(), num_parts);
    EXPECT_EQ(all.parts.back().column_factors, factors);
  }
}

TEST(RowsOfAnExpert, MustDecideAndJudge) {
  EXPECT_TRUE(HasEnoughRows(16, 8, 64));
  EXPECT_FALSE(HasEnoughRows(15, 8, 64));
  EXPECT_FALSE(HasEnoughRows(16, 7, 64));
  EXPECT_FALSE(HasEnoughRows(0, 0, 1));
}

TEST(ChooseLargestTest, ChoosesAsTheRuntimeDoes) {
  Matrix scores = RandomMatrix(50, 16, 3);
  for (size_t i = 0; i < 16; i += 3) scores(0, i) = 2.0f;  // Equal ones.
  const Matrix bias = RandomMatrix(1, 16, 4);
  const std::vector<LargestChoice> choices = {
      {},
      {.normalize = true},
      {.has_sigmoids = true},
      {.normalize = true, .has_sigmoids = true, .bias = bias.values()}};
  for (const LargestChoice& choice : choices) {
    const ops::ExpertChoice runtimes = {.normalize = choice.normalize,
                                        .has_sigmoids = choice.has_sigmoids,
                                        .bias = choice.bias.empty() ? nullptr : choice.bias.data()};
    for (size_t row = 0; row < scores.rows(); ++row) {
      for (const size_t count : {1, 4, 16}) {
        std::vector<uint32_t> experts(count), expected_experts(count);
        std::vector<float> weights(count), expected_weights(count);
        ChooseLargest(scores.view().row(row), choice, experts, weights);
        ops::ChooseExperts(scores.view().row(row), runtimes, expected_experts, expected_weights);
        EXPECT_EQ(experts, expected_experts);
        EXPECT_THAT(weights, testing::Pointwise(testing::FloatNear(1e-6f), expected_weights));
      }
    }
  }
}

TEST(BatchesOfRows, TakeTheRowsThatAreHeldBackLast) {
  // Windows 7, 15 and 19 of 20 are held back.
  const CalibrationTokens tokens = {.ids = std::vector<int32_t>(20 * 512), .window_tokens = 512};
  std::vector<uint32_t> rows;
  for (uint32_t row = 0; row < tokens.ids.size(); row += 3) rows.push_back(row);
  const std::vector<RowBatch> batches = BatchSomeRows(tokens, rows);
  std::vector<uint32_t> taken;
  bool was_held_back = false;
  for (const RowBatch& batch : batches) {
    EXPECT_EQ(batch.first, taken.size());
    ASSERT_EQ(batch.segments.size(), 1);
    EXPECT_EQ(batch.segments[0].first, 0);
    EXPECT_EQ(batch.segments[0].rows, batch.rows.size());
    const bool is_held_back = batch.segments[0].is_held_back;
    EXPECT_TRUE(is_held_back || !was_held_back);
    was_held_back = is_held_back;
    for (const uint32_t row : batch.rows) EXPECT_EQ(tokens.IsHeldBack(row / 512), is_held_back);
    taken.insert(taken.end(), batch.rows.begin(), batch.rows.end());
  }
  EXPECT_EQ(NumRows(batches, false) + NumRows(batches, true), rows.size());
  EXPECT_NEAR(static_cast<double>(NumRows(batches, true)), 3 * 512 / 3.0, 3.0);
  std::ranges::sort(taken);
  EXPECT_EQ(taken, rows);
  EXPECT_TRUE(BatchSomeRows(tokens, {}).empty());
}

TEST(ActivationRows, AreReadAndWrittenByNumber) {
  const support::TemporaryDirectory folder;
  ScratchFile scratch = Unwrap(ScratchFile::Create(folder / "model.cria"));
  ActivationFile file(scratch, 8, 5);
  Unwrap(file.Write(0, Matrix(8, 5)));
  const Matrix rows = RandomMatrix(4, 5, 1);
  const std::vector<uint32_t> numbers = {1, 2, 5, 7};
  Unwrap(file.WriteRows(numbers, rows));
  const Matrix read = Unwrap(file.ReadRows(numbers, 5));
  EXPECT_THAT(read.values(), testing::ElementsAreArray(rows.values()));
  const Matrix all = Unwrap(file.Read(0, 8, 5));
  for (const size_t untouched : {0, 3, 4, 6}) {
    EXPECT_THAT(all.view().row(untouched), testing::Each(0.0f));
  }
  EXPECT_THAT(all.view().row(5), testing::ElementsAreArray(rows.view().row(2)));
}

}  // namespace
}  // namespace cria
