#include "mpi/late_rank.h"

#include <algorithm>

namespace cria::mpi {

LateRank::LateRank(size_t num_ranks, Clock::duration limit, Clock::time_point now)
    : limit_(limit), ranks_(num_ranks) {
  Restart(now);
}

void LateRank::Update(size_t rank, const RankProgress& progress, Clock::time_point now) {
  Known& known = ranks_[rank];
  if (known.is_known && known.progress == progress) return;
  ++num_changes_;
  known = {.is_known = true, .progress = progress, .since = now};
}

void LateRank::Restart(Clock::time_point now) {
  // Ranks that are told of changes restart, too.
  ++num_changes_;
  for (Known& known : ranks_) known.since = now;
}

std::optional<size_t> LateRank::Find(Clock::time_point now) const {
  const Known* last = nullptr;
  for (const Known& known : ranks_) {
    if (!known.is_known) continue;
    if (last == nullptr || known.progress.num_exchanges < last->progress.num_exchanges) {
      last = &known;
    }
  }
  if (last == nullptr) return std::nullopt;
  const bool loads = last->progress.phase == RankPhase::kLoading;
  const Clock::duration limit = loads ? kLoadingFactor * limit_ : limit_;
  if (now - last->since <= limit) return std::nullopt;
  const bool is_awaited = std::ranges::any_of(ranks_, [&](const Known& other) {
    return other.is_known && other.progress.waits && other.progress.phase != RankPhase::kIdle &&
           other.progress.num_exchanges > last->progress.num_exchanges && now - other.since > limit;
  });
  if (!is_awaited) return std::nullopt;
  return static_cast<size_t>(last - ranks_.data());
}

}  // namespace cria::mpi
