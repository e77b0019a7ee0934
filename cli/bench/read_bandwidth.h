#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/thread_pool.h"

namespace cria::cli {

// How fast the machine reads a model's packed weights: the same bytes at the same addresses as
// decoding, so that caches and address translation are included. The speed of virtual machines and
// hot boards changes within seconds, so measure right before or after the run that is compared.
class ReadBandwidth {
 public:
  // For larger models, only the first `kMaxBytes` are read.
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
