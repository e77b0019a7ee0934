#include "converter/calibrate/sensitivity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "converter/calibrate/block.h"
#include "converter/open_checkpoint.h"
#include "decode/loaded_model.h"
#include "support/emulation.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria {
namespace {

class SensitivityTest : public testing::Test {
 protected:
  void Open(const support::CheckpointSpec& spec) {
    model_ = support::MakeModel(spec);
    support::WriteHuggingFaceDirectory(model_, folder_ / "checkpoint", {});
    checkpoint_ = Unwrap(OpenCheckpoint(folder_ / "checkpoint"));
    plan_ = PlanTensors(Unwrap(MapTensors(checkpoint_)), checkpoint_.config, {});
    tokens_.window_tokens = 16;
    for (int32_t i = 0; i < 64; ++i) {
      tokens_.ids.push_back(i * i % static_cast<int32_t>(checkpoint_.config.vocab_size));
    }
  }

  std::vector<MatrixOptions> Measure(size_t num_threads,
                                     ChosenMatrices which = ChosenMatrices::kLayers) {
    const ThreadPool threads = Unwrap(ThreadPool::Create(num_threads));
    std::vector<MatrixOptions> matrices = AllSchemeOptions(plan_, which);
    Unwrap(MeasureSensitivity(tokens_, checkpoint_.config, threads, nullptr, plan_, matrices));
    return matrices;
  }

