#pragma once

#include <cstdint>

namespace cria_test {

// Of this thread's requests to operator new, also by the library, which one fails; 0: none. Counts
// down to 0. A program that sets it links failing_new.cc.
extern thread_local uint64_t failing_request;

}  // namespace cria_test
