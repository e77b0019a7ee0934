// Calibrating, equalizing and rotating models of the families that compute more than Llama does.
// They are compared with the decoder, whose tests compare it with the reference, or with that.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "converter/calibrate/block.h"
#include "converter/calibrate/layer_blocks.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/predictions.h"
#include "converter/calibrate/rotation.h"
#include "converter/calibrate/run_layer.h"
#include "converter/calibrate/sensitivity.h"
#include "converter/calibrate/stored_error.h"
#include "converter/convert.h"
#include "converter/equalize/equalize.h"
#include "converter/open_checkpoint.h"
#include "converter/write/hadamard.h"
#include "decode/loaded_model.h"
#include "reference/reference_decoder.h"
#include "support/family_checkpoint.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using support::FamilyCheckpoint;

// Numbers of tokens without any order.
std::vector<int32_t> UnorderedIds(size_t count, size_t vocab_size, uint32_t seed) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) {
    seed = seed * 1664525u + 1013904223u;
    id = static_cast<int32_t>((seed >> 16) % vocab_size);
  }
  return ids;
}

// Makes some channels of values, of up_proj and of the norms before matrices 40 times as large, and
// what reads them as much smaller, so that the model computes about the same as before.
void PlantLargeChannels(const FamilyCheckpoint& checkpoint, const std::filesystem::path& folder) {
  constexpr float kFactor = 40.0f;
  constexpr size_t kHeadChannel = 3, kHeadDim = 16;
  constexpr size_t kNormChannel = 5;
  const bool is_lfm = checkpoint.name.starts_with("Lfm");
  const bool adds_one =
      checkpoint.name.starts_with("Gemma") || checkpoint.name.starts_with("Qwen35");
  // Only what attention and the feed-forward write is normalized.
  const bool is_olmo2 = checkpoint.name.starts_with("Olmo2") ||
                        checkpoint.name.starts_with("Olmo3") ||
                        checkpoint.name.starts_with("Exaone4");
  const bool has_both =
      checkpoint.name.starts_with("Gemma2") || checkpoint.name.starts_with("Gemma3");
  const std::vector<support::TensorShape> tensors = support::FamilyTensors(checkpoint);
  support::SafetensorsWriter writer(folder / "model.safetensors", support::StorageType::kF32,
                                    tensors);
  for (const support::TensorShape& tensor : tensors) {
    std::vector<float> values = support::FamilyValues(checkpoint, tensor);
    if (tensor.shape.empty()) {  // A number of an activation.
      writer.Write(values);
      continue;
    }
    const auto is_of = [&](const char* module) {
      return tensor.name.find(module) != std::string::npos;
    };
    // The rows of each expert, if all are in one tensor.
    const size_t rows = tensor.shape[tensor.shape.size() == 3 ? 1 : 0];
    const size_t columns = tensor.shape.size() == 1 ? 1 : tensor.shape.back();
    const auto multiply = [&](size_t first_row, size_t row_step, size_t first_column,
                              size_t column_step, float factor) {
      for (size_t first = 0; first < values.size(); first += rows * columns) {
        for (size_t row = first_row; row < rows; row += row_step) {
          for (size_t i = first_column; i < columns; i += column_step) {
            values[first + row * columns + i] *= factor;
          }
        }
      }
    };
    const bool is_norm = is_of(".input_layernorm.") || is_of(".pre_feedforward_layernorm.") ||
                         (is_of(".post_attention_layernorm.") && !is_olmo2 && !has_both) ||
                         is_of(".operator_norm.") || is_of(".ffn_norm.") ||
                         is_of(".attention_layernorm.") || is_of(".feedforward_layernorm.");
    const bool is_writer = is_of(".o_proj.weight") || is_of(".self_attn.out_proj.weight") ||
                           is_of(".down_proj.weight") || is_of(".w2.weight") ||
                           is_of(".output_linear.");
    if (is_norm) {
      const float offset = adds_one ? 1.0f : 0.0f;
      values[kNormChannel] = kFactor * (offset + values[kNormChannel]) - offset;
      // The gains of some of these are so small that 40 times as much is not large.
      if (is_lfm) values[kNormChannel] = kFactor;
    } else if (is_writer) {
      multiply(0, 1, kHeadChannel, kHeadDim, 1.0f / kFactor);
    } else if (is_of(".gate.") || is_of(".router.") || is_of(".shared_expert_gate.")) {
      multiply(0, 1, kNormChannel, columns, 1.0f / kFactor);
    } else if (!is_of(".conv.out_proj.") && !is_of(".linear_attn.out_proj.") &&
               (is_of("_proj.") || is_of(".in_proj_") || is_of(".w1.") || is_of(".w3.") ||
                is_of("_linear."))) {
      // Values are behind two heads of queries for each head, and up_proj is behind gate_proj.
      const size_t first_row = is_of(".v_proj.") || is_of(".up_proj.") || is_of(".w3.") ? 0
                               : is_of(".qkv_proj.")                                ? rows * 3 / 4
                               : is_of(".gate_up_proj.") || is_of(".input_linear.") ? rows / 2
                                                                                    : rows;
      multiply(first_row + kHeadChannel, kHeadDim, 0, 1, kFactor);
      if (!is_olmo2) multiply(0, 1, kNormChannel, columns, 1.0f / kFactor);
    }
    writer.Write(values);
  }
  writer.Finish();
}

