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

// A Collective by messages between two ranks each. Two ranks send each other all values, and so do
// more ranks if these are few. Of more values, each rank adds up a part for all, and sends its sums
// to the others: so each rank sends less than twice the values, however many ranks there are.
class OrderedCollective final : public Collective {
 public:
  // `transport` must outlive it.
  explicit OrderedCollective(Transport& transport);

  uint64_t MemoryBytes(size_t max_values, WireType type) const override;
  Status Reserve(uint64_t bytes) override;

  size_t rank() const override { return transport_.rank(); }
  size_t num_ranks() const override { return transport_.num_ranks(); }
  void Enter(RankPhase phase) override { transport_.Enter(phase); }
  Status Sum(std::span<float> values, WireType type) override;
  Status Gather(std::span<const std::byte> sent,
                std::span<const std::span<std::byte>> received) override;
  Status Scatter(std::span<const std::span<const std::byte>> sent,
                 std::span<std::byte> received) override;
  Status Broadcast(std::span<std::byte> bytes) override;

  // How many messages a rank sends to each other in a Sum, one after the other.
  static size_t NumExchanges(size_t num_values, WireType type, size_t num_ranks);
  // Bytes that one rank sends in a Sum.
  static uint64_t SentBytes(size_t num_values, WireType type, size_t num_ranks, size_t rank);

 private:
  Status SumAtOnce(std::span<float> values, WireType type);
  Status SumInParts(std::span<float> values, WireType type);
  // Takes bytes from the beginning of what is left of the memory.
  std::span<std::byte> Take(uint64_t bytes);
  // The values as they are sent: in f32 themselves, otherwise in memory that is taken.
  std::span<const std::byte> Encode(std::span<const float> values, WireType type);
  // Where another rank's values are received.
  std::span<std::byte> ReceiveFrom(size_t other, uint64_t bytes);
  // What this rank, `own`, and the others have sent becomes the sums. `own` may be the bytes of
  // `sums`.
  void AddInOrder(std::span<const std::byte> own, WireType type, std::span<float> sums);

  Transport& transport_;
  platform::PageBlock memory_;
  std::span<std::byte> free_;  // What is free of the memory, during a Sum.
  // Capacity for one message for each rank.
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
};

}  // namespace cria::ranks
