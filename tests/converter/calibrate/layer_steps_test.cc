// The steps that calibration computes, put together to a decoder, against the float64 evaluation of
// the same checkpoint.

#include "converter/calibrate/layer_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "converter/calibrate/exponential.h"
#include "converter/calibrate/linear_algebra.h"
#include "converter/open_checkpoint.h"
#include "ops/quantized_blocks.h"
#include "random_matrix.h"
#include "reference/reference_decoder.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using reference::ReferenceModel;

// Rows of one or several tensors of a model, [rows, columns]; a vector is one row.
Matrix Joined(const ReferenceModel& model, const std::vector<std::string>& names) {
  std::vector<float> values;
  size_t columns = 0;
  for (const std::string& name : names) {
    const auto found = model.tensors.find(name);
    if (found == model.tensors.end()) return {};
    columns = found->second.shape.size() == 1 ? 0 : found->second.shape.back();
    values.insert(values.end(), found->second.values.begin(), found->second.values.end());
  }
  if (columns == 0) columns = values.size();
  Matrix joined(values.size() / columns, columns);
  std::ranges::copy(values, joined.values().begin());
  return joined;
}

std::vector<float> Vector(const ReferenceModel& model, const std::vector<std::string>& names) {
  const Matrix joined = Joined(model, names);
  return {joined.values().begin(), joined.values().end()};
}

class LayerStepsOfEveryKind : public testing::TestWithParam<support::NamedSpec> {};

TEST_P(LayerStepsOfEveryKind, GiveTheLogitsOfTheReference) {
  constexpr size_t kWindow = 24;
  const ReferenceModel model = support::MakeModel(GetParam().make());
  support::TemporaryDirectory folder;
  support::WriteHuggingFaceDirectory(model, folder / "checkpoint", {});
  const ModelConfig config = Unwrap(OpenCheckpoint(folder / "checkpoint")).config;
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  // Two windows, so that the second one must not see the first.
  std::vector<int> ids(2 * kWindow);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int>((i * i * 7 + i * 13 + 5) % config.vocab_size);
  }
  const Matrix table = Joined(model, {"model.embed_tokens.weight"});
  Matrix hidden(ids.size(), config.hidden_size);
  for (size_t i = 0; i < ids.size(); ++i) {
    std::ranges::copy(table.view().row(static_cast<size_t>(ids[i])), hidden.view().row(i).begin());
  }
  const auto products = [](const Matrix& rows, const Matrix& weights,
                           const std::vector<float>& bias) {
    Matrix out(rows.rows(), weights.rows());
    AddProductWithTransposed(rows.view(), weights.view(), out.view());
    AddBias(bias, out.view());
    return out;
  };
  const auto normalized = [&](const std::vector<float>& weight) {
    Matrix rows = hidden;
    NormalizeRows(threads, rows.view(), weight, config.rms_norm_eps, rows.view());
    return rows;
  };
  const auto add = [&](const Matrix& summand) {
    for (size_t i = 0; i < hidden.values().size(); ++i) hidden.values()[i] += summand.values()[i];
  };
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const auto names = [&](const std::string& module, const std::vector<std::string>& parts,
                           const std::string& kind) {
      std::vector<std::string> all;
      for (const std::string& part : parts) {
        all.push_back(prefix + module + "." + part + "." + kind);
      }
      return all;
    };
    const auto join = [&](const std::string& module, const std::vector<std::string>& parts) {
      return Joined(model, names(module, parts, "weight"));
    };
    const auto bias = [&](const std::string& module, const std::vector<std::string>& parts) {
      return Vector(model, names(module, parts, "bias"));
    };
    const std::vector<std::string> qkv_parts = {"q_proj", "k_proj", "v_proj"};
    Matrix qkv = products(normalized(Vector(model, {prefix + "input_layernorm.weight"})),
                          join("self_attn", qkv_parts), bias("self_attn", qkv_parts));
    const LayerKind& kind = config.layer_kind(layer);
    Matrix attended(ids.size(), config.query_channels());
    Attend(threads, config, kind,
           {.q_norm = Vector(model, {prefix + "self_attn.q_norm.weight"}),
            .k_norm = Vector(model, {prefix + "self_attn.k_norm.weight"})},
           MakeRopeTable(config, kind, kWindow), kWindow, qkv.view(), attended.view());
    add(products(attended, join("self_attn", {"o_proj"}), bias("self_attn", {"o_proj"})));
    const std::vector<std::string> gate_up_parts = {"gate_proj", "up_proj"};
    const Matrix gate_up =
        products(normalized(Vector(model, {prefix + "post_attention_layernorm.weight"})),
                 join("mlp", gate_up_parts), bias("mlp", gate_up_parts));
    Matrix activated(ids.size(), config.intermediate_size);
    Activate(threads, config.hidden_act, gate_up.view(), activated.view());
    add(products(activated, join("mlp", {"down_proj"}), bias("mlp", {"down_proj"})));
  }
  const Matrix logits =
      products(normalized(Vector(model, {"model.norm.weight"})),
               config.tie_word_embeddings ? table : Joined(model, {"lm_head.weight"}), {});

  for (size_t window = 0; window < 2; ++window) {
    const std::span<const int> text = std::span(ids).subspan(window * kWindow, kWindow);
    const std::vector<double> expected = reference::Logits(model, text, kWindow);
    double largest = 0.0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(logits.values()[window * expected.size() + i], expected[i], 1e-4 * largest);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LayerStepsOfEveryKind, testing::ValuesIn(support::TinySpecs()),
                         [](const auto& param) { return param.param.name; });