  // Nats per token between the references of the checkpoint and of `changed`.
  double Divergence(const reference::ReferenceModel& changed) const {
    double sum = 0.0;
    for (size_t window = 0; window < tokens_.num_windows(); ++window) {
      const auto ids = tokens_.Window(window);
      const std::vector<int32_t> text(ids.begin(), ids.end());
      const std::vector<float> exact = ReferenceLogits(model_, text);
      const std::vector<float> other = ReferenceLogits(changed, text);
      const size_t size = exact.size() / text.size();
      for (size_t row = 0; row < text.size(); ++row) {
        const auto of = [&](const std::vector<float>& logits) {
          std::vector<double> values(logits.begin() + static_cast<ptrdiff_t>(row * size),
                                     logits.begin() + static_cast<ptrdiff_t>((row + 1) * size));
          double total = 0.0;
          for (const double each : values) total += std::exp(each);
          for (double& each : values) each -= std::log(total);
          return values;
        };
        const std::vector<double> p = of(exact), q = of(other);
        for (size_t i = 0; i < size; ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
      }
    }
    return sum / static_cast<double>(tokens_.ids.size());
  }

  support::TemporaryDirectory folder_;
  reference::ReferenceModel model_;
  Checkpoint checkpoint_;
  FilePlan plan_;
  CalibrationTokens tokens_;
};

// What is stored of the values of a matrix.
void Round(const TensorLayout& layout, std::vector<float>& values) {
  RowQuantizer quantizer(layout);
  std::vector<float> row(layout.padded_input_channels);
  std::vector<std::byte> data(layout.row_bytes()), scales(layout.row_scale_bytes());
  for (size_t begin = 0; begin < values.size(); begin += layout.input_channels) {
    std::ranges::fill(row, 0.0f);
    std::copy_n(values.begin() + static_cast<ptrdiff_t>(begin), layout.input_channels, row.begin());
    quantizer.Quantize(row, data, scales);
    quantizer.Dequantize(data, scales, row);
    std::copy_n(row.begin(), layout.input_channels, values.begin() + static_cast<ptrdiff_t>(begin));
  }
}

TEST_F(SensitivityTest, IsTheDivergenceOfAModelWithOneRoundedMatrix) {
  Open(support::SpecBiases());
  const std::vector<MatrixOptions> matrices = Measure(2);
  ASSERT_EQ(matrices.size(), 4 * model_.config.num_hidden_layers);
  const std::map<std::string, std::vector<std::string>> sources = {
      {"qkv_proj", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
      {"o_proj", {"self_attn.o_proj"}},
      {"gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}},
      {"down_proj", {"mlp.down_proj"}}};
  for (const MatrixOptions& matrix : matrices) {
    const TensorSpec& spec = plan_.tensors[matrix.tensor].stored.spec;
    reference::ReferenceModel changed = model_;
    for (const std::string& source : sources.at(std::string(TensorRoleName(spec.role)))) {
      Round(matrix.options[1].layout,
            changed.tensors
                .at("model.layers." + std::to_string(spec.layer) + "." + source + ".weight")
                .values);
    }
    const double expected = Divergence(changed);
    EXPECT_NEAR(matrix.options[1].cost, expected, 0.02 * expected) << spec.Name();
    // int8 has 16 times as many steps.
    EXPECT_LT(matrix.options[0].cost, expected / 64) << spec.Name();
    EXPECT_GT(matrix.options[0].cost, expected / 1024) << spec.Name();
  }
}

TEST_F(SensitivityTest, OfTablesIsTheDivergenceOfAModelWithARoundedTable) {
  for (const support::CheckpointSpec& spec : {support::SpecBiases(), support::SpecTied()}) {
    SCOPED_TRACE(spec.config.architecture);
    tokens_ = {};
    Open(spec);
    const bool is_tied = model_.config.tie_word_embeddings;
    const std::vector<MatrixOptions> matrices = Measure(2, ChosenMatrices::kLayersAndTables);
    ASSERT_EQ(matrices.size(), 4 * model_.config.num_hidden_layers + (is_tied ? 1 : 2));
    const auto expect_cost_of = [&](const MatrixOptions& table, const char* name) {
      reference::ReferenceModel changed = model_;
      Round(table.options[1].layout, changed.tensors.at(name).values);
      const double expected = Divergence(changed);
      ASSERT_GT(expected, 0.0);
      EXPECT_NEAR(table.options[1].cost, expected, 0.02 * expected) << name;
      EXPECT_LT(table.options[0].cost, expected / 64) << name;
      EXPECT_GT(table.options[2].cost, 4.0 * expected) << name;
    };
    expect_cost_of(matrices.front(), "model.embed_tokens.weight");
    if (!is_tied) expect_cost_of(matrices.back(), "lm_head.weight");
    // The layers' costs are what they are without tables.
    const std::vector<MatrixOptions> layers = Measure(1);
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(matrices[i + 1].options[1].cost, layers[i].options[1].cost);
    }
  }
}

TEST_F(SensitivityTest, IsTheSameForEveryNumberOfThreads) {
  Open(support::SpecGqa());
  const std::vector<MatrixOptions> one = Measure(1), three = Measure(3);
  for (size_t i = 0; i < one.size(); ++i) {
    for (size_t option = 0; option < one[i].options.size(); ++option) {
      EXPECT_EQ(one[i].options[option].cost, three[i].options[option].cost);
    }
  }
}

TEST_F(SensitivityTest, WithoutATextItIsTheRelativeErrorOfTheWeights) {
  Open(support::SpecGqa());
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  std::vector<MatrixOptions> matrices = AllSchemeOptions(plan_);
  Unwrap(EstimateSensitivity(threads, nullptr, plan_, matrices));
  for (const MatrixOptions& matrix : matrices) {
    const cria::Matrix weights = Unwrap(ReadMatrix(plan_.tensors[matrix.tensor]));
    for (const SchemeOption& option : matrix.options) {
      std::vector<float> stored(weights.values().begin(), weights.values().end());
      Round(option.layout, stored);
      double error = 0.0, squares = 0.0;
      for (size_t i = 0; i < stored.size(); ++i) {
        error += std::pow(double{stored[i]} - weights.values()[i], 2);
        squares += std::pow(double{weights.values()[i]}, 2);
      }
      EXPECT_NEAR(option.cost, error / squares, 1e-6);
    }
  }
}

TEST_F(SensitivityTest, CanBeCancelled) {
  Open(support::SpecGqa());
  const ThreadPool threads = Unwrap(ThreadPool::Create(1));
  std::vector<MatrixOptions> matrices = AllSchemeOptions(plan_);
  size_t calls = 0;
  const ProgressCallback progress = [&](const ConvertProgress&) { return ++calls < 3; };
  EXPECT_EQ(MeasureSensitivity(tokens_, checkpoint_.config, threads, progress, plan_, matrices)
                .error()
                .code(),
            ErrorCode::kCancelled);
  EXPECT_EQ(calls, 3u);
  calls = 0;
  EXPECT_FALSE(EstimateSensitivity(threads, progress, plan_, matrices));
}

}  // namespace
}  // namespace cria