class FamilySteps : public testing::TestWithParam<FamilyCheckpoint> {
 protected:
  void SetUp() override {
    support::WriteFamilyDirectory(GetParam(), folder_ / "checkpoint");
    Open();
  }
  void Open() { checkpoint_ = Unwrap(OpenCheckpoint(folder_ / "checkpoint")); }
  FilePlan Plan(Scheme weights) const {
    return PlanTensors(Unwrap(MapTensors(checkpoint_)), checkpoint_.config, {.weights = weights});
  }

  CalibrationTokens TwoWindows(size_t window_tokens) const {
    return {.ids = UnorderedIds(2 * window_tokens, checkpoint_.config.vocab_size, 3),
            .window_tokens = window_tokens};
  }

  // What the steps make of the plan's matrices before they are rounded, but for one in int4 if it
  // is not null, with all experts: the hidden rows behind the last layer, as the checkpoint has
  // them.
  Matrix Hidden(const ModelConfig& config, const CalibrationTokens& tokens, FilePlan& plan,
                const TensorSpec* in_int4 = nullptr) const {
    const auto read = [&](const PlannedTensor& tensor) -> Result<Matrix> {
      const TensorSpec& spec = tensor.stored.spec;
      Matrix weights = Unwrap(ReadMatrix(tensor));
      if (in_int4 == nullptr || spec.Name() != in_int4->Name()) return weights;
      const TensorLayout layout = MakeTensorLayout(spec, Scheme::kW4G64, 0);
      const Matrix error = Unwrap(StoredError(threads_, weights, tensor, layout));
      for (size_t i = 0; i < error.values().size(); ++i) weights.values()[i] += error.values()[i];
      return weights;
    };
    const std::vector<size_t> windows = {0, 1};
    Matrix hidden = Unwrap(EmbedWindows(tokens, windows, config, plan));
    for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
      const LayerBlocks blocks =
          Unwrap(MakeLayerBlocks(config, threads_, tokens.window_tokens, layer, plan));
      Unwrap(RunLayer(blocks, config, threads_, read, /*rounds=*/false, hidden));
    }
    if (config.rotated_residual) RotateRows(hidden.columns(), hidden.values());
    return hidden;
  }

  std::vector<float> Logits(const Matrix& hidden, FilePlan& plan) const {
    Matrix rows(hidden.rows(), hidden.columns());
    NormalizeRows(threads_, hidden.view(),
                  Unwrap(ReadVector(FindTensor(plan, TensorRole::kNorm, kNoLayer))),
                  checkpoint_.config.rms_norm_eps, rows.view());
    const PlannedTensor* head = FindTensor(plan, TensorRole::kLmHead, kNoLayer);
    if (head == nullptr) head = FindTensor(plan, TensorRole::kEmbedTokens, kNoLayer);
    Matrix logits = Multiply(threads_, rows, Unwrap(ReadMatrix(*head)));
    const float cap = checkpoint_.config.final_logit_softcapping;
    if (cap != 0.0f) {
      for (float& logit : logits.values()) logit = cap * std::tanh(logit / cap);
    }
    return {logits.values().begin(), logits.values().end()};
  }

  support::TemporaryDirectory folder_;
  Checkpoint checkpoint_;
  ThreadPool threads_ = Unwrap(ThreadPool::Create(2));
};

