#include <cpuinfo.h>
#include <sched.h>
#include <unistd.h>

#include "core/platform.h"

namespace cria::platform {
namespace {

// A rank for cpuinfo's microarchitectures that orders the kinds which share a chip. Within a
// vendor's block of identifiers a later number is a later, faster core, except for Arm's little
// cores, which begin again with every generation.
uint32_t MicroarchitectureRank(cpuinfo_uarch uarch) {
  switch (uarch) {
    case cpuinfo_uarch_cortex_a5:
    case cpuinfo_uarch_cortex_a7:
    case cpuinfo_uarch_cortex_a32:
    case cpuinfo_uarch_cortex_a35:
    case cpuinfo_uarch_cortex_a53:
    case cpuinfo_uarch_cortex_a55r0:
    case cpuinfo_uarch_cortex_a55:
    case cpuinfo_uarch_cortex_a510:
    case cpuinfo_uarch_cortex_a520:
      return 1;
    default:
      return 2;
  }
}

bool MayRunOn(const cpu_set_t& allowed, int linux_id) {
  return linux_id < 0 || linux_id >= CPU_SETSIZE || CPU_ISSET(linux_id, &allowed);
}

}  // namespace

CpuTopology ReadCpuTopology() {
  CpuTopology topology;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool know_allowed = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  if (!cpuinfo_initialize() || cpuinfo_get_processors_count() == 0) {
    // Without /sys there is still the number of processors.
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < online; ++i) {
      topology.processors.push_back({.core = static_cast<uint32_t>(i)});
    }
    return topology;
  }
  topology.name = cpuinfo_get_package(0)->name;
  for (uint32_t i = 0; i < cpuinfo_get_processors_count(); ++i) {
    const cpuinfo_processor* processor = cpuinfo_get_processor(i);
    if (know_allowed && !MayRunOn(allowed, processor->linux_id)) continue;
    topology.processors.push_back(
        {.core = static_cast<uint32_t>(processor->core - cpuinfo_get_cores()),
         .max_frequency_hz = processor->core->frequency,
         .microarchitecture_rank = MicroarchitectureRank(processor->core->uarch)});
  }
  return topology;
}

}  // namespace cria::platform
