#pragma once

#include <cstdint>

namespace cria_test {

// The request of this thread to operator new that fails, including requests by the library: 1 is
// the next one, 0 none. Every request counts it down. A program that sets it links failing_new.cc.
extern thread_local uint64_t failing_request;

}  // namespace cria_test
