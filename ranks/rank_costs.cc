#include "ranks/rank_costs.h"

#include <algorithm>
#include <vector>

#include "core/numeric.h"
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
  // One after the other.
  uint64_t NumExchanges(size_t num_ranks) const {
    return count * OrderedCollective::NumExchanges(num_values, type, num_ranks);
  }
};

std::vector<Sums> SumsOfToken(const ModelConfig& whole, WireType wire) {
  const uint64_t layers = whole.num_hidden_layers;
  // After o_proj and after down_proj.
  std::vector<Sums> sums = {{2 * layers, whole.hidden_size, wire}};
  if (whole.joint_qk_norm) sums.push_back({layers, JointNorm::NumSums(1), WireType::kF32});
  return sums;
}

// TCP with time stamps leaves so many of the 1,500 bytes that a frame of Ethernet carries for data;
// and the headers of Ethernet, IP and TCP have so many.
constexpr uint64_t kSegmentBytes = 1448;
constexpr uint64_t kHeaderBytes = 66;
// Preamble, checksum and gap, which take time, but which no interface counts.
constexpr uint64_t kUncountedBytes = 24;
// What OpenMPI puts before a message.
constexpr uint64_t kMpiHeaderBytes = 24;
// Frames that acknowledge a received message and carry nothing else, on average: tests measured
// 0.6 to 0.7, because most acknowledgements travel with what the other rank sends anyway.
constexpr double kAcknowledgements = 0.67;

// Messages that a rank sends and receives, as they are on the wire.
class WireTraffic {
 public:
  void Send(uint64_t count, uint64_t message_bytes) {
    const uint64_t bytes = message_bytes + kMpiHeaderBytes;
    data_bytes_ += count * bytes;
    frames_ += static_cast<double>(count * DivideRoundingUp(bytes, kSegmentBytes));
  }
  void Receive(uint64_t count) { frames_ += kAcknowledgements * static_cast<double>(count); }
  void Exchange(const Sums& sums, size_t num_ranks, size_t rank) {
    const uint64_t messages = sums.NumExchanges(num_ranks) * (num_ranks - 1);
    if (messages == 0) return;
    // The parts of one sum are of nearly the same size.
    Send(messages, DivideRoundingUp(sums.SentBytes(num_ranks, rank), messages));
    Receive(messages);
  }

  double counted_bytes() const { return static_cast<double>(data_bytes_) + frames_ * kHeaderBytes; }
  // The time that they take is that of so many bytes.
  double all_bytes() const { return counted_bytes() + frames_ * kUncountedBytes; }

 private:
  uint64_t data_bytes_ = 0;
  double frames_ = 0.0;
};

uint64_t CandidateBytes(const RankShare& share, size_t num_candidates) {
  return std::min(num_candidates, share.vocabulary.size()) * sizeof(LogitCandidate);
}

}  // namespace

TokenTraffic TrafficOf(const ModelConfig& whole, std::span<const RankShare> shares, WireType wire,
                       size_t rank, size_t num_candidates) {
  const size_t num_ranks = shares.size();
  const uint64_t commands = kCommands * CollectiveLink::kCommandBytes;
  TokenTraffic traffic;
  WireTraffic on_wire;
  for (const Sums& sums : SumsOfToken(whole, wire)) {
    // Each rank receives about as much as it sends.
    traffic.sent_bytes += sums.SentBytes(num_ranks, rank);
    traffic.received_bytes += sums.SentBytes(num_ranks, rank);
    on_wire.Exchange(sums, num_ranks, rank);
  }
  if (rank != 0) {
    traffic.sent_bytes += CandidateBytes(shares[rank], num_candidates);
    traffic.received_bytes += commands;
    on_wire.Send(1, CandidateBytes(shares[rank], num_candidates));
    on_wire.Receive(kCommands);
  } else {
    traffic.sent_bytes += (num_ranks - 1) * commands;
    on_wire.Send((num_ranks - 1) * kCommands, CollectiveLink::kCommandBytes);
    on_wire.Receive(num_ranks - 1);
    for (const RankShare& other : shares.subspan(1)) {
      traffic.received_bytes += CandidateBytes(other, num_candidates);
    }
  }
  traffic.sent_wire_bytes = static_cast<uint64_t>(on_wire.counted_bytes());
  return traffic;
}

double ExchangeSeconds(const ModelConfig& whole, std::span<const RankShare> shares, WireType wire,
                       size_t num_candidates, const Network& network) {
  const size_t num_ranks = shares.size();
  if (num_ranks < 2) return 0.0;
  // Rank 0 sends commands, and receives candidates.
  uint64_t exchanges = kCommands + 1;
  WireTraffic rest;
  rest.Send((num_ranks - 1) * kCommands, CollectiveLink::kCommandBytes);
  for (const RankShare& other : shares.subspan(1)) {
    rest.Send(1, CandidateBytes(other, num_candidates));
  }
  double bytes = rest.all_bytes();
  for (const Sums& sums : SumsOfToken(whole, wire)) {
    exchanges += sums.NumExchanges(num_ranks);
    // The slowest rank is one that sends most.
    double most = 0.0;
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      WireTraffic traffic;
      traffic.Exchange(sums, num_ranks, rank);
      most = std::max(most, traffic.all_bytes());
    }
    bytes += most;
  }
  return static_cast<double>(exchanges) * network.latency_seconds +
         bytes / network.bytes_per_second;
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
