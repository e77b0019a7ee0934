#include <cpuinfo.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "core/platform.h"

namespace cria::platform {
namespace {

// A rank of cpuinfo's microarchitectures that is valid for the kinds of cores on one chip. In a
// vendor's block of identifiers, a larger number is a later, faster core, except for Arm's little
// cores, whose numbers start again with every generation.
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

// Arm's names for the cores of boards, phones and servers; empty for others.
std::string_view ArmCoreName(cpuinfo_uarch uarch) {
  struct NamedCore {
    cpuinfo_uarch uarch;
    std::string_view name;
  };
  static constexpr NamedCore kCores[] = {
      {cpuinfo_uarch_cortex_a7, "Cortex-A7"},     {cpuinfo_uarch_cortex_a15, "Cortex-A15"},
      {cpuinfo_uarch_cortex_a32, "Cortex-A32"},   {cpuinfo_uarch_cortex_a35, "Cortex-A35"},
      {cpuinfo_uarch_cortex_a53, "Cortex-A53"},   {cpuinfo_uarch_cortex_a55r0, "Cortex-A55"},
      {cpuinfo_uarch_cortex_a55, "Cortex-A55"},   {cpuinfo_uarch_cortex_a57, "Cortex-A57"},
      {cpuinfo_uarch_cortex_a72, "Cortex-A72"},   {cpuinfo_uarch_cortex_a73, "Cortex-A73"},
      {cpuinfo_uarch_cortex_a75, "Cortex-A75"},   {cpuinfo_uarch_cortex_a76, "Cortex-A76"},
      {cpuinfo_uarch_cortex_a77, "Cortex-A77"},   {cpuinfo_uarch_cortex_a78, "Cortex-A78"},
      {cpuinfo_uarch_cortex_a510, "Cortex-A510"}, {cpuinfo_uarch_cortex_a520, "Cortex-A520"},
      {cpuinfo_uarch_cortex_a710, "Cortex-A710"}, {cpuinfo_uarch_cortex_a715, "Cortex-A715"},
      {cpuinfo_uarch_cortex_a720, "Cortex-A720"}, {cpuinfo_uarch_cortex_x1, "Cortex-X1"},
      {cpuinfo_uarch_cortex_x2, "Cortex-X2"},     {cpuinfo_uarch_cortex_x3, "Cortex-X3"},
      {cpuinfo_uarch_cortex_x4, "Cortex-X4"},     {cpuinfo_uarch_neoverse_n1, "Neoverse-N1"},
      {cpuinfo_uarch_neoverse_n2, "Neoverse-N2"}, {cpuinfo_uarch_neoverse_v1, "Neoverse-V1"},
      {cpuinfo_uarch_neoverse_v2, "Neoverse-V2"},
  };
  const auto* core = std::ranges::find(kCores, uarch, &NamedCore::uarch);
  return core == std::end(kCores) ? std::string_view() : core->name;
}

// On Arm the name of the fastest core, because cpuinfo seldom knows the chip's; otherwise the
// brand.
std::string ProcessorName() {
  const std::span cores(cpuinfo_get_cores(), cpuinfo_get_cores_count());
  const auto fastest = std::ranges::max_element(cores, {}, [](const cpuinfo_core& core) {
    return std::pair(MicroarchitectureRank(core.uarch), core.uarch);
  });
  if (fastest != cores.end()) {
    if (const std::string_view name = ArmCoreName(fastest->uarch); !name.empty()) {
      return std::string(name);
    }
  }
  return cpuinfo_get_package(0)->name;
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
    // Without /sys, only the number of processors is known.
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < online; ++i) {
      topology.processors.push_back({.core = static_cast<uint32_t>(i)});
    }
    return topology;
  }
  topology.name = ProcessorName();
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

std::string InstructionSets() {
  if (!cpuinfo_initialize()) return {};
  struct InstructionSet {
    std::string_view name;
    bool is_there;
  };
  const InstructionSet sets[] = {
      {"ssse3", cpuinfo_has_x86_ssse3()},
      {"sse4.1", cpuinfo_has_x86_sse4_1()},
      {"avx", cpuinfo_has_x86_avx()},
      {"f16c", cpuinfo_has_x86_f16c()},
      {"fma", cpuinfo_has_x86_fma3()},
      {"avx2", cpuinfo_has_x86_avx2()},
      {"avxvnni", cpuinfo_has_x86_avxvnni()},
      {"avx512f", cpuinfo_has_x86_avx512f()},
      {"avx512bw", cpuinfo_has_x86_avx512bw()},
      {"avx512vbmi", cpuinfo_has_x86_avx512vbmi()},
      {"avx512vnni", cpuinfo_has_x86_avx512vnni()},
      {"avx512bf16", cpuinfo_has_x86_avx512bf16()},
      {"avx512fp16", cpuinfo_has_x86_avx512fp16()},
      {"amx-int8", cpuinfo_has_x86_amx_int8()},
      {"neon", cpuinfo_has_arm_neon()},
      {"fp16", cpuinfo_has_arm_neon_fp16_arith()},
      {"dotprod", cpuinfo_has_arm_neon_dot()},
      {"i8mm", cpuinfo_has_arm_i8mm()},
      {"bf16", cpuinfo_has_arm_neon_bf16()},
      {"sve", cpuinfo_has_arm_sve()},
      {"sve2", cpuinfo_has_arm_sve2()},
      {"sme", cpuinfo_has_arm_sme()},
      {"sme2", cpuinfo_has_arm_sme2()},
      {"rvv", cpuinfo_has_riscv_v()},
  };
  std::string names;
  for (const InstructionSet& set : sets) {
    if (!set.is_there) continue;
    if (!names.empty()) names += ' ';
    names += set.name;
  }
  return names;
}

bool HasArmDotProducts() { return cpuinfo_initialize() && cpuinfo_has_arm_neon_dot(); }

bool HasArmInt8Matrices() { return cpuinfo_initialize() && cpuinfo_has_arm_i8mm(); }

}  // namespace cria::platform
