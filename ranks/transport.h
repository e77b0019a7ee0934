#pragma once

#include <cstddef>
#include <span>

#include "core/collective.h"
#include "cria/error.h"

namespace cria::ranks {

// What is sent to a rank, or where what it sends is written.
struct Outgoing {
  size_t rank;
  std::span<const std::byte> bytes;
};
struct Incoming {
  size_t rank;
  std::span<std::byte> bytes;
};

// Sends bytes between the ranks. One thread at a time may use it.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual size_t rank() const = 0;
  virtual size_t num_ranks() const = 0;

  // As Collective::Enter.
  virtual void Enter(RankPhase) {}

  // Sends and receives all of these at the same time, and returns after that. What one rank sends
  // to another arrives in its order, and the receiver knows how many bytes there are. Fails if
  // another rank has ended, or gives no sign of life.
  virtual Status Exchange(std::span<const Outgoing> sent, std::span<const Incoming> received) = 0;
};

}  // namespace cria::ranks
