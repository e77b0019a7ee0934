#include "ranks/rank_costs.h"

#include <algorithm>
#include <vector>

#include "ranks/collective_link.h"
#include "ranks/joint_norm.h"
#include "ranks/ordered_collective.h"

namespace cria::ranks {
namespace {

// Commands of a token: what is run, and that logits are wanted.
constexpr uint64_t kCommands = 2;

// Sums of a token that are alike.
struct Sums {
  uint64_t count;
  size_t num_values;
  WireType type;

  uint64_t SentBytes(size_t num_ranks, size_t rank) const {
    return count * OrderedCollective::SentBytes(num_values, type, num_ranks, rank);
  }
};

std::vector<Sums> SumsOfToken(const ModelConfig& whole, WireType wire) {
  const uint64_t layers = whole.num_hidden_layers;
  // After o_proj and after down_proj.
  std::vector<Sums> sums = {{2 * layers, whole.hidden_size, wire}};
  if (whole.joint_qk_norm) sums.push_back({layers, JointNorm::NumSums(1), WireType::kF32});
  return sums;
}

uint64_t CandidateBytes(const RankShare& share, size_t num_candidates) {
  return std::min(num_candidates, share.vocabulary.size()) * sizeof(LogitCandidate);
}

// What a rank sends and receives besides the sums.
TokenTraffic OtherTraffic(std::span<const RankShare> shares, size_t rank, size_t num_candidates) {
  constexpr uint64_t kCommandBytes = kCommands * CollectiveLink::kCommandBytes;
  if (rank != 0) {
    return {.sent_bytes = CandidateBytes(shares[rank], num_candidates),
            .received_bytes = kCommandBytes};
  }
  TokenTraffic traffic = {.sent_bytes = (shares.size() - 1) * kCommandBytes};
  for (const RankShare& other : shares.subspan(1)) {
    traffic.received_bytes += CandidateBytes(other, num_candidates);
  }
  return traffic;
}

}  // namespace

TokenTraffic TrafficOf(const ModelConfig& whole, std::span<const RankShare> shares, WireType wire,
                       size_t rank, size_t num_candidates) {
  TokenTraffic traffic = OtherTraffic(shares, rank, num_candidates);
  for (const Sums& sums : SumsOfToken(whole, wire)) {
    // Each rank receives about as much as it sends.
    traffic.sent_bytes += sums.SentBytes(shares.size(), rank);
    traffic.received_bytes += sums.SentBytes(shares.size(), rank);
  }
  return traffic;
}

double ExchangeSeconds(const ModelConfig& whole, std::span<const RankShare> shares, WireType wire,
                       size_t num_candidates, const Network& network) {
  const size_t num_ranks = shares.size();
  if (num_ranks < 2) return 0.0;
  double seconds = 0.0;
  for (const Sums& sums : SumsOfToken(whole, wire)) {
    const uint64_t exchanges =
        sums.count * OrderedCollective::NumExchanges(sums.num_values, sums.type, num_ranks);
    // The slowest rank is one that sends most.
    uint64_t bytes = 0;
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      bytes = std::max(bytes, sums.SentBytes(num_ranks, rank));
    }
    seconds += static_cast<double>(exchanges) * network.latency_seconds +
               static_cast<double>(bytes) / network.bytes_per_second;
  }
  // Rank 0 sends commands, and receives candidates.
  const TokenTraffic rest = OtherTraffic(shares, 0, num_candidates);
  return seconds + static_cast<double>(kCommands + 1) * network.latency_seconds +
         static_cast<double>(rest.sent_bytes + rest.received_bytes) / network.bytes_per_second;
}

uint64_t WeightBytesPerToken(const ModelOutline& part) {
  uint64_t bytes = 0;
  for (const TensorLayout& matrix : part.matrices) {
    const uint64_t used_parts = matrix.num_parts == 1 ? 1 : part.config.num_experts_per_tok;
    bytes += used_parts * (matrix.Part().data_bytes() + matrix.Part().scale_bytes());
  }
  return bytes;
}

}  // namespace cria::ranks
