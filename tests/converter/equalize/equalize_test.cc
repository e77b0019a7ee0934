#include "converter/equalize/equalize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "converter/open_checkpoint.h"
#include "support/plant_channels.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using reference::ReferenceModel;

// Values of a part as the model file gets them, before they are stored in a scheme.
std::vector<float> ValuesOf(const MappedPart& part) {
  std::vector<float> values(part.source->num_elements());
  TensorReader reader;
  Unwrap(reader.Read(*part.source, 0, values));
  ApplyFactors(part, 0, part.source->shape.back(), values);
  return values;
}

// A plan for a checkpoint before and after it is equalized.
class EqualizeTest : public testing::Test {
 protected:
  EqualizeReport Run(const ReferenceModel& model, size_t num_threads = 2,
                     Scheme weights = Scheme::kQc8w) {
    support::WriteHuggingFaceDirectory(model, folder_ / "checkpoint", {});
    checkpoint_ = Unwrap(OpenCheckpoint(folder_ / "checkpoint"));
    before_ = Plan(weights);
    after_ = Plan(weights);
    const ThreadPool threads = Unwrap(ThreadPool::Create(num_threads));
    return Unwrap(Equalize(after_, checkpoint_.config, threads));
  }

  FilePlan Plan(Scheme weights) const {
    return PlanTensors(Unwrap(MapTensors(checkpoint_)), checkpoint_.config, {.weights = weights});
  }

  static const MappedPart& Part(const FilePlan& plan, TensorRole role, int layer, size_t part) {
    const auto found = std::ranges::find_if(plan.tensors, [&](const PlannedTensor& tensor) {
      return tensor.stored.spec.role == role &&
             (tensor.stored.spec.layer == layer || layer == kNoLayer);
    });
    return found->parts.at(part);
  }

  // Products along the way through a channel stay: `writer` by channels, also with the gain of the
  // norm before it, and `reader` by columns, of which column j reads channel channel_of(j).
  template <typename ChannelOf>
  void ExpectSameProducts(TensorRole writer, size_t writer_part, TensorRole reader,
                          size_t reader_part, int layer, ChannelOf&& channel_of) const {
    const auto products = [&](const FilePlan& plan) {
      const std::vector<float> written = ValuesOf(Part(plan, writer, layer, writer_part));
      const std::vector<float> read = ValuesOf(Part(plan, reader, layer, reader_part));
      const auto& shape = Part(plan, writer, layer, writer_part).source->shape;
      const size_t width = shape.size() == 1 ? 1 : shape[1];
      const size_t columns = Part(plan, reader, layer, reader_part).source->shape[1];
      std::vector<float> gain(width, 1.0f);
      if (writer == TensorRole::kQkvProj) {
        gain = ValuesOf(Part(plan, TensorRole::kInputLayernorm, layer, 0));
      } else if (writer == TensorRole::kGateUpProj) {
        gain = ValuesOf(Part(plan, TensorRole::kPostAttentionLayernorm, layer, 0));
      }
      std::vector<double> all;
      // One row of the reader is enough.
      for (size_t j = 0; j < columns; ++j) {
        for (size_t i = 0; i < width; ++i) {
          all.push_back(double{read[columns + j]} * written[channel_of(j) * width + i] * gain[i]);
        }
      }
      return all;
    };
    const auto before = products(before_);
    const auto after = products(after_);
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_NEAR(after[i], before[i], 1e-6 * std::abs(before[i])) << i;
    }
  }

  support::TemporaryDirectory folder_;
  Checkpoint checkpoint_;
  FilePlan before_;
  FilePlan after_;
};

TEST_F(EqualizeTest, EvenChannelsStayAsTheyAre) {
  for (const Scheme scheme : {Scheme::kQb4w, Scheme::kQc8w}) {
    EXPECT_EQ(Run(support::MakeModel(support::SpecGqa()), 2, scheme).num_equalized, 0u);
    for (const PlannedTensor& tensor : after_.tensors) {
      for (const MappedPart& part : tensor.parts) {
        EXPECT_TRUE(part.row_factors.empty() && part.column_factors.empty());
      }
    }
  }
}

