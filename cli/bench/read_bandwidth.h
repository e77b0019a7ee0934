#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/thread_pool.h"

namespace cria::cli {

// How fast the machine reads a model's packed weights: the bytes that decoding reads, from where it
// reads them, which leaves out no cache and no translation of addresses. Virtual machines and hot
// boards change from second to second, so measure beside what is to be compared.
class ReadBandwidth {
 public:
  // Of larger models only the first `kMaxBytes` are read.
  explicit ReadBandwidth(std::span<const std::span<const std::byte>> matrices);

  // GB/s (of 10^9 bytes) with all threads of `pool`.
  double Measure(const ThreadPool& pool);

 private:
  static constexpr size_t kMaxBytes = size_t{1} << 30;

  std::vector<std::span<const std::byte>> pieces_;
  std::vector<uint64_t> sums_;  // One for each piece.
  size_t bytes_ = 0;
};

}  // namespace cria::cli
