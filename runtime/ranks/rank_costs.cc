#include "ranks/rank_costs.h"

#include <algorithm>

#include "core/numeric.h"
#include "ranks/collective_link.h"
#include "ranks/ordered_collective.h"

namespace cria::ranks {
namespace {

// After o_proj and after down_proj.
constexpr uint64_t kSumsOfLayer = 2;
// Commands of a token: what is run, and that logits are wanted.
constexpr uint64_t kCommands = 2;

// Of a frame of Ethernet with 1,500 bytes: what TCP with time stamps leaves for data, and the
// headers of Ethernet, IP and TCP.
constexpr uint64_t kSegmentBytes = 1448;
constexpr uint64_t kHeaderBytes = 66;
// Preamble, checksum and gap, which take time, but which no interface counts.
constexpr uint64_t kUncountedBytes = 24;
// What OpenMPI puts before a message.
constexpr uint64_t kMpiHeaderBytes = 24;
// Frames that acknowledge a received message and carry nothing else, on average: tests measured
// 0.6 to 0.7, because most acknowledgements travel with what the other rank sends anyway.
constexpr double kAcknowledgements = 0.67;

// Equal messages that a rank sends and receives, as they are on the wire.
class WireTraffic {
 public:
  void Send(uint64_t count, uint64_t message_bytes) {
    const uint64_t bytes = message_bytes + kMpiHeaderBytes;
    data_bytes_ += count * bytes;
    frames_ += static_cast<double>(count * DivideRoundingUp(bytes, kSegmentBytes));
  }
  void Receive(uint64_t count) { frames_ += kAcknowledgements * static_cast<double>(count); }

  double counted_bytes() const { return static_cast<double>(data_bytes_) + frames_ * kHeaderBytes; }
  // The time that they take is that of so many bytes.
  double all_bytes() const { return counted_bytes() + frames_ * kUncountedBytes; }

 private:
  uint64_t data_bytes_ = 0;
  double frames_ = 0.0;
};

// Those of sums of the hidden state.
WireTraffic TrafficOfSums(uint64_t num_sums, size_t hidden_size, size_t num_ranks, size_t rank) {
  const uint64_t messages = OrderedCollective::SentMessages(num_ranks);
  const uint64_t bytes = OrderedCollective::SentBytes(hidden_size, num_ranks, rank);
  WireTraffic traffic;
  if (messages == 0) return traffic;
  // Those of one sum are of nearly the same size.
  traffic.Send(num_sums * messages, DivideRoundingUp(bytes, messages));
  traffic.Receive(num_sums * messages);
  return traffic;
}

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
  WireTraffic wire = TrafficOfSums(sums, whole.hidden_size, num_ranks, rank);
  if (rank != 0) {
    traffic.sent_bytes += CandidateBytes(shares[rank], num_candidates);
    traffic.received_bytes += commands;
    wire.Send(1, CandidateBytes(shares[rank], num_candidates));
    wire.Receive(kCommands);
  } else {
    traffic.sent_bytes += (num_ranks - 1) * commands;
    wire.Send((num_ranks - 1) * kCommands, CollectiveLink::kCommandBytes);
    wire.Receive(num_ranks - 1);
    for (size_t other = 1; other < num_ranks; ++other) {
      traffic.received_bytes += CandidateBytes(shares[other], num_candidates);
    }
  }
  traffic.sent_wire_bytes = static_cast<uint64_t>(wire.counted_bytes());
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
  double sum_bytes = 0.0;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    sum_bytes =
        std::max(sum_bytes, TrafficOfSums(1, whole.hidden_size, num_ranks, rank).all_bytes());
  }
  const double sum_seconds =
      exchanges * network.latency_seconds + sum_bytes / network.bytes_per_second;
  // Rank 0 sends commands, and receives candidates.
  WireTraffic rest;
  rest.Send((num_ranks - 1) * kCommands, CollectiveLink::kCommandBytes);
  for (size_t other = 1; other < num_ranks; ++other) {
    rest.Send(1, CandidateBytes(shares[other], num_candidates));
  }
  return sums * sum_seconds + static_cast<double>(kCommands + 1) * network.latency_seconds +
         rest.all_bytes() / network.bytes_per_second;
}

uint64_t WeightBytesPerToken(const ModelOutline& part) {
  uint64_t bytes = 0;
  for (const TensorLayout& matrix : part.matrices) {
    bytes += matrix.data_bytes() + matrix.scale_bytes();
  }
  return bytes;
}

}  // namespace cria::ranks