TEST_P(FamilySteps, GiveTheLogitsOfTheDecoder) {
  const auto converted =
      std::make_shared<const ConvertedModel>(GetParam(), ConvertOptions{.weights = Scheme::kF32});
  // The shorter context is not longer than what the models with longrope were trained for.
  for (const size_t window_tokens : {32, 64}) {
    const CalibrationTokens tokens = TwoWindows(window_tokens);
    FilePlan plan = Plan(Scheme::kF32);
    const std::vector<float> logits = Logits(Hidden(checkpoint_.config, tokens, plan), plan);
    std::vector<float> expected;
    for (const size_t window : {0, 1}) {
      LoadedModel loaded(converted, {.context_tokens = window_tokens}, 1);
      const auto ids = tokens.Window(window);
      const auto rows = loaded.Run({ids.begin(), ids.end()}, {window_tokens});
      expected.insert(expected.end(), rows.begin(), rows.end());
    }
    ASSERT_EQ(logits.size(), expected.size());
    EXPECT_LT(LargestDifference(logits, expected), 1e-4f * LargestMagnitude(expected))
        << "windows of " << window_tokens;
  }
}

TEST_P(FamilySteps, AnEqualizedModelComputesTheSame) {
  PlantLargeChannels(GetParam(), folder_ / "checkpoint");
  Open();
  const ModelConfig& config = checkpoint_.config;
  const CalibrationTokens tokens = TwoWindows(32);
  for (const Scheme scheme : {Scheme::kQb4w, Scheme::kQc8w}) {
    FilePlan plan = Plan(scheme);
    const std::vector<float> before = Logits(Hidden(config, tokens, plan), plan);
    const EqualizeReport report = Unwrap(Equalize(plan, config, threads_));
    // What a limit changes cannot be evened out, and such experts have no planted channels.
    const bool has_limit = config.swiglu_limit != 0.0f;
    size_t places = 0;  // In the layers: norms and pairs.
    for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
      const bool has_shared = config.shared_expert_intermediate_size != 0;
      places += config.has_norms_before() ? 3 : 1;
      if (!config.layer_kind(layer).has_attention()) --places;
      if (config.ungated_mlp) --places;
      if (config.v_norm) --places;
      if (has_limit) continue;
      places += config.is_mixture(layer) ? config.num_experts + size_t{has_shared} : 1;
    }
    EXPECT_EQ(report.num_places, places + (config.tie_word_embeddings ? 0 : 1));
    EXPECT_GE(report.num_equalized, has_limit ? config.num_hidden_layers : places);
    const std::vector<float> after = Logits(Hidden(config, tokens, plan), plan);
    // Scores that are not divided magnify what is rounded.
    const float bound = config.v_norm ? 5e-4f : 1e-4f;
    EXPECT_LT(LargestDifference(after, before), bound * LargestMagnitude(before));
  }
}

TEST_P(FamilySteps, ARotatedModelComputesTheSameOrIsRefused) {
  ModelConfig config = checkpoint_.config;
  const CalibrationTokens tokens = TwoWindows(32);
  FilePlan plan = Plan(Scheme::kQc8w);
  const std::vector<float> before = Logits(Hidden(config, tokens, plan), plan);
  const auto report = RotateResidual(tokens, /*choice=*/true, threads_, nullptr, config, plan);
  if (config.has_norms_after()) {
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), ErrorCode::kUsage);
    EXPECT_FALSE(Unwrap(RotateResidual(tokens, {}, threads_, nullptr, config, plan)).is_rotated);
    EXPECT_FALSE(config.rotated_residual);
    return;
  }
  EXPECT_TRUE(Unwrap(report).is_rotated);
  EXPECT_TRUE(config.rotated_residual);
  const std::vector<float> after = Logits(Hidden(config, tokens, plan), plan);
  EXPECT_LT(LargestDifference(after, before), 1e-4f * LargestMagnitude(before));
}

double SumOfDivergences(const std::vector<float>& exact, const std::vector<float>& changed,
                        size_t vocab_size) {
  double sum = 0.0;
  for (size_t first = 0; first < exact.size(); first += vocab_size) {
    const auto log_sum = [&](const std::vector<float>& logits) {
      double total = 0.0;
      for (size_t i = 0; i < vocab_size; ++i) total += std::exp(double{logits[first + i]});
      return std::log(total);
    };
    const double exact_sum = log_sum(exact), changed_sum = log_sum(changed);
    for (size_t i = first; i < first + vocab_size; ++i) {
      const double p = exact[i] - exact_sum, q = changed[i] - changed_sum;
      sum += std::exp(p) * (p - q);
    }
  }
  return sum;
}

