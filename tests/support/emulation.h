#pragma once

#include <cstdlib>

namespace cria::support {

// True where ctest runs this program under qemu-user, tens of times slower than the machine is.
// Tests then take fewer tokens and combinations, but leave nothing out that a processor could do
// otherwise.
inline bool IsEmulated() { return std::getenv("QEMU_CPU") != nullptr; }

}  // namespace cria::support
