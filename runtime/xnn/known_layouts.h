#pragma once

#include <span>
#include <string_view>

#include "xnn/packing.h"

namespace cria::xnn {

// Layouts of processors that are known beforehand, so that weights can be packed for one of them
// elsewhere. They are those of Debian 13's XNNPACK; tests/emulation compares.
struct KnownLayout {
  std::string_view processor;  // As GCC's -mcpu and QEMU call it.
  SchemeFingerprints fingerprints;
};
std::span<const KnownLayout> KnownLayouts();

// Null where it is not known.
const KnownLayout* FindKnownLayout(std::string_view processor);

}  // namespace cria::xnn
