#include "c_api/failing_new.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace cria_test {

thread_local uint64_t failing_request = 0;

}  // namespace cria_test

// These stand in for the C++ library's.
void* operator new(size_t bytes) {
  uint64_t& request = cria_test::failing_request;
  if (request != 0 && --request == 0) throw std::bad_alloc();
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
