#include "converter/calibrate/kept_predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "converter/calibrate/block.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/open_checkpoint.h"
#include "converter/quantize/row_quantizer.h"
#include "converter/write/hadamard.h"
#include "random_matrix.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using testing::ElementsAre;

TEST(HeldBackTokensTest, AreSpacedEvenly) {
  CalibrationTokens tokens = {.ids = std::vector<int32_t>(40), .window_tokens = 4};
  EXPECT_THAT(HeldBackTokens(tokens, 100), ElementsAre(28, 29, 30, 31, 36, 37, 38, 39));
  EXPECT_THAT(HeldBackTokens(tokens, 4), ElementsAre(28, 30, 36, 38));
  EXPECT_THAT(HeldBackTokens(tokens, 1), ElementsAre(28));
}

class ComparePredictionsTest : public testing::Test {
 protected:
  void Open(const support::CheckpointSpec& spec, const TensorSchemes& schemes) {
    support::WriteHuggingFaceDirectory(support::MakeModel(spec), folder_ / "checkpoint", {});
    checkpoint_ = Unwrap(OpenCheckpoint(folder_ / "checkpoint"));
    plan_ = PlanTensors(Unwrap(MapTensors(checkpoint_)), checkpoint_.config, schemes);
  }

  KeptPredictions Compare(const Matrix& exact, const Matrix& stored) {
    const ThreadPool threads = Unwrap(ThreadPool::Create(2));
    std::vector<double> parts;
    const KeptPredictions predictions = Unwrap(ComparePredictions(
        threads, checkpoint_.config, plan_, exact, stored, [&](double part) -> Status {
          parts.push_back(part);
          return {};
        }));
    EXPECT_EQ(parts.front(), 0.0);
    EXPECT_TRUE(std::ranges::is_sorted(parts));
    EXPECT_LT(parts.back(), 1.0);
    return predictions;
  }

  // Logits by the definition: of the head as the checkpoint has it, or as it is stored.
  std::vector<std::vector<double>> Logits(const Matrix& hidden, bool is_stored) {
    const ThreadPool threads = Unwrap(ThreadPool::Create(1));
    const std::vector<float> gain =
        Unwrap(ReadVector(FindTensor(plan_, TensorRole::kNorm, kNoLayer)));
    Matrix head = Unwrap(ReadMatrix(HeadOf(plan_)));
    const TensorLayout& layout = HeadOf(plan_).stored.layout;
    Matrix rows = hidden;
    if (checkpoint_.config.rotated_residual) RotateRows(rows.columns(), rows.values());
    for (size_t row = 0; row < rows.rows(); ++row) {
      double squares = 0.0;
      for (const float value : rows.view().row(row)) squares += double{value} * value;
      const double size = static_cast<double>(rows.columns());
      const double factor = 1.0 / std::sqrt(squares / size + checkpoint_.config.rms_norm_eps);
      for (size_t i = 0; i < rows.columns(); ++i) {
        rows(row, i) = static_cast<float>(rows(row, i) * factor * gain[i]);
      }
    }
    if (is_stored && layout.scheme != Scheme::kF32) {
      RoundInputs(threads, rows.view());
      RowQuantizer quantizer(layout);
      std::vector<float> padded(layout.padded_input_channels);
      std::vector<std::byte> data(layout.row_bytes()), scales(layout.row_scale_bytes());
      for (size_t token = 0; token < head.rows(); ++token) {
        std::ranges::copy(head.view().row(token), padded.begin());
        quantizer.Quantize(padded, data, scales);
        quantizer.Dequantize(data, scales, padded);
        std::copy_n(padded.begin(), head.columns(), head.view().row(token).begin());
      }
    }
    const double cap = checkpoint_.config.final_logit_softcapping;
    std::vector<std::vector<double>> logits(rows.rows());
    for (size_t row = 0; row < rows.rows(); ++row) {
      for (size_t token = 0; token < head.rows(); ++token) {
        double logit = 0.0;
        for (size_t i = 0; i < head.columns(); ++i) logit += double{head(token, i)} * rows(row, i);
        logits[row].push_back(cap == 0.0 ? logit : cap * std::tanh(logit / cap));
      }
    }
    return logits;
  }

