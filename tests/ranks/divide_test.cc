#include "ranks/divide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/unwrap.h"

namespace cria::ranks {
namespace {

ModelConfig ConfigOf(uint32_t heads, uint32_t key_value_heads, uint32_t head_dim,
                     uint32_t intermediate_size, uint32_t vocab_size) {
  ModelConfig config;
  config.hidden_size = heads * head_dim;
  config.intermediate_size = intermediate_size;
  config.num_attention_heads = heads;
  config.num_key_value_heads = key_value_heads;
  config.head_dim = head_dim;
  config.vocab_size = vocab_size;
  return config;
}

std::vector<size_t> Sizes(const std::vector<RankShare>& shares, Range RankShare::* part) {
  std::vector<size_t> sizes;
  for (const RankShare& share : shares) sizes.push_back((share.*part).size());
  return sizes;
}

std::string ErrorOf(const Result<std::vector<RankShare>>& shares) {
  return shares ? "" : shares.error().message();
}

using Counts = std::vector<size_t>;

// Returns the blocks of weights in qb4w, of these sizes.
ColumnBlocks BlocksOf(size_t o_proj, size_t down_proj) {
  const auto block = [](size_t size) -> ColumnBlock { return {size, std::min(size, size_t{32})}; };
  return {.o_proj = block(o_proj), .down_proj = block(down_proj)};
}

TEST(Divide, GivesEachRankAsMuch) {
  const auto shares =
      Unwrap(Divide(ConfigOf(32, 8, 64, 8192, 128256), BlocksOf(32, 32), {{1, 1, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::query_heads), (Counts{8, 8, 8, 8}));
  EXPECT_EQ(Sizes(shares, &RankShare::key_value_heads), (Counts{2, 2, 2, 2}));
  EXPECT_EQ(Sizes(shares, &RankShare::channels), (Counts{2048, 2048, 2048, 2048}));
  EXPECT_EQ(Sizes(shares, &RankShare::vocabulary), (Counts{32064, 32064, 32064, 32064}));
}

TEST(Divide, ThreeRanksShareEightGroupsOfHeads) {
  const auto shares =
      Unwrap(Divide(ConfigOf(32, 8, 64, 8192, 128256), BlocksOf(32, 32), {{1, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::key_value_heads), (Counts{3, 2, 3}));
  EXPECT_EQ(Sizes(shares, &RankShare::query_heads), (Counts{12, 8, 12}));
  EXPECT_EQ(Sizes(shares, &RankShare::channels), (Counts{2720, 2752, 2720}));
}

TEST(Divide, FollowsTheWeights) {
  const auto shares = Unwrap(Divide(ConfigOf(32, 8, 64, 8192, 128256), BlocksOf(32, 32), {{3, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::key_value_heads), (Counts{6, 2}));
  EXPECT_EQ(Sizes(shares, &RankShare::channels), (Counts{6144, 2048}));
  EXPECT_EQ(Sizes(shares, &RankShare::vocabulary), (Counts{96192, 32064}));
}

TEST(Divide, EvenASmallWeightGetsSomething) {
  const auto shares =
      Unwrap(Divide(ConfigOf(32, 8, 64, 8192, 128256), BlocksOf(32, 32), {{1e6, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::key_value_heads), (Counts{7, 1}));
}

TEST(Divide, MoreRanksThanHeadsOfKeysHaveThemTwice) {
  const auto shares =
      Unwrap(Divide(ConfigOf(12, 2, 64, 1536, 1000), BlocksOf(32, 32), {{1, 1, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::query_heads), (Counts{3, 3, 3, 3}));
  EXPECT_EQ(shares[0].key_value_heads, (Range{0, 1}));
  EXPECT_EQ(shares[1].key_value_heads, (Range{0, 1}));
  EXPECT_EQ(shares[2].key_value_heads, (Range{1, 2}));
  EXPECT_EQ(shares[3].key_value_heads, (Range{1, 2}));
}

// The ranks that share a head of keys have about as much weight together as those of another one.
TEST(Divide, UnequalRanksShareHeadsOfKeysByWeight) {
  const auto shares = Unwrap(Divide(ConfigOf(8, 2, 64, 1536, 1000), BlocksOf(32, 32), {{2, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::query_heads), (Counts{4, 2, 2}));
  EXPECT_EQ(shares[1].key_value_heads, (Range{1, 2}));
  const auto others = Unwrap(Divide(ConfigOf(8, 2, 64, 1536, 1000), BlocksOf(32, 32), {{1, 1, 2}}));
  EXPECT_EQ(Sizes(others, &RankShare::query_heads), (Counts{2, 2, 4}));
  // Each head needs a rank.
  const auto large = Unwrap(Divide(ConfigOf(8, 2, 64, 1536, 1000), BlocksOf(32, 32), {{9, 1, 1}}));
  EXPECT_EQ(Sizes(large, &RankShare::query_heads), (Counts{4, 2, 2}));
  const auto last = Unwrap(Divide(ConfigOf(8, 2, 64, 1536, 1000), BlocksOf(32, 32), {{1, 1, 9}}));
  EXPECT_EQ(Sizes(last, &RankShare::query_heads), (Counts{2, 2, 4}));
  // No head has more ranks than query heads.
  const auto many = Unwrap(Divide(ConfigOf(8, 4, 64, 1536, 1000), BlocksOf(32, 32),
                                  {{11.4, 11.4, 11.4, 5.3, 5.3, 5.3, 5.3}}));
  EXPECT_EQ(Sizes(many, &RankShare::query_heads), (Counts{2, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(many[2].key_value_heads, (Range{1, 2}));
  const auto steep =
      Unwrap(Divide(ConfigOf(4, 2, 64, 1536, 1000), BlocksOf(32, 32), {{9, 1, 1, 1}}));
  EXPECT_EQ(Sizes(steep, &RankShare::query_heads), (Counts{1, 1, 1, 1}));
}

// Heads of 16 channels: two of them fill a block.
TEST(Divide, SharesOfInt4BeginAtBlocks) {
  const ModelConfig config = ConfigOf(8, 1, 16, 320, 1000);
  const auto shares = Unwrap(Divide(config, BlocksOf(32, 32), {{1, 1, 1}}));
  for (const RankShare& share : shares) {
    EXPECT_EQ(share.query_heads.begin * config.head_dim % 32, 0u);
    EXPECT_EQ(share.channels.begin % 32, 0u);
  }
  EXPECT_TRUE(Divide(config, BlocksOf(32, 32), {{1, 1, 1, 1}}));
  EXPECT_FALSE(Divide(config, BlocksOf(32, 32), {{1, 1, 1, 1, 1}}));
  EXPECT_TRUE(Divide(config, BlocksOf(1, 1), {{1, 1, 1, 1, 1}}));
}

// 320 channels are 2.5 blocks of 128, which are too few.
TEST(Divide, SmallerBlocksAreTheSecondChoice) {
  const auto shares =
      Unwrap(Divide(ConfigOf(8, 8, 64, 320, 1000), BlocksOf(128, 128), {{1, 1, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::query_heads), (Counts{2, 2, 2, 2}));
  EXPECT_EQ(shares[1].channels.begin % 32, 0u);
  EXPECT_NE(shares[1].channels.begin % 128, 0u);
}

// Blocks of w4g64 cannot be divided: two heads of 32 channels have one.
TEST(Divide, KeepsBlocksWhole) {
  const ColumnBlocks blocks = {.o_proj = {64, 64}, .down_proj = {64, 64}};
  const auto shares = Unwrap(Divide(ConfigOf(8, 8, 32, 352, 1000), blocks, {{1, 1, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::query_heads), (Counts{2, 2, 2, 2}));
  EXPECT_EQ(Sizes(shares, &RankShare::channels), (Counts{128, 64, 128, 32}));
  EXPECT_FALSE(Divide(ConfigOf(8, 8, 32, 352, 1000), blocks, std::vector<double>(5, 1.0)));
}

TEST(Divide, RefusesWhatItCannotDivide) {
  const ModelConfig config = ConfigOf(4, 2, 16, 160, 300);
  EXPECT_NE(ErrorOf(Divide(config, {}, std::vector<double>(5, 1.0)))
                .find("5 ranks are too many for this model: 4 heads"),
            std::string::npos);
  // Three blocks for four ranks.
  EXPECT_NE(
      ErrorOf(Divide(ConfigOf(8, 2, 16, 96, 300), BlocksOf(1, 64), std::vector<double>(4, 1.0)))
          .find("96 channels of the feed-forward"),
      std::string::npos);
  EXPECT_NE(ErrorOf(Divide(config, {}, {{1.0}})).find("2 to 64 ranks, not 1"), std::string::npos);
  for (const double weight : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_NE(ErrorOf(Divide(config, {}, {{1.0, weight}})).find("weight"), std::string::npos);
  }
  ModelConfig mixture = config;
  mixture.num_experts = 8;
  mixture.moe_intermediate_size = 64;
  EXPECT_NE(ErrorOf(Divide(mixture, {.experts_down_proj = {64, 32}}, {{1, 1, 1}}))
                .find("64 channels of an expert"),
            std::string::npos);
}

// Every expert is divided like a dense feed-forward; dense channels that no layer has are not.
TEST(Divide, ExpertsAreDivided) {
  ModelConfig config = ConfigOf(32, 4, 64, 6144, 1000);
  config.num_experts = 128;
  config.moe_intermediate_size = 768;
  config.shared_expert_intermediate_size = 1024;
  const ColumnBlocks blocks = {.experts_down_proj = {32, 32}};
  auto shares = Unwrap(Divide(config, blocks, {{1, 1, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::expert_channels), (Counts{192, 192, 192, 192}));
  EXPECT_EQ(Sizes(shares, &RankShare::shared_expert_channels), (Counts{256, 256, 256, 256}));
  EXPECT_EQ(Sizes(shares, &RankShare::channels), (Counts{0, 0, 0, 0}));
  config.layer_kinds.push_back({.dense_mlp = true});
  shares = Unwrap(Divide(config, blocks, {{1, 1, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::channels), (Counts{1536, 1536, 1536, 1536}));
}

// Short convolutions have as many channels as the hidden state; other models have none.
TEST(Divide, ShortConvolutionsAreDivided) {
  ModelConfig config = ConfigOf(32, 4, 64, 6144, 1000);
  const ColumnBlocks blocks = {.conv_out_proj = {32, 32}};
  EXPECT_EQ(Sizes(Unwrap(Divide(config, blocks, {{1, 1}})), &RankShare::conv_channels),
            (Counts{0, 0}));
  config.layer_kinds.push_back({.no_rope = true, .short_conv = true});
  const auto shares = Unwrap(Divide(config, blocks, {{1, 1, 1}}));
  EXPECT_EQ(Sizes(shares, &RankShare::conv_channels), (Counts{672, 704, 672}));
  for (const RankShare& share : shares) EXPECT_EQ(share.conv_channels.begin % 32, 0u);
  config.hidden_size = 64;
  EXPECT_NE(ErrorOf(Divide(config, blocks, {{1, 1, 1}})).find("channels of short convolutions"),
            std::string::npos);
}

TEST(Divide, LinearAttentionAndItsGatesAreRefusedByName) {
  ModelConfig config = ConfigOf(32, 4, 64, 6144, 1000);
  config.attn_output_gate = true;
  auto shares = Divide(config, {}, {{1, 1}});
  ASSERT_FALSE(shares);
  EXPECT_TRUE(shares.error().message().contains("attn_output_gate"));
  config.layer_kinds.push_back({.no_rope = true, .linear_attention = true});
  shares = Divide(config, {}, {{1, 1}});
  ASSERT_FALSE(shares);
  EXPECT_EQ(shares.error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(shares.error().message().contains("linear_attention"));
}

TEST(Divide, MambaIsRefusedByName) {
  ModelConfig config = ConfigOf(32, 4, 64, 6144, 1000);
  config.layer_kinds.push_back({.no_rope = true, .mamba = true});
  const auto shares = Divide(config, {}, {{1, 1}});
  ASSERT_FALSE(shares);
  EXPECT_EQ(shares.error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(shares.error().message().contains("models with mamba"));
}

// In every model that can be divided, each part belongs to a rank, each rank gets a part, query
// heads are where their keys are, and all ranks have as many query heads for each head of keys.
TEST(Divide, IsCompleteForRandomModels) {
  std::mt19937 random(1);
  const auto pick = [&](uint32_t low, uint32_t high) { return low + random() % (high - low + 1); };
  size_t num_divided = 0;
  for (int i = 0; i < 3000; ++i) {
    const uint32_t group = pick(1, 8);
    const uint32_t heads = pick(1, 16);
    const ModelConfig config =
        ConfigOf(group * heads, heads, 8 * pick(1, 16), 16 * pick(8, 300), pick(200, 3000));
    const size_t block = pick(0, 1) == 0 ? 1 : size_t{32} << pick(0, 2);
    std::vector<double> weights(pick(2, 8));
    for (double& weight : weights) weight = pick(1, 4);
    const auto shares = Divide(config, BlocksOf(block, block), weights);
    if (!shares) continue;
    ++num_divided;
    RankShare last;
    for (const RankShare& share : *shares) {
      EXPECT_EQ(share.query_heads.begin, last.query_heads.end);
      EXPECT_EQ(share.channels.begin, last.channels.end);
      EXPECT_EQ(share.vocabulary.begin, last.vocabulary.end);
      EXPECT_GT(share.query_heads.size(), 0u);
      EXPECT_GT(share.channels.size(), 0u);
      EXPECT_GT(share.vocabulary.size(), 0u);
      EXPECT_EQ(share.query_heads.begin / group, share.key_value_heads.begin);
      EXPECT_EQ((share.query_heads.end - 1) / group + 1, share.key_value_heads.end);
      EXPECT_EQ(share.query_heads.size() % share.key_value_heads.size(), 0u);
      if (block > 1) {
        EXPECT_EQ(share.query_heads.begin * config.head_dim % 32, 0u);
        EXPECT_EQ(share.channels.begin % 32, 0u);
      }
      last = share;
    }
    EXPECT_EQ(last.query_heads.end, config.num_attention_heads);
    EXPECT_EQ(last.channels.end, config.intermediate_size);
    EXPECT_EQ(last.vocabulary.end, config.vocab_size);
  }
  EXPECT_GT(num_divided, 1000u);
}

}  // namespace
}  // namespace cria::ranks
