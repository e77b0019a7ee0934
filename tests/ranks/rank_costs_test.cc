#include "ranks/rank_costs.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "llm/generator.h"
#include "llm/turn.h"
#include "ranks/ranked_engines.h"
#include "support/converted_model.h"
#include "support/emulation.h"
#include "support/unwrap.h"

namespace cria::ranks {
namespace {

// The weights are in qb4w, in blocks of 32.
constexpr ColumnBlocks kBlocks = {.o_proj = {32, 32}, .down_proj = {32, 32}};

// The bytes that threads send are those that are planned.
void ExpectTrafficAsPlanned(const std::string& path, size_t num_ranks, WireType wire) {
  SCOPED_TRACE(std::to_string(num_ranks) + " ranks");
  const ModelConfig whole = Unwrap(ModelFile::Open(path)).config();
  RankedEngines ranked(path, std::vector<double>(num_ranks, 1.0),
                       {.num_threads = 1, .context_tokens = 64, .chunk_tokens = 16}, wire);
  const std::unique_ptr<Session> session = ranked.engine().NewSession();
  Sampler sampler = Unwrap(Sampler::Create({.top_k = 7, .seed = 1}, whole.vocab_size));
  Unwrap(Turn(*session).Prefill(std::vector<int32_t>{5, 6, 7}));
  // The logits behind the prompt are there; each further token is a whole one.
  const auto generate = [&](size_t count) {
    Unwrap(Generate(*session, {.max_tokens = count}, sampler, [](const auto&) { return true; }));
  };
  generate(2);
  std::vector<size_t> before;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    before.push_back(ranked.boxes().sent_bytes(rank));
  }
  generate(5);
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    EXPECT_EQ(ranked.boxes().sent_bytes(rank) - before[rank],
              5 * TrafficOf(whole, ranked.link().shares(), wire, rank, 7).sent_bytes)
        << "rank " << rank;
  }
  Unwrap(ranked.Stop());
}

TEST(RankCosts, TrafficIsAsPlanned) {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.config.num_attention_heads = 12;
  spec.config.num_key_value_heads = 6;
  // In f32, a row is more than one small message.
  spec.config.hidden_size = 288;
  const support::ConvertedModel model(spec, {.weights = Scheme::kF32});
  for (const WireType wire : {WireType::kF32, WireType::kF16, WireType::kInt8}) {
    // No processor decides this.
    if (support::IsEmulated() && wire != WireType::kInt8) continue;
    for (const size_t num_ranks : {2, 3, 4, 6})
      ExpectTrafficAsPlanned(model.path(), num_ranks, wire);
  }
}

TEST(RankCosts, TrafficOfJointNormsIsAsPlanned) {
  const support::ConvertedModel model(support::FamilyNamed("Olmo2"), {.weights = Scheme::kF32});
  for (const size_t num_ranks : {2, 3, 4}) {
    ExpectTrafficAsPlanned(model.path(), num_ranks, WireType::kF32);
  }
}

TEST(RankCosts, WhatIsSentIsReceived) {
  ModelConfig config;
  config.hidden_size = 4096;
  config.num_hidden_layers = 32;
  config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.intermediate_size = 14336;
  config.vocab_size = 128256;
  for (const auto& [num_ranks, wire] : {std::pair(size_t{2}, WireType::kF32),
                                        {3, WireType::kF16},
                                        {4, WireType::kInt8},
                                        {6, WireType::kF32},
                                        {8, WireType::kInt8}}) {
    const auto shares = Unwrap(Divide(config, kBlocks, std::vector<double>(num_ranks, 1.0)));
    uint64_t sent = 0;
    uint64_t received = 0;
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      const TokenTraffic traffic = TrafficOf(config, shares, wire, rank, 40);
      sent += traffic.sent_bytes;
      received += traffic.received_bytes;
    }
    EXPECT_NEAR(static_cast<double>(sent), static_cast<double>(received), 0.001 * sent);
  }
}

// Two ranks and no other cost than latency: a message for each of 64 sums, three for the rest.
TEST(RankCosts, TimeIsThatOfMessages) {
  ModelConfig config;
  config.hidden_size = 4096;
  config.num_hidden_layers = 32;
  const std::vector<RankShare> two(2, RankShare{.vocabulary = {0, 100}});
  const std::vector<RankShare> three(3, RankShare{.vocabulary = {0, 100}});
  EXPECT_NEAR(ExchangeSeconds(config, two, WireType::kF32, 1, {1e15, 1e-3}), 0.067, 1e-6);
  EXPECT_NEAR(ExchangeSeconds(config, three, WireType::kF32, 1, {1e15, 1e-3}), 0.131, 1e-6);
  EXPECT_EQ(ExchangeSeconds(config, std::span(two).first(1), WireType::kF32, 1, {1e6, 1e-3}), 0.0);
  // 64 sums of 16 KiB in 12 frames, and 2 KiB of commands with one candidate. A message has 24
  // bytes more, a frame 90; two thirds of the sums are acknowledged by a frame of their own.
  constexpr double kRest = 1e-6 * (2048 + 8 + 3 * (24 + 90));
  EXPECT_NEAR(ExchangeSeconds(config, two, WireType::kF32, 1, {1e6, 0.0}),
              64e-6 * (16384 + 24 + 12.67 * 90) + kRest, 1e-9);
  // With a byte and a sixteenth for each value, in 4 frames.
  EXPECT_NEAR(ExchangeSeconds(config, two, WireType::kInt8, 1, {1e6, 0.0}),
              64e-6 * (4352 + 24 + 4.67 * 90) + kRest, 1e-9);
  // A small exchange for each of 32 layers.
  config.joint_qk_norm = true;
  EXPECT_NEAR(ExchangeSeconds(config, three, WireType::kF32, 1, {1e15, 1e-3}), 0.163, 1e-6);
}

// What the interfaces of boards counted for each token (tests/ranks/mpi/network.py).
TEST(RankCosts, BytesOnTheWireAreAsMeasured) {
  ModelConfig config;
  config.hidden_size = 2048;
  config.num_hidden_layers = 12;
  config.num_attention_heads = config.num_key_value_heads = 12;
  config.head_dim = 32;
  config.intermediate_size = 384;
  config.vocab_size = 512;
  for (const std::vector<double>& measured :
       {std::vector<double>{209946, 208887}, std::vector<double>{286328, 284417, 282726},
        std::vector<double>{330442, 326763, 324076, 323979},
        std::vector<double>{363705, 353451, 353615, 353621, 353322, 352015}}) {
    const size_t num_ranks = measured.size();
    const auto shares = Unwrap(Divide(config, kBlocks, std::vector<double>(num_ranks, 1.0)));
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      EXPECT_NEAR(
          static_cast<double>(TrafficOf(config, shares, WireType::kF32, rank, 40).sent_wire_bytes),
          measured[rank], 0.025 * measured[rank])
          << "rank " << rank << " of " << num_ranks;
    }
  }
}

}  // namespace
}  // namespace cria::ranks
