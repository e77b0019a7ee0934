#pragma once

// Ranks that are threads of one process, and send each other copies of bytes.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "ranks/transport.h"

namespace cria::ranks {

class ThreadMailboxes {
 public:
  explicit ThreadMailboxes(size_t num_ranks) : num_ranks_(num_ranks) {}

  size_t num_ranks() const { return num_ranks_; }
  void Send(size_t from, const Outgoing& message) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, message.rank}].emplace_back(message.bytes.begin(), message.bytes.end());
    sent_bytes_[from] += message.bytes.size();
    changed_.notify_all();
  }
  // Fails if there is no message of this size within the time that a test may take.
  Status Receive(size_t to, const Incoming& message) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{message.rank, to}];
    const bool has_come = changed_.wait_for(lock, std::chrono::seconds(60),
                                            [&] { return !box.empty() || is_broken_; });
    if (!has_come || box.empty()) {
      is_broken_ = true;
      changed_.notify_all();
      return Fail(ErrorCode::kIo, "another rank sends nothing");
    }
    if (box.front().size() != message.bytes.size()) {
      return Fail(ErrorCode::kInternal, "another rank sent a message of another size");
    }
    std::ranges::copy(box.front(), message.bytes.begin());
    box.pop_front();
    return {};
  }
  // Ends all waiting.
  void Break() {
    const std::lock_guard lock(mutex_);
    is_broken_ = true;
    changed_.notify_all();
  }
  size_t sent_bytes(size_t from) {
    const std::lock_guard lock(mutex_);
    return sent_bytes_[from];
  }

 private:
  const size_t num_ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<size_t, size_t>, std::deque<std::vector<std::byte>>> boxes_;
  std::map<size_t, size_t> sent_bytes_;
  bool is_broken_ = false;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(ThreadMailboxes& boxes, size_t rank) : boxes_(boxes), rank_(rank) {}

  size_t rank() const override { return rank_; }
  size_t num_ranks() const override { return boxes_.num_ranks(); }
  Status Exchange(std::span<const Outgoing> sent, std::span<const Incoming> received) override {
    for (const Outgoing& message : sent) boxes_.Send(rank_, message);
    for (const Incoming& message : received) {
      CRIA_RETURN_IF_ERROR(boxes_.Receive(rank_, message));
    }
    return {};
  }

 private:
  ThreadMailboxes& boxes_;
  const size_t rank_;
};

}  // namespace cria::ranks
