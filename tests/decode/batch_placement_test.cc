#include "decode/batch_placement.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/unwrap.h"

namespace cria {
namespace {

// Two groups of pages, of which the second has a window.
ModelConfig ConfigOfTwoGroups() {
  ModelConfig config = {.hidden_size = 64,
                        .num_hidden_layers = 2,
                        .num_attention_heads = 2,
                        .num_key_value_heads = 1,
                        .head_dim = 32,
                        .vocab_size = 100,
                        .max_position_embeddings = 1024};
  config.layer_kinds = {{.rope_theta = 1e4f}, {.sliding_window = 64, .rope_theta = 1e4f}};
  config.kind_of_layer = {0, 1};
  return config;
}

class BatchPlacementTest : public testing::Test {
 protected:
  BatchPlacementTest() {
    layout_.Solve();
    arena_.emplace(Unwrap(Arena::Create(layout_)));
    ropes_.emplace(shape_, rope_regions_, ArenaView(*arena_, layout_));
    placement_.emplace(shape_, regions_, ArenaView(*arena_, layout_), *ropes_);
  }

  void Add(size_t first_position, size_t num_tokens, size_t num_logits, SequenceId sequence = 0,
           const SequenceShift& shift = {}) {
    placement_->Add({.sequence = sequence,
                     .first_position = first_position,
                     .num_tokens = num_tokens,
                     .num_logits = num_logits},
                    shift);
    for (size_t group = 0; group < tables_.size(); ++group) {
      placement_->Place(group, {tables_[group]});
    }
  }

  std::vector<uint32_t> Positions(size_t group) const {
    std::vector<uint32_t> positions;
    for (const BatchRow& row : placement_->rows(group)) positions.push_back(row.position);
    return positions;
  }

  const ModelConfig config_ = ConfigOfTwoGroups();
  const DecoderShape shape_ = {config_,
                               {.context_tokens = 1024, .chunk_tokens = 32, .num_sequences = 4}};
  ArenaLayout layout_;
  const RopeTables::Regions rope_regions_ = RopeTables::Plan(shape_, layout_);
  const BatchPlacement::Regions regions_ = BatchPlacement::Plan(shape_, layout_);
  std::optional<Arena> arena_;
  std::optional<RopeTables> ropes_;
  std::optional<BatchPlacement> placement_;
  // The pages of every sequence, in each group.
  const std::array<std::vector<uint32_t>, 2> tables_ = {{{3, 1}, {5, 0}}};
};

TEST_F(BatchPlacementTest, RowsStandWhereTheirGroupsPagesAre) {
  Add(62, 4, 1);
  const std::vector<uint32_t> positions = {62, 63, 64, 65};
  for (const size_t group : {0, 1}) EXPECT_EQ(Positions(group), positions);
  EXPECT_EQ(placement_->rows(0)[1].cache_row, 3 * kKvPageTokens + 63);
  EXPECT_EQ(placement_->rows(0)[2].cache_row, 1 * kKvPageTokens);
  EXPECT_EQ(placement_->rows(1)[2].cache_row, 0u);
  ASSERT_EQ(placement_->logit_rows().size(), 1u);
  EXPECT_EQ(placement_->logit_rows()[0], 3u);
}

TEST_F(BatchPlacementTest, KeepsRowsOfLogitsInEachGroup) {
  Add(10, 3, 0);
  Add(20, 4, 2);
  Add(0, 1, 1);
  Add(40, 5, 0);
  placement_->KeepLogitRows();
  const std::vector<uint32_t> positions = {22, 23, 0};
  for (const size_t group : {0, 1}) {
    EXPECT_EQ(Positions(group), positions);
    const auto runs = placement_->runs(group);
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].first_position, 22u);
    EXPECT_EQ(runs[0].num_rows, 2u);
    EXPECT_EQ(runs[1].first_position, 0u);
    EXPECT_EQ(runs[1].num_rows, 1u);
    EXPECT_EQ(runs[1].table.pages.data(), tables_[group].data());
  }
  EXPECT_EQ(placement_->logit_rows().size(), 3u);
  placement_->KeepLogitRows();
  EXPECT_EQ(Positions(1), positions) << "all that is left has logits";
  placement_->Clear();
  EXPECT_TRUE(placement_->rows(0).empty());
  EXPECT_TRUE(placement_->runs(1).empty());
}

TEST_F(BatchPlacementTest, NothingIsLeftWithoutLogits) {
  Add(5, 6, 0);
  placement_->KeepLogitRows();
  EXPECT_TRUE(placement_->rows(0).empty());
  EXPECT_TRUE(placement_->runs(0).empty());
}

TEST_F(BatchPlacementTest, EachSequenceHasItsShift) {
  const RopeTableView rope = ropes_->Of(config_.layer_kinds[0]);
  Add(40, 1, 1, 3, {.first = 7, .distance = 20});
  Add(30, 2, 1, 1);
  for (const BatchRow& row : placement_->rows(1)) {
    EXPECT_EQ(row.sequence, row.position == 40 ? 3u : 1u);
  }
  EXPECT_EQ(placement_->shift(1, rope).distance, 0u);
  EXPECT_EQ(placement_->shift(3, {}).distance, 0u) << "the layer has no rope";
  const auto expect_turn = [&](size_t distance) {
    const ops::KeyShift shift = placement_->shift(3, rope);
    EXPECT_EQ(shift.first, 7u);
    ASSERT_EQ(shift.distance, distance);
    for (size_t i = 0; i < rope.inverse_frequencies.size(); ++i) {
      EXPECT_EQ(shift.cosines[i], rope.cosines[distance * rope.inverse_frequencies.size() + i]);
      EXPECT_EQ(shift.sines[i], rope.sines[distance * rope.inverse_frequencies.size() + i]);
    }
  };
  expect_turn(20);
  placement_->Clear();
  Add(41, 1, 1, 3, {.first = 7, .distance = 33});
  expect_turn(33);
}

}  // namespace
}  // namespace cria
