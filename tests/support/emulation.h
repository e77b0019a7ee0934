#pragma once

#include <cstddef>
#include <cstdlib>

namespace cria::support {

// Whether ctest runs this program under qemu-user, tens of times slower than without. Tests then
// take fewer tokens and combinations, but skip nothing whose result depends on the processor.
inline bool IsEmulated() { return std::getenv("QEMU_CPU") != nullptr; }

// The number of threads for tests that are not about threads: under emulation, a waiting thread
// takes time from the others.
inline size_t UsualThreads() { return IsEmulated() ? 1 : 2; }

}  // namespace cria::support
