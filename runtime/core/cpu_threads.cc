#include "core/cpu_threads.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/platform_threads.h"

namespace cria {

size_t DefaultThreadCount(const platform::CpuTopology& topology) {
  const auto speed = [](const platform::Processor& processor) {
    return std::tuple(processor.microarchitecture_rank, processor.max_frequency_hz);
  };
  if (topology.processors.empty()) return 1;
  const auto fastest = speed(*std::ranges::max_element(topology.processors, {}, speed));
  std::set<uint32_t> fast_cores;
  for (const platform::Processor& processor : topology.processors) {
    // A prime core beside big ones has only a higher frequency and works well with them; a little
    // core is of another kind, or runs at little more than half the speed.
    const bool same_kind = processor.microarchitecture_rank == std::get<0>(fastest);
    const bool near_frequency = processor.max_frequency_hz * 10 >= std::get<1>(fastest) * 7;
    if (same_kind && near_frequency) fast_cores.insert(processor.core);
  }
  return fast_cores.size();
}

size_t ThreadCountOrDefault(size_t num_threads) {
  if (num_threads != 0) return num_threads;
  return std::min(DefaultThreadCount(platform::ReadCpuTopology()), platform::MaxRunningThreads());
}

}  // namespace cria
