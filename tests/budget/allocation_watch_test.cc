// What ZeroAllocation relies on: the watch sees every allocation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "budget/visible_allocations.h"
#include "support/allocation_watch.h"
#include "support/emulation.h"
#include "xnn/packing.h"

namespace cria {
namespace {

using support::AllocationWatch;
using testing::HasSubstr;

// The compiler takes a pair of malloc and free away unless the result goes somewhere.
void* volatile taken = nullptr;

TEST(AllocationWatch, SeesEveryFunction) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  const size_t page = static_cast<size_t>(getpagesize());
  void* const mapped =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::vector<std::pair<const char*, std::function<void()>>> requests = {
      {"malloc of", [] { taken = std::malloc(11); }},
      {"calloc of", [] { taken = std::calloc(3, 7); }},
      {"realloc of", [] { taken = std::realloc(taken, 5000); }},
      {"reallocarray of", [] { taken = reallocarray(nullptr, 3, 5); }},
      {"aligned_alloc of", [] { taken = std::aligned_alloc(64, 128); }},
      {"posix_memalign of",
       [] {
         void* place = nullptr;
         if (posix_memalign(&place, 64, 128) == 0) taken = place;
       }},
      {"malloc of", [] { taken = new int(3); }},
      {"malloc of", [] { taken = new std::string(100, 'x'); }},
      {"posix_memalign of", [] { taken = operator new(64, std::align_val_t(64)); }},
      {"mmap of",
       [page] { taken = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }},
      {"mremap of", [&] { taken = mremap(mapped, page, 2 * page, MREMAP_MAYMOVE); }},
      {"sbrk of", [page] { taken = sbrk(static_cast<intptr_t>(page)); }},
  };
  // By no function of the library; an emulator's address space grows by itself.
  if (!support::IsEmulated()) {
    requests.emplace_back("bytes more of address space", [] {
      taken = reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, size_t{1} << 20, PROT_READ,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    });
  }
  for (const auto& [words, request] : requests) {
    AllocationWatch watch("asking for memory");
    request();
    const std::string report = watch.Finish();
    EXPECT_THAT(report, HasSubstr(words));
    EXPECT_THAT(report, HasSubstr("asking for memory: "));
  }
}

TEST(AllocationWatch, SeesOtherThreads) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  std::atomic<int> step = 0;
  std::thread other([&] {
    while (step != 1) std::this_thread::yield();
    taken = std::malloc(1234);
    step = 2;
    while (step != 3) std::this_thread::yield();
  });
  AllocationWatch watch("another thread");
  step = 1;
  while (step != 2) std::this_thread::yield();
  const std::string report = watch.Finish();
  step = 3;
  other.join();
  EXPECT_THAT(report, HasSubstr("the first was malloc of 1234 bytes"));
}

TEST(AllocationWatch, SeesXnnpack) {
  CRIA_NEEDS_ALLOCATIONS_TO_BE_SEEN();
  AllocationWatch watch("an operator of XNNPACK");
  const auto bytes =
      xnn::PackedBytes({.output_channels = 32, .input_channels = 32, .padded_input_channels = 32});
  EXPECT_THAT(watch.Finish(), HasSubstr("xnn_allocator."));
  EXPECT_TRUE(bytes);
}

TEST(AllocationWatch, SeesNothingWhereThereIsNothing) {
  const std::string text(1000, 'x');
  AllocationWatch watch("looking");
  EXPECT_EQ(text.size(), 1000u);
  EXPECT_EQ(watch.Finish(), "");
}

}  // namespace
}  // namespace cria