TEST_F(EqualizeTest, LargeChannelsAreEvenedOutAndTheFunctionStays) {
  for (const support::CheckpointSpec& spec : {support::SpecGqa(), support::SpecBiases()}) {
    ReferenceModel model = support::MakeModel(spec);
    support::PlantChannels(model, 1);
    const EqualizeReport report = Run(model);
    const size_t layers = spec.config.num_hidden_layers;
    EXPECT_EQ(report.num_places, 4 * layers + 1);
    EXPECT_EQ(report.num_equalized, report.num_places);
    const auto same = [](size_t column) { return column; };
    const size_t head_dim = spec.config.head_dim;
    const size_t group = spec.config.num_attention_heads / spec.config.num_key_value_heads;
    for (int layer = 0; layer < static_cast<int>(layers); ++layer) {
      for (const size_t part : {0, 1}) {
        ExpectSameProducts(TensorRole::kInputLayernorm, 0, TensorRole::kQkvProj, part, layer, same);
      }
      ExpectSameProducts(TensorRole::kPostAttentionLayernorm, 0, TensorRole::kGateUpProj, 0, layer,
                         same);
      for (const float gain : ValuesOf(Part(after_, TensorRole::kInputLayernorm, layer, 0))) {
        EXPECT_FLOAT_EQ(gain, 1.0f);
      }
      const auto row_of_value = [&](size_t column) {
        return column / (head_dim * group) * head_dim + column % head_dim;
      };
      ExpectSameProducts(TensorRole::kQkvProj, 2, TensorRole::kOProj, 0, layer, row_of_value);
      ExpectSameProducts(TensorRole::kGateUpProj, 1, TensorRole::kDownProj, 0, layer, same);
      if (!spec.config.qkv_bias || !spec.config.mlp_bias) continue;
      ExpectSameProducts(TensorRole::kQkvBias, 2, TensorRole::kOProj, 0, layer, row_of_value);
      ExpectSameProducts(TensorRole::kGateUpBias, 1, TensorRole::kDownProj, 0, layer, same);
    }
    ExpectSameProducts(TensorRole::kNorm, 0, TensorRole::kLmHead, 0, kNoLayer, same);
  }
}

TEST_F(EqualizeTest, ThreadsChangeNothing) {
  ReferenceModel model = support::MakeModel(support::SpecGqa());
  support::PlantChannels(model, 2);
  Run(model, 1);
  const FilePlan one = after_;
  Run(model, 3);
  for (size_t i = 0; i < one.tensors.size(); ++i) {
    for (size_t part = 0; part < one.tensors[i].parts.size(); ++part) {
      EXPECT_EQ(one.tensors[i].parts[part].row_factors, after_.tensors[i].parts[part].row_factors);
      EXPECT_EQ(one.tensors[i].parts[part].column_factors,
                after_.tensors[i].parts[part].column_factors);
    }
  }
}

// Channels that are never used, and gains without an inverse.
TEST_F(EqualizeTest, ZerosStayZeros) {
  ReferenceModel model = support::MakeModel(support::SpecGqa());
  support::PlantChannels(model, 3);
  auto& gain = model.tensors.at("model.layers.0.input_layernorm.weight").values;
  gain[0] = 0.0f;
  gain[1] = 1e-40f;
  auto& up = model.tensors.at("model.layers.0.mlp.up_proj.weight");
  std::fill_n(up.values.begin(), up.shape[1], 0.0f);
  EXPECT_EQ(Run(model).num_equalized, 4 * model.config.num_hidden_layers + 1);
  const auto norm = ValuesOf(Part(after_, TensorRole::kInputLayernorm, 0, 0));
  EXPECT_EQ(norm[0], 0.0f);
  EXPECT_EQ(norm[1], 1e-40f);
  for (const PlannedTensor& tensor : after_.tensors) {
    for (const MappedPart& part : tensor.parts) {
      EXPECT_TRUE(std::ranges::all_of(ValuesOf(part), [](float x) { return std::isfinite(x); }));
    }
  }
}

TEST_F(EqualizeTest, AHeadThatIsTheEmbeddingKeepsItsNorm) {
  ReferenceModel model = support::MakeModel(support::SpecTied());
  model.tensors.at("model.norm.weight").values[3] *= 40.0f;
  const EqualizeReport report = Run(model);
  EXPECT_EQ(report.num_places, 4 * model.config.num_hidden_layers);
  EXPECT_TRUE(Part(after_, TensorRole::kNorm, kNoLayer, 0).column_factors.empty());
}

}  // namespace
}  // namespace cria
