#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/collective.h"
#include "core/platform.h"
#include "ranks/divide.h"
#include "ranks/transport.h"

namespace cria::ranks {

// A Collective by messages between two ranks each. Two ranks send each other all values. Of more,
// each adds up a part of the values for all, and sends its sums to the others: so each rank sends
// less than twice the values, however many ranks there are.
class OrderedCollective final : public Collective {
 public:
  // `transport` must outlive it.
  explicit OrderedCollective(Transport& transport);

  uint64_t MemoryBytes(size_t max_values) const override;
  Status Reserve(size_t max_values) override;

  size_t rank() const override { return transport_.rank(); }
  size_t num_ranks() const override { return transport_.num_ranks(); }
  void Enter(RankPhase phase) override { transport_.Enter(phase); }
  Status Sum(std::span<float> values) override;
  Status Gather(std::span<const std::byte> sent,
                std::span<const std::span<std::byte>> received) override;
  Status Broadcast(std::span<std::byte> bytes) override;

  // Messages and bytes that one rank sends in a Sum. It receives as many messages.
  static uint64_t SentMessages(size_t num_ranks) {
    return num_ranks == 2 ? 1 : 2 * (num_ranks - 1);
  }
  static uint64_t SentBytes(size_t num_values, size_t num_ranks, size_t rank);

 private:
  // The values that a rank adds up.
  static Range PartOf(size_t num_values, size_t num_ranks, size_t rank);
  Status SumOfTwo(std::span<float> values);
  // Adds the values of all ranks, [num_ranks - 1][size] behind one another in the received ones and
  // this rank's own.
  void AddInOrder(std::span<float> own);

  Transport& transport_;
  platform::PageBlock memory_;
  std::span<float> received_;
  // Capacity for one message for each rank.
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
};

}  // namespace cria::ranks
