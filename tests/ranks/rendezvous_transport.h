#pragma once

// Ranks that are threads of one process, and copy what others send without asking for memory.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "ranks/transport.h"

namespace cria::ranks {

// What each rank sends to each other, until it was received.
class Rendezvous {
 public:
  explicit Rendezvous(size_t num_ranks) : num_ranks_(num_ranks), sent_(num_ranks * num_ranks) {}

  size_t num_ranks() const { return num_ranks_; }

  // Returns after all messages were received.
  Status Exchange(size_t rank, std::span<const Outgoing> sent, std::span<const Incoming> received) {
    std::unique_lock lock(mutex_);
    for (const Outgoing& message : sent) Place(rank, message.rank) = message.bytes;
    changed_.notify_all();
    for (const Incoming& message : received) {
      auto& place = Place(message.rank, rank);
      changed_.wait(lock, [&] { return place.has_value(); });
      if (place->size() != message.bytes.size()) {
        return Fail(ErrorCode::kInternal, "another rank sent a message of another size");
      }
      std::ranges::copy(*place, message.bytes.begin());
      place.reset();
      changed_.notify_all();
    }
    for (const Outgoing& message : sent) {
      changed_.wait(lock, [&] { return !Place(rank, message.rank).has_value(); });
    }
    return {};
  }

 private:
  std::optional<std::span<const std::byte>>& Place(size_t from, size_t to) {
    return sent_[from * num_ranks_ + to];
  }

  const size_t num_ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<std::span<const std::byte>>> sent_;
};

class RendezvousTransport final : public Transport {
 public:
  RendezvousTransport(Rendezvous& rendezvous, size_t rank) : rendezvous_(rendezvous), rank_(rank) {}

  size_t rank() const override { return rank_; }
  size_t num_ranks() const override { return rendezvous_.num_ranks(); }
  Status Exchange(std::span<const Outgoing> sent, std::span<const Incoming> received) override {
    return rendezvous_.Exchange(rank_, sent, received);
  }

 private:
  Rendezvous& rendezvous_;
  const size_t rank_;
};

}  // namespace cria::ranks
