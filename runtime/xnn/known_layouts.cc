#include "xnn/known_layouts.h"

#include <algorithm>

namespace cria::xnn {
namespace {

// Fingerprints by scheme: kF32, kQc8w, kQb4w.
constexpr KnownLayout kKnownLayouts[] = {
    // Raspberry Pi 3 and Zero 2 W, Raspberry Pi 4: neither has dot products.
    {"cortex-a53", {0xdf4da6175a5dffca, 0xf2b80dae2c51e40b, 0x5b0638457e6f54fe}},
    {"cortex-a72", {0xdf4da6175a5dffca, 0xf2b80dae2c51e40b, 0x5b0638457e6f54fe}},
    // Raspberry Pi 5.
    {"cortex-a76", {0xdf4da6175a5dffca, 0x2fa16d827cc085b1, 0x3991cf6fdd2f4c5f}},
};

}  // namespace

std::span<const KnownLayout> KnownLayouts() { return kKnownLayouts; }

const KnownLayout* FindKnownLayout(std::string_view processor) {
  const auto* known = std::ranges::find(kKnownLayouts, processor, &KnownLayout::processor);
  return known == std::end(kKnownLayouts) ? nullptr : known;
}

}  // namespace cria::xnn
