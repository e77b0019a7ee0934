#include "cli/bench/read_bandwidth.h"

#include <algorithm>
#include <chrono>

#include "ops/read_memory.h"

namespace cria::cli {

ReadBandwidth::ReadBandwidth(std::span<const std::span<const std::byte>> matrices) {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  for (std::span<const std::byte> rest : matrices) {
    while (!rest.empty() && bytes_ < kMaxBytes) {
      const size_t count = std::min(rest.size(), kPieceBytes);
      pieces_.push_back(rest.first(count));
      rest = rest.subspan(count);
      bytes_ += count;
    }
  }
  sums_.resize(pieces_.size());
}

double ReadBandwidth::Measure(const ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  // Long enough for the resolution of the clock and for waking threads.
  constexpr auto kMinTime = std::chrono::milliseconds(5);
  const Clock::time_point begin = Clock::now();
  Clock::duration time = {};
  double bytes = 0.0;
  do {
    pool.ParallelFor(pieces_.size(),
                     [&](size_t piece) { sums_[piece] = ops::SumOfWords(pieces_[piece]); });
    bytes += static_cast<double>(bytes_);
    time = Clock::now() - begin;
  } while (time < kMinTime);
  return bytes / std::chrono::duration<double, std::nano>(time).count();
}

}  // namespace cria::cli
