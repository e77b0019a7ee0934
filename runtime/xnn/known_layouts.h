#pragma once

#include <span>
#include <string_view>

#include "xnn/packing.h"

namespace cria::xnn {

// Layouts of known processors, so that another computer can pack weights for them. They are those
// of Debian 13's XNNPACK; tests/emulation compares them with the packing on each core.
struct KnownLayout {
  std::string_view processor;  // Named as by GCC's -mcpu and by QEMU.
  SchemeFingerprints fingerprints;
};
std::span<const KnownLayout> KnownLayouts();

// Null if the processor is not known.
const KnownLayout* FindKnownLayout(std::string_view processor);

}  // namespace cria::xnn
