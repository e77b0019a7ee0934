// A library to load before a program (LD_PRELOAD). For the program, the processor then has
// AVX2 and nothing newer, so that XNNPACK and the operators choose what they choose on such a
// processor; our own int4 product is one of these choices.

#include <cpuinfo.h>

#include <cstdint>

#include "hwy/targets.h"

namespace {

[[gnu::constructor]] void HideWhatIsNewerThanAvx2() {
  if (!cpuinfo_initialize()) return;
  // XNNPACK takes nothing else of AVX-512 where this is missing.
  cpuinfo_isa.avx512f = false;
  cpuinfo_isa.avx512vnni = false;
  cpuinfo_isa.avxvnni = false;
  // XNNPACK takes another kernel for f32 where it knows the processor as a Zen of the first kind.
  for (uint32_t i = 0; i < cpuinfo_get_cores_count(); ++i) {
    const_cast<cpuinfo_core*>(cpuinfo_get_core(i))->uarch = cpuinfo_uarch_unknown;
  }
  // Highway numbers newer targets lower.
  hwy::DisableTargets(HWY_AVX2 - 1);
}

}  // namespace
