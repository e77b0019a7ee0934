// A library to load before a program (LD_PRELOAD). For the program, the processor then has
// AVX2 and nothing newer, so that XNNPACK and the operators choose what they choose on such a
// processor; our own int4 product is one of these choices.

#include <cpuinfo.h>

#include "hwy/targets.h"

namespace {

[[gnu::constructor]] void HideWhatIsNewerThanAvx2() {
  if (!cpuinfo_initialize()) return;
  // XNNPACK takes nothing else of AVX-512 where this is missing.
  cpuinfo_isa.avx512f = false;
  cpuinfo_isa.avx512vnni = false;
  cpuinfo_isa.avxvnni = false;
  // Highway numbers newer targets lower.
  hwy::DisableTargets(HWY_AVX2 - 1);
}

}  // namespace
