// Once ranks have loaded their parts of a model, none of them asks for memory.

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "budget/visible_allocations.h"
#include "llm/engine.h"
#include "llm/generator.h"
#include "llm/turn.h"
#include "ranks/collective_link.h"
#include "ranks/ordered_collective.h"
#include "ranks/ranked_loader.h"
#include "ranks/rendezvous_transport.h"
#include "support/allocation_watch.h"
#include "support/converted_model.h"
#include "support/unwrap.h"

namespace cria::ranks {
namespace {

// One of the threads that are the ranks.
struct WatchedRank {
  WatchedRank(Rendezvous& rendezvous, size_t rank, WireType wire)
      : transport(rendezvous, rank),
        collective(transport),
        link(collective, {std::vector<double>(rendezvous.num_ranks(), 1.0), wire}) {}

  RendezvousTransport transport;
  OrderedCollective collective;
  CollectiveLink link;
  std::unique_ptr<Engine> engine;
};

void ExpectQuietRanks(const std::string& path, size_t num_ranks, WireType wire) {
  const EngineOptions options = {.num_threads = 1, .context_tokens = 128, .chunk_tokens = 32};
  Rendezvous rendezvous(num_ranks);
  std::vector<std::unique_ptr<WatchedRank>> ranks;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    WatchedRank& added = *ranks.emplace_back(std::make_unique<WatchedRank>(rendezvous, rank, wire));
    EngineOptions own = rank == 0 ? options : FollowerOptions(options);
    own.ranks = &added.link;
    added.engine = Unwrap(Engine::Load(path, own));
  }
  std::vector<std::thread> threads;
  for (size_t rank = 1; rank < num_ranks; ++rank) {
    threads.emplace_back(
        [&follower = *ranks[rank]] { Unwrap(follower.link.Follow(follower.engine->decoder())); });
  }
  Engine& engine = *ranks.front()->engine;
  const std::unique_ptr<Session> session = engine.NewSession();
  Sampler sampler =
      Unwrap(Sampler::Create({.top_k = 5, .seed = 1}, engine.file().config().vocab_size));
  std::vector<int32_t> prompt(70);
  std::iota(prompt.begin(), prompt.end(), 3);
  size_t num_generated = 0;
  support::AllocationWatch watch("ranks");
  const Status prefilled = Turn(*session).Prefill(prompt);
  const auto reason = Generate(*session, {.max_tokens = 20}, sampler, [&](const GeneratedToken&) {
    ++num_generated;
    return true;
  });
  const Status dropped = Turn(*session).Drop(5, 20);
  const std::string report = watch.Finish();
  EXPECT_EQ(report, "") << num_ranks << " ranks";
  EXPECT_TRUE(prefilled && reason && dropped);
  EXPECT_EQ(num_generated, 20u);
  Unwrap(ranks.front()->link.Stop());
  for (std::thread& thread : threads) thread.join();
}

// A mixture with norms over all heads, in which ranks send each other all that they ever send.
TEST(RankedZeroAllocationTest, RanksAskForNoMemory) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const support::ConvertedModel model(support::FamilyNamed("Olmoe"), {.weights = Scheme::kQc8w});
  for (const size_t num_ranks : {2, 3}) {
    for (const WireType wire : {WireType::kF32, WireType::kInt8}) {
      ExpectQuietRanks(model.path(), num_ranks, wire);
    }
  }
}

}  // namespace
}  // namespace cria::ranks
