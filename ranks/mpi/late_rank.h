#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/collective.h"

namespace cria::mpi {

// How far the main thread of a rank has come. Ranks send it to each other.
struct RankProgress {
  uint64_t num_exchanges = 0;  // Exchanges that have begun. All ranks take part in the same ones.
  uint32_t num_phases = 0;     // Phases that were entered.
  RankPhase phase = RankPhase::kComputing;
  bool waits = false;  // In an exchange.
  // The changes that rank 0 has seen, which watches all. The others watch only rank 0, which
  // may itself wait for a rank that gets on.
  uint32_t num_seen = 0;

  bool operator==(const RankProgress&) const = default;
};

// Finds a rank whose main thread hangs although its process lives.
class LateRank {
 public:
  using Clock = std::chrono::steady_clock;

  // While a rank loads, it may take this many times as long as in a step of the model: between two
  // signs that it gets on, a file of gigabytes may have to be written to a memory card.
  static constexpr int kLoadingFactor = 10;

  // `limit` is for a step of the model.
  LateRank(size_t num_ranks, Clock::duration limit, Clock::time_point now);

  // What is known of a rank. Those of which nothing is known are never late.
  void Update(size_t rank, const RankProgress& progress, Clock::time_point now);
  // How often something counted from a new time on.
  uint32_t num_changes() const { return num_changes_; }
  // Everything counts from now on.
  void Restart(Clock::time_point now);
  // The rank that has come least far, if it has not moved for the limit while another one, which
  // has come farther, has waited for so long.
  std::optional<size_t> Find(Clock::time_point now) const;

 private:
  struct Known {
    bool is_known = false;
    RankProgress progress;
    Clock::time_point since;  // It is like this.
  };

  Clock::duration limit_;
  uint32_t num_changes_ = 0;
  std::vector<Known> ranks_;
};

}  // namespace cria::mpi
