#include "ranks/rank_costs.h"

#include <algorithm>

#include "ranks/collective_link.h"
#include "ranks/ordered_collective.h"

namespace cria::ranks {
namespace {

// After o_proj and after down_proj.
constexpr uint64_t kSumsOfLayer = 2;
// Commands of a token: what is run, and that logits are wanted.
constexpr uint64_t kCommands = 2;

uint64_t CandidateBytes(const RankShare& share, size_t num_candidates) {
  return std::min(num_candidates, share.vocabulary.size()) * sizeof(LogitCandidate);
}

}  // namespace

TokenTraffic TrafficOf(const ModelConfig& whole, std::span<const RankShare> shares, size_t rank,
                       size_t num_candidates) {
  const size_t num_ranks = shares.size();
  const uint64_t sums = kSumsOfLayer * whole.num_hidden_layers;
  const uint64_t commands = kCommands * CollectiveLink::kCommandBytes;
  TokenTraffic traffic;
  // Of the sums, each rank receives as much as it sends.
  traffic.sent_bytes = traffic.received_bytes =
      sums * OrderedCollective::SentBytes(whole.hidden_size, num_ranks, rank);
  if (rank != 0) {
    traffic.sent_bytes += CandidateBytes(shares[rank], num_candidates);
    traffic.received_bytes += commands;
    return traffic;
  }
  traffic.sent_bytes += (num_ranks - 1) * commands;
  for (size_t other = 1; other < num_ranks; ++other) {
    traffic.received_bytes += CandidateBytes(shares[other], num_candidates);
  }
  return traffic;
}

double ExchangeSeconds(const ModelConfig& whole, std::span<const RankShare> shares,
                       size_t num_candidates, const Network& network) {
  const size_t num_ranks = shares.size();
  if (num_ranks < 2) return 0.0;
  // A sum of two ranks is one exchange, of more it is two.
  const double exchanges = num_ranks == 2 ? 1.0 : 2.0;
  const double sums = static_cast<double>(kSumsOfLayer * whole.num_hidden_layers);
  // The slowest rank is one that sends most.
  uint64_t bytes = 0;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    bytes = std::max(bytes, OrderedCollective::SentBytes(whole.hidden_size, num_ranks, rank));
  }
  const double sum_seconds =
      exchanges * network.latency_seconds + static_cast<double>(bytes) / network.bytes_per_second;
  const TokenTraffic first = TrafficOf(whole, shares, 0, num_candidates);
  const uint64_t sum_bytes = kSumsOfLayer * whole.num_hidden_layers *
                             OrderedCollective::SentBytes(whole.hidden_size, num_ranks, 0);
  // Rank 0 sends commands, and receives candidates.
  const double rest_bytes =
      static_cast<double>(first.sent_bytes + first.received_bytes - 2 * sum_bytes);
  return sums * sum_seconds + static_cast<double>(kCommands + 1) * network.latency_seconds +
         rest_bytes / network.bytes_per_second;
}

uint64_t WeightBytesPerToken(const ModelOutline& part) {
  uint64_t bytes = 0;
  for (const TensorLayout& matrix : part.matrices) {
    bytes += matrix.data_bytes() + matrix.scale_bytes();
  }
  return bytes;
}

}  // namespace cria::ranks