TEST(LayerSteps, ExponentialIsThatOfTheLibrary) {
  for (float x = -86.9f; x <= 88.0f; x += 0.0137f) {
    const double expected = std::exp(double{x});
    ASSERT_NEAR(Exponential(x), expected, 3e-7 * expected) << x;
  }
  EXPECT_EQ(Exponential(0.0f), 1.0f);
  EXPECT_LT(Exponential(-1e30f), 2e-38f);
}

TEST(LayerSteps, HyperbolicTangentIsThatOfTheLibrary) {
  for (float x = -20.0f; x <= 20.0f; x += 0.00137f) {
    const double expected = std::tanh(double{x});
    ASSERT_NEAR(HyperbolicTangent(x), expected, 1e-6 * std::abs(expected)) << x;
  }
  for (const float x : {1e-30f, 1e-6f, 0.2499999f, 0.25f}) {
    ASSERT_NEAR(HyperbolicTangent(x), std::tanh(double{x}), 1e-6 * x) << x;
  }
  EXPECT_EQ(HyperbolicTangent(0.0f), 0.0f);
  EXPECT_EQ(HyperbolicTangent(1e30f), 1.0f);
  EXPECT_EQ(HyperbolicTangent(-1e30f), -1.0f);
}

TEST(LayerSteps, NormalDistributionIsThatOfTheLibrary) {
  for (float x = -20.0f; x <= 20.0f; x += 0.00137f) {
    ASSERT_NEAR(NormalDistribution(x), 0.5 * std::erfc(-double{x} / std::sqrt(2.0)), 3e-7) << x;
  }
  EXPECT_EQ(NormalDistribution(1e30f), 1.0f);
  EXPECT_NEAR(NormalDistribution(-1e30f), 0.0f, 1e-37f);
}

TEST(LayerSteps, ActivatesWithEveryGate) {
  const ThreadPool threads = Unwrap(ThreadPool::Create(1));
  const auto activated = [&](HiddenAct act, float gate) {
    Matrix gate_up(1, 2);
    gate_up(0, 0) = gate;
    gate_up(0, 1) = 3.0f;
    Matrix output(1, 1);
    Activate(threads, act, gate_up.view(), output.view());
    return output(0, 0);
  };
  for (float x = -12.0f; x <= 12.0f; x += 0.0137f) {
    const double gate = x;
    const double z = std::sqrt(2.0 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate);
    EXPECT_NEAR(activated(HiddenAct::kSilu, x), 3.0 * gate / (1.0 + std::exp(-gate)), 1e-5);
    EXPECT_NEAR(activated(HiddenAct::kGeluTanh, x), 1.5 * gate * (1.0 + std::tanh(z)), 1e-5) << x;
    EXPECT_NEAR(activated(HiddenAct::kGelu, x), 1.5 * gate * std::erfc(-gate / std::numbers::sqrt2),
                1e-5)
        << x;
  }
  for (const HiddenAct act : {HiddenAct::kGeluTanh, HiddenAct::kGelu}) {
    EXPECT_EQ(activated(act, 200.0f), 600.0f);
    EXPECT_NEAR(activated(act, -200.0f), 0.0f, 1e-30f);
  }
}

TEST(LayerSteps, ActivatesGatesOfAnySize) {
  const ThreadPool threads = Unwrap(ThreadPool::Create(1));
  Matrix gate_up(1, 8);
  const float gates[] = {0.0f, -200.0f, 200.0f, -3.0f};
  for (size_t i = 0; i < 4; ++i) {
    gate_up(0, i) = gates[i];
    gate_up(0, 4 + i) = 2.0f;
  }
  Matrix output(1, 4);
  Activate(threads, HiddenAct::kSilu, gate_up.view(), output.view());
  EXPECT_EQ(output(0, 0), 0.0f);
  EXPECT_NEAR(output(0, 1), 0.0f, 1e-30f);
  EXPECT_EQ(output(0, 2), 400.0f);
  EXPECT_NEAR(output(0, 3), -6.0 / (1.0 + std::exp(3.0)), 1e-6);
}

TEST(LayerSteps, InputsAreRoundedAsTheRuntimeDoes) {
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  Matrix rows = RandomMatrix(40, 67, 9);
  for (float& value : rows.view().row(0)) value = std::abs(value);
  for (float& value : rows.view().row(1)) value = -std::abs(value);
  for (float& value : rows.view().row(2)) value = 0.0f;
  for (float& value : rows.view().row(3)) value *= 1e-6f;
  Matrix rounded = rows;
  RoundInputs(threads, rounded.view());
  std::vector<int8_t> codes(ops::QuantizedBlocks::Bytes(67));
  for (size_t row = 0; row < rows.rows(); ++row) {
    ops::QuantizeBlocks(rows.view().row(row).data(), 67, 67, {0, 3}, codes.data());
    const float* const scales = ops::QuantizedBlocks::Scales(codes.data(), 67);
    for (size_t i = 0; i < 67; ++i) {
      const float scale = scales[i / ops::kActivationBlock];
      EXPECT_NEAR(rounded(row, i), scale * static_cast<float>(codes[i]), 1e-5f * scale)
          << row << ", " << i;
    }
  }
}

}  // namespace
}  // namespace cria
