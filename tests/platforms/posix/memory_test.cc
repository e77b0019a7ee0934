#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "core/platform.h"
#include "core/temporary_file.h"
#include "support/mebibyte.h"
#include "support/sanitizers.h"

namespace cria::platform {
namespace {

using support::kMebibyte;

TEST(PageBlockTest, IsZeroedAlignedAndWritable) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{100'001}}) {
    auto block = PageBlock::Allocate(bytes);
    ASSERT_TRUE(block) << block.error().message();
    const std::span<std::byte> memory = block->bytes();
    ASSERT_EQ(memory.size(), bytes);
    const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % page_bytes, 0u);
    EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte value) { return value == std::byte{}; }));
    std::ranges::fill(memory, std::byte{0xa5});
  }
}

TEST(PageBlockTest, IsMadeResidentWithoutChangingIt) {
  constexpr size_t kBytes = size_t{32} << 20;
  auto block = PageBlock::Allocate(kBytes);
  ASSERT_TRUE(block);
  block->bytes()[5000] = std::byte{7};
  const uint64_t before = ReadMemoryUsage().private_bytes;
  MakeResident(block->bytes().subspan(1, kBytes / 2));
  MakeResident({});
  const uint64_t after = ReadMemoryUsage().private_bytes;
  EXPECT_EQ(block->bytes()[5000], std::byte{7});
  EXPECT_EQ(block->bytes()[5001], std::byte{0});
  // Systems before Linux 5.14 cannot; then nothing happens.
  if (after - before > kBytes / 4) {
    EXPECT_NEAR(static_cast<double>(after - before), kBytes / 2.0, kBytes / 16.0);
  }
}

TEST(PageBlockTest, NothingIsNoMemory) {
  const auto block = PageBlock::Allocate(0);
  ASSERT_TRUE(block);
  EXPECT_TRUE(block->bytes().empty());
}

TEST(PageBlockTest, MovingKeepsTheMemoryInPlace) {
  auto block = PageBlock::Allocate(64);
  ASSERT_TRUE(block);
  std::byte* const where = block->bytes().data();
  PageBlock moved = std::move(*block);
  EXPECT_EQ(moved.bytes().data(), where);
  EXPECT_TRUE(block->bytes().empty());
  moved.bytes()[63] = std::byte{1};
}

TEST(PageBlockTest, TooMuchIsAnErrorWithTheFigure) {
  for (const uint64_t bytes : {uint64_t{1} << 60, uint64_t{SIZE_MAX}, UINT64_MAX}) {
    const auto block = PageBlock::Allocate(bytes);
    ASSERT_FALSE(block);
    EXPECT_EQ(block.error().code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(block.error().message().find(std::to_string(bytes)), std::string::npos);
    EXPECT_EQ(block.error().remedy().kind, RemedyKind::kLessContext);
  }
}

TEST(MemoryUsageTest, PrivatePagesCountOnceTouched) {
  constexpr size_t kBytes = 64 * kMebibyte;
  auto block = PageBlock::Allocate(kBytes);
  ASSERT_TRUE(block);
  const MemoryUsage before = ReadMemoryUsage();
  std::memset(block->bytes().data(), 1, kBytes);
  const MemoryUsage after = ReadMemoryUsage();
  // The kernel's counters may lag by a few dozen pages per thread.
  EXPECT_GE(after.private_bytes, before.private_bytes + kBytes - kMebibyte);
  EXPECT_LT(after.private_bytes, before.private_bytes + kBytes + 8 * kMebibyte);
  EXPECT_GE(after.peak_resident_bytes, kBytes);
  EXPECT_GE(after.major_faults, before.major_faults);
}

TEST(MemoryUsageTest, AddressSpaceCountsUntouchedMappings) {
  constexpr size_t kBytes = 256 * kMebibyte;
  const MemoryUsage before = ReadMemoryUsage();
  EXPECT_GE(before.virtual_bytes, before.private_bytes + before.file_mapped_bytes);
  EXPECT_GE(before.peak_virtual_bytes, before.virtual_bytes);
  MemoryUsage during;
  {
    const auto block = PageBlock::Allocate(kBytes);
    ASSERT_TRUE(block);
    during = ReadMemoryUsage();
  }
  const MemoryUsage after = ReadMemoryUsage();
  EXPECT_EQ(during.virtual_bytes, before.virtual_bytes + kBytes);
  EXPECT_EQ(after.virtual_bytes, before.virtual_bytes);
  EXPECT_LT(during.private_bytes, before.private_bytes + kBytes / 2);
  EXPECT_GE(during.peak_virtual_bytes, during.virtual_bytes);
  EXPECT_GE(after.peak_virtual_bytes, during.virtual_bytes);
}

// By how much the address space grows while `num_threads` threads hold something from the heap.
uint64_t AddressSpaceOfThreads(int num_threads) {
  std::barrier all_hold(num_threads + 1);
  std::barrier measured(num_threads + 1);
  const uint64_t before = ReadMemoryUsage().virtual_bytes;
  std::vector<std::jthread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&] {
      void* volatile held = std::malloc(1000);
      all_hold.arrive_and_wait();
      measured.arrive_and_wait();
      std::free(held);
    });
  }
  all_hold.arrive_and_wait();
  const uint64_t during = ReadMemoryUsage().virtual_bytes;
  measured.arrive_and_wait();
  return during - before;
}

TEST(UseOneHeapTest, ThreadsReserveNoAddressSpaceForHeaps) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "a sanitizer has a heap of its own";
  constexpr int kNumThreads = 8;
  pthread_attr_t defaults;
  size_t stack_bytes = 0;
  ASSERT_EQ(pthread_attr_init(&defaults), 0);
  ASSERT_EQ(pthread_attr_getstacksize(&defaults, &stack_bytes), 0);
  pthread_attr_destroy(&defaults);
  UseOneHeap();
  // A heap of its own would take 64 MB for each thread.
  EXPECT_LT(AddressSpaceOfThreads(kNumThreads), kNumThreads * (stack_bytes + 2 * kMebibyte));
}

TEST(MemoryUsageTest, MappedFilesCountApart) {
  const std::vector<std::byte> contents(32 * kMebibyte, std::byte{1});
  const TemporaryFile temporary(contents);
  const auto file = File::Open(temporary.path());
  ASSERT_TRUE(file);
  auto mapping = file->Map(0, contents.size());
  ASSERT_TRUE(mapping);
  const MemoryUsage before = ReadMemoryUsage();
  size_t sum = 0;
  for (size_t i = 0; i < contents.size(); i += 1024)
    sum += static_cast<size_t>(mapping->bytes()[i]);
  EXPECT_EQ(sum, contents.size() / 1024);
  const MemoryUsage touched = ReadMemoryUsage();
  if (touched.file_mapped_bytes < before.file_mapped_bytes + contents.size() / 2) {
    // On tmpfs the pages are shared memory, which is neither private nor a mapped file's.
    EXPECT_LT(touched.private_bytes, before.private_bytes + 4 * kMebibyte);
    GTEST_SKIP() << "the temporary folder is not on a disk";
  }
  *mapping = FileMapping();
  const MemoryUsage released = ReadMemoryUsage();
  EXPECT_LT(released.file_mapped_bytes, touched.file_mapped_bytes - contents.size() / 2);
}

}  // namespace
}  // namespace cria::platform
