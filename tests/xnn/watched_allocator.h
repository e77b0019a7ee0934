#pragma once

#include <cstddef>

namespace cria::xnn {

// Initializes XNNPACK with an allocator that tells `note` of every request, by the name of the
// allocator's function. True if it is the first to initialize it: XNNPACK keeps the first allocator
// for the whole process.
bool WatchXnnpackAllocations(void (*note)(const char* function, size_t bytes));

}  // namespace cria::xnn
