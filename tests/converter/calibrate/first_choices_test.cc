#include "converter/calibrate/first_choices.h"

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

class CompareFirstChoicesTest : public testing::Test {
 protected:
  void Open(const support::CheckpointSpec& spec, const TensorSchemes& schemes) {
    support::WriteHuggingFaceDirectory(support::MakeModel(spec), folder_ / "checkpoint", {});
    checkpoint_ = Unwrap(OpenCheckpoint(folder_ / "checkpoint"));
    plan_ = PlanTensors(Unwrap(MapTensors(checkpoint_)), checkpoint_.config, schemes);
  }

  FirstChoices Compare(const Matrix& exact, const Matrix& stored) {
    const ThreadPool threads = Unwrap(ThreadPool::Create(2));
    std::vector<double> parts;
    const FirstChoices choices = Unwrap(CompareFirstChoices(
        threads, checkpoint_.config, plan_, exact, stored, [&](double part) -> Status {
          parts.push_back(part);
          return {};
        }));
    EXPECT_EQ(parts.front(), 0.0);
    EXPECT_TRUE(std::ranges::is_sorted(parts));
    EXPECT_LT(parts.back(), 1.0);
    return choices;
  }

  // The most likely tokens by the definition: of the head as the checkpoint has it, or as it is
  // stored.
  std::vector<size_t> Choices(const Matrix& hidden, bool is_stored) {
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
    std::vector<size_t> choices;
    for (size_t row = 0; row < rows.rows(); ++row) {
      double most = -INFINITY;
      choices.push_back(0);
      for (size_t token = 0; token < head.rows(); ++token) {
        double logit = 0.0;
        for (size_t i = 0; i < head.columns(); ++i) logit += double{head(token, i)} * rows(row, i);
        if (logit > most) {
          most = logit;
          choices.back() = token;
        }
      }
    }
    return choices;
  }

  // Compares `stored`, which is `exact` with random numbers of this size added, by the definition.
  void ExpectAsDefined(float noise, size_t num_rows) {
    const size_t channels = checkpoint_.config.hidden_size;
    const Matrix exact = RandomMatrix(num_rows, channels, 3);
    Matrix stored = RandomMatrix(num_rows, channels, 4);
    for (size_t i = 0; i < stored.values().size(); ++i) {
      stored.values()[i] = exact.values()[i] + noise * stored.values()[i];
    }
    const std::vector<size_t> expected = Choices(exact, false);
    const std::vector<size_t> kept = Choices(stored, true);
    size_t num_same = 0;
    for (size_t row = 0; row < expected.size(); ++row) {
      num_same += size_t{expected[row] == kept[row]};
    }
    const FirstChoices choices = Compare(exact, stored);
    EXPECT_EQ(choices.num_tokens, num_rows);
    EXPECT_EQ(choices.num_same, num_same);
    EXPECT_GT(num_same, num_rows / 10);
    EXPECT_LT(num_same, num_rows);
  }

  support::TemporaryDirectory folder_;
  Checkpoint checkpoint_;
  FilePlan plan_;
};

TEST_F(CompareFirstChoicesTest, CountsWhatTheDefinitionCounts) {
  for (const support::CheckpointSpec& spec : {support::SpecBiases(), support::SpecQwen2()}) {
    for (const Scheme head : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w}) {
      SCOPED_TRACE(SchemeName(head));
      Open(spec, {.head = head});
      ExpectAsDefined(0.3f, 100);
    }
  }
}

TEST_F(CompareFirstChoicesTest, OfARotatedHiddenStateAndALargeVocabulary) {
  support::CheckpointSpec spec = support::SpecBiases();
  // More than one part of the head.
  spec.config.vocab_size = 33'000;
  Open(spec, {});
  checkpoint_.config.rotated_residual = true;
  ExpectAsDefined(0.3f, 20);
}

TEST_F(CompareFirstChoicesTest, WithoutRoundingAllAreTheSame) {
  Open(support::SpecBiases(), {.head = Scheme::kF32});
  const Matrix rows = RandomMatrix(20, checkpoint_.config.hidden_size, 5);
  EXPECT_EQ(Compare(rows, rows).num_same, 20);
}

}  // namespace
}  // namespace cria
