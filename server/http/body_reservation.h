#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace cria::server {

// The bytes of one body, which count as a part of HttpBounds::total_body_bytes as long as the
// reservation exists. It may outlive the server.
class BodyReservation {
 public:
  explicit BodyReservation(std::shared_ptr<std::atomic<uint64_t>> total)
      : total_(std::move(total)) {}
  BodyReservation(const BodyReservation&) = delete;
  BodyReservation& operator=(const BodyReservation&) = delete;
  ~BodyReservation() { *total_ -= bytes_; }

  uint64_t bytes() const { return bytes_; }
  // False if all bodies together would have more than `max_total`. On the HTTP thread alone.
  bool Grow(uint64_t bytes, uint64_t max_total) {
    const uint64_t more = bytes - bytes_;
    if (*total_ + more > max_total) return false;
    *total_ += more;
    bytes_ = bytes;
    return true;
  }

 private:
  const std::shared_ptr<std::atomic<uint64_t>> total_;
  uint64_t bytes_ = 0;
};

}  // namespace cria::server
