#include "converter/calibrate/channel_scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "converter/open_checkpoint.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria {
namespace {

class ChannelScalingTest : public testing::Test {
 protected:
  explicit ChannelScalingTest(const support::CheckpointSpec& spec = support::SpecBiases()) {
    support::WriteRandomCheckpoint(spec, folder_ / "checkpoint");
    checkpoint_ = Unwrap(OpenCheckpoint(folder_ / "checkpoint"));
    plan_ = PlanTensors(Unwrap(MapTensors(checkpoint_)), checkpoint_.config,
                        {.weights = Scheme::kQc8w});
  }

  PlannedTensor& Find(TensorRole role) {
    return *std::ranges::find_if(plan_.tensors, [&](const PlannedTensor& tensor) {
      return tensor.stored.spec.role == role && tensor.stored.spec.layer == 0;
    });
  }

  support::TemporaryDirectory folder_;
  Checkpoint checkpoint_;
  FilePlan plan_;
};

TEST_F(ChannelScalingTest, InputsOfOneSizeStayAsTheyAre) {
  PlannedTensor& reader = Find(TensorRole::kDownProj);
  const std::vector<float> rms(reader.stored.spec.input_channels, 0.7f);
  PlannedTensor& writer = Find(TensorRole::kGateUpProj);
  EXPECT_FALSE(
      Unwrap(ScaleChannels({.tensor = &writer, .part = 1}, rms, {.quantized = {&reader}})));
  EXPECT_TRUE(writer.parts[1].row_factors.empty());
  EXPECT_TRUE(reader.parts[0].column_factors.empty());
}

TEST_F(ChannelScalingTest, LargeChannelsAreDividedWhereTheyAreWritten) {
  PlannedTensor& writer = Find(TensorRole::kGateUpProj);
  PlannedTensor& bias = Find(TensorRole::kGateUpBias);
  PlannedTensor& reader = Find(TensorRole::kDownProj);
  std::vector<float> rms(reader.stored.spec.input_channels, 1.0f);
  rms[5] = rms[40] = 100.0f;
  writer.parts[1].row_factors.assign(rms.size(), 2.0f);
  const InputWriter input = {.tensor = &writer, .part = 1, .bias = &bias};
  EXPECT_TRUE(Unwrap(ScaleChannels(input, rms, {.quantized = {&reader}})));
  const std::vector<float>& columns = reader.parts[0].column_factors;
  ASSERT_EQ(columns.size(), rms.size());
  EXPECT_GT(columns[5], 5.0f * columns[6]);
  for (size_t i = 0; i < rms.size(); ++i) {
    // The factors that were there stay.
    EXPECT_NEAR(writer.parts[1].row_factors[i] * columns[i], 2.0f, 1e-5f);
    EXPECT_NEAR(bias.parts[1].column_factors[i] * columns[i], 1.0f, 1e-5f);
  }
  EXPECT_TRUE(writer.parts[0].row_factors.empty());
}

TEST_F(ChannelScalingTest, HeadsThatReadTheSameChannelsHaveOneScale) {
  PlannedTensor& writer = Find(TensorRole::kQkvProj);
  PlannedTensor& reader = Find(TensorRole::kOProj);
  const ModelConfig& config = checkpoint_.config;
  const size_t heads = config.num_attention_heads / config.num_key_value_heads;
  ASSERT_GT(heads, 1);
  std::vector<float> rms(reader.stored.spec.input_channels, 1.0f);
  rms[config.head_dim + 3] = 200.0f;  // The second query head, which reads the first value head.
  const InputWriter input = {
      .tensor = &writer, .part = 2, .head_dim = config.head_dim, .heads_per_channel_head = heads};
  EXPECT_TRUE(Unwrap(ScaleChannels(input, rms, {.quantized = {&reader}})));
  const std::vector<float>& columns = reader.parts[0].column_factors;
  const std::vector<float>& rows = writer.parts[2].row_factors;
  ASSERT_EQ(rows.size(), config.key_value_channels());
  for (size_t j = 0; j < columns.size(); ++j) {
    const size_t channel = j / config.head_dim / heads * config.head_dim + j % config.head_dim;
    EXPECT_EQ(input.ChannelOf(j), channel);
    EXPECT_NEAR(columns[j] * rows[channel], 1.0f, 1e-5f);
  }
}

TEST_F(ChannelScalingTest, ANormTakesTheScalesOfEveryMatrixThatReadsIt) {
  PlannedTensor& norm = Find(TensorRole::kInputLayernorm);
  PlannedTensor& reader = Find(TensorRole::kQkvProj);
  std::vector<float> rms(reader.stored.spec.input_channels, 1.0f);
  rms[7] = 300.0f;
  EXPECT_TRUE(Unwrap(ScaleChannels({.tensor = &norm}, rms, {.quantized = {&reader}})));
  for (const MappedPart& part : reader.parts) {
    EXPECT_EQ(part.column_factors, reader.parts[0].column_factors);
  }
  EXPECT_NEAR(norm.parts[0].column_factors[7] * reader.parts[0].column_factors[7], 1.0f, 1e-5f);
}

TEST_F(ChannelScalingTest, ChannelsWithoutInputStayAsTheyAre) {
  PlannedTensor& writer = Find(TensorRole::kGateUpProj);
  PlannedTensor& reader = Find(TensorRole::kDownProj);
  std::vector<float> rms(reader.stored.spec.input_channels, 1.0f);
  rms[5] = 100.0f;
  rms[6] = 0.0f;
  EXPECT_TRUE(Unwrap(ScaleChannels({.tensor = &writer, .part = 1}, rms, {.quantized = {&reader}})));
  EXPECT_EQ(reader.parts[0].column_factors[6], 1.0f);
  // Nothing is scaled if there are no inputs at all, or if they are out of range.
  const std::vector<float> before = reader.parts[0].column_factors;
  std::ranges::fill(rms, 0.0f);
  EXPECT_FALSE(
      Unwrap(ScaleChannels({.tensor = &writer, .part = 1}, rms, {.quantized = {&reader}})));
  std::ranges::fill(rms, INFINITY);
  EXPECT_FALSE(
      Unwrap(ScaleChannels({.tensor = &writer, .part = 1}, rms, {.quantized = {&reader}})));
  EXPECT_EQ(reader.parts[0].column_factors, before);
}

}  // namespace
}  // namespace cria