  static double LogSumOfExps(const std::vector<double>& logits) {
    double sum = 0.0;
    for (const double logit : logits) sum += std::exp(logit);
    return std::log(sum);
  }
  static double Divergence(const std::vector<double>& exact, const std::vector<double>& stored) {
    const double exact_sum = LogSumOfExps(exact);
    const double stored_sum = LogSumOfExps(stored);
    double divergence = 0.0;
    for (size_t i = 0; i < exact.size(); ++i) {
      const double expected = exact[i] - exact_sum;
      divergence += std::exp(expected) * (expected - (stored[i] - stored_sum));
    }
    return divergence;
  }

  // Compares `stored`, which is `exact` with random numbers of this size added, by the definition.
  void ExpectAsDefined(float noise, size_t num_rows) {
    const size_t channels = checkpoint_.config.hidden_size;
    const Matrix exact = RandomMatrix(num_rows, channels, 3);
    Matrix stored = RandomMatrix(num_rows, channels, 4);
    for (size_t i = 0; i < stored.values().size(); ++i) {
      stored.values()[i] = exact.values()[i] + noise * stored.values()[i];
    }
    const std::vector<std::vector<double>> expected = Logits(exact, false);
    const std::vector<std::vector<double>> kept = Logits(stored, true);
    size_t num_same = 0;
    double divergence = 0.0;
    for (size_t row = 0; row < num_rows; ++row) {
      const auto choice = std::ranges::max_element(expected[row]) - expected[row].begin();
      const auto kept_choice = std::ranges::max_element(kept[row]) - kept[row].begin();
      num_same += size_t{choice == kept_choice};
      divergence += Divergence(expected[row], kept[row]) / static_cast<double>(num_rows);
    }
    const KeptPredictions predictions = Compare(exact, stored);
    EXPECT_EQ(predictions.num_tokens, num_rows);
    EXPECT_EQ(predictions.num_same, num_same);
    EXPECT_NEAR(predictions.divergence, divergence, 1e-4 * divergence);
    EXPECT_GT(num_same, num_rows / 10);
    EXPECT_LT(num_same, num_rows);
  }

  support::TemporaryDirectory folder_;
  Checkpoint checkpoint_;
  FilePlan plan_;
};

TEST_F(ComparePredictionsTest, CountsWhatTheDefinitionCounts) {
  for (const support::CheckpointSpec& spec : {support::SpecBiases(), support::SpecQwen2()}) {
    for (const Scheme head : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w}) {
      SCOPED_TRACE(SchemeName(head));
      Open(spec, {.head = head});
      ExpectAsDefined(0.3f, 100);
    }
  }
}

TEST_F(ComparePredictionsTest, WithCappedLogits) {
  Open(support::SpecBiases(), {});
  checkpoint_.config.final_logit_softcapping = 3.0f;
  ExpectAsDefined(0.3f, 100);
}

TEST_F(ComparePredictionsTest, OfARotatedHiddenStateAndALargeVocabulary) {
  support::CheckpointSpec spec = support::SpecBiases();
  // More than one part of the head.
  spec.config.vocab_size = 33'000;
  Open(spec, {});
  checkpoint_.config.rotated_residual = true;
  ExpectAsDefined(0.3f, 20);
}

TEST_F(ComparePredictionsTest, WithoutRoundingAllAreTheSame) {
  Open(support::SpecBiases(), {.head = Scheme::kF32});
  const Matrix rows = RandomMatrix(20, checkpoint_.config.hidden_size, 5);
  const KeptPredictions predictions = Compare(rows, rows);
  EXPECT_EQ(predictions.num_same, 20);
  EXPECT_NEAR(predictions.divergence, 0.0, 1e-6);
}

}  // namespace
}  // namespace cria