TEST_P(FamilySteps, DivergencesAreThoseOfTheLogits) {
  FilePlan plan = Plan(Scheme::kF32);
  const Matrix exact = Hidden(checkpoint_.config, TwoWindows(32), plan);
  std::vector<Matrix> changed = {exact};
  for (size_t i = 0; i < exact.values().size(); i += 3) changed[0].values()[i] *= 1.5f;
  const double expected = SumOfDivergences(Logits(exact, plan), Logits(changed[0], plan),
                                           checkpoint_.config.vocab_size);
  ASSERT_GT(expected, 0.0);
  EXPECT_NEAR(Unwrap(Divergences(threads_, checkpoint_.config, plan, exact, changed)).front(),
              expected, 1e-3 * expected);
}

TEST_P(FamilySteps, SensitivityIsTheDivergenceOfOneRoundedMatrix) {
  const ModelConfig& config = checkpoint_.config;
  const CalibrationTokens tokens = TwoWindows(32);
  FilePlan plan = Plan(Scheme::kW4G64);
  std::vector<MatrixOptions> matrices = AllSchemeOptions(plan);
  Unwrap(MeasureSensitivity(tokens, config, threads_, nullptr, plan, matrices));
  ASSERT_GE(matrices.size(), 4 * config.num_hidden_layers);
  const std::vector<float> exact = Logits(Hidden(config, tokens, plan), plan);
  for (const MatrixOptions& matrix : matrices) {
    const TensorSpec spec = plan.tensors[matrix.tensor].stored.spec;
    const std::vector<float> changed = Logits(Hidden(config, tokens, plan, &spec), plan);
    const double expected = SumOfDivergences(exact, changed, config.vocab_size) /
                            static_cast<double>(tokens.ids.size());
    EXPECT_NEAR(matrix.options[1].cost, expected, 0.02 * expected) << spec.Name();
  }
}

// Mixtures of experts are refused, and so are what some models of Gemma 4 have.
std::vector<FamilyCheckpoint> DenseFamilies() {
  std::vector<FamilyCheckpoint> families = support::FamilyCheckpoints();
  std::erase_if(families, [](const FamilyCheckpoint& family) {
    return family.config_json.contains("num_experts_per_tok") ||
           (family.name.starts_with("Gemma4") && family.name != "Gemma4KeysAreValues");
  });
  return families;
}

INSTANTIATE_TEST_SUITE_P(Families, FamilySteps, testing::ValuesIn(DenseFamilies()),
                         [](const auto& param) { return param.param.name; });
INSTANTIATE_TEST_SUITE_P(RecurrentMixtures, FamilySteps,
                         testing::Values(support::FamilyNamed("Lfm2Moe"),
                                         support::FamilyNamed("Lfm2MoeScaled"),
                                         support::FamilyNamed("Qwen35Moe"),
                                         support::FamilyNamed("GraniteMambaMoe"),
                                         support::FamilyNamed("GptOss")),
                         [](const auto& param) { return param.param.name; });

// With norms of outputs, without norms of inputs, and with other gates and rope.
class FamilyCalibration : public testing::TestWithParam<const char*> {};

TEST_P(FamilyCalibration, LowersTheDivergence) {
  const FamilyCheckpoint checkpoint = support::FamilyNamed(GetParam());
  constexpr size_t kVocabulary = 300;
  const std::vector<int32_t> ids = UnorderedIds(64, kVocabulary, 5);
  const auto logits = [&](const ConvertOptions& options) {
    LoadedModel loaded(std::make_shared<const ConvertedModel>(checkpoint, options),
                       {.context_tokens = 64}, 1);
    return loaded.Run(ids, {ids.size()});
  };
  const std::vector<float> exact = logits({.weights = Scheme::kF32});
  const double rounded = SumOfDivergences(exact, logits({}), kVocabulary);
  ConvertOptions options;
  options.calibration.emplace().tokens =
      CalibrationTokens{.ids = UnorderedIds(4096, kVocabulary, 1), .window_tokens = 64};
  const double calibrated = SumOfDivergences(exact, logits(options), kVocabulary);
  EXPECT_GT(calibrated, 0.0);
  EXPECT_LT(calibrated, rounded);
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyCalibration,
                         testing::Values("GemmaBiases", "Gemma2", "Gemma3", "Phi4Mini",
                                         "SmolLm3Window", "Olmo2", "MixtralWindow",
                                         "Qwen2MoeDenseLayers", "Olmoe", "GraniteMoeShared"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace cria
