#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "mpi/mpi_transport.h"
#include "ranks/collective_link.h"
#include "ranks/rank_costs.h"

namespace cria::cli {

// What is told about ranks, in any command.
struct RankOptions {
  // Without weights, all ranks get as much.
  ranks::LinkOptions link;
  mpi::MpiLimits limits;
  // For plan and pack, which run no ranks.
  size_t num_ranks = 0;
  std::optional<size_t> rank;
  bool has_network = false;  // It was given.
  ranks::Network network = {.bytes_per_second = 1e9 / 8, .latency_seconds = 0.2e-3};

  // The options of the link, with weights for `count` ranks.
  ranks::LinkOptions LinkOf(size_t count) const {
    ranks::LinkOptions all = link;
    if (all.weights.empty()) all.weights.assign(count, 1.0);
    return all;
  }
};

// Takes these options out of the arguments. A value is the next argument, or stands behind a "=".
//   --rank-weights 2,1,1   how much of the model each rank gets, in proportion to the others
//   --rank-wire f16        in which type the sums cross the network: f32, f16 or int8
//   --rank-timeout 10      after so many seconds without a sign of life, a rank counts as dead
//   --rank-stall 120       after so many seconds in which others wait for one step, a rank hangs
//   --rank-start 60        how many seconds the ranks may take to find each other
//   --ranks 4              plan, pack: how many ranks there will be
//   --rank 2               pack: whose part to pack, counted from 0
//   --network-mbit 1000    plan: bandwidth of each board's link
//   --network-ms 0.2       plan: latency from one board to another
Result<RankOptions> TakeRankOptions(std::vector<std::string>& arguments);

// Refuses options where a command would ignore them. Only plan and pack are told a number of ranks:
// the others run on the `num_running` ranks that mpirun started, 0 without it. Only pack has a
// rank, and packs on one board without mpirun.
Status CheckRankOptions(const RankOptions& options, std::string_view command, size_t num_running);

}  // namespace cria::cli
