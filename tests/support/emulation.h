#pragma once

#include <cstddef>
#include <cstdlib>

namespace cria::support {

// True where ctest runs this program under qemu-user, tens of times slower than the machine is.
// Tests then take fewer tokens and combinations, but leave nothing out that a processor could do
// otherwise.
inline bool IsEmulated() { return std::getenv("QEMU_CPU") != nullptr; }

// Threads where they are not a test's subject: emulated, one that waits takes the other's time.
inline size_t UsualThreads() { return IsEmulated() ? 1 : 2; }

}  // namespace cria::support
