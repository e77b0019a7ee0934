#pragma once

#include <gtest/gtest.h>

#include "support/allocation_watch.h"

#if CRIA_ALLOCATIONS_ARE_SEEN
#define CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN()
#else
#define CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN() \
  GTEST_SKIP() << "a sanitizer owns the heap, or the C library is not glibc"
#endif
