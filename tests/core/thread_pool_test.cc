#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace cria {
namespace {

TEST(ThreadPoolTest, EveryIndexRunsExactlyOnce) {
  for (size_t num_threads = 1; num_threads <= 4; ++num_threads) {
    const auto pool = ThreadPool::Create(num_threads);
    ASSERT_TRUE(pool) << pool.error().message();
    EXPECT_EQ(pool->num_threads(), num_threads);
    for (const size_t count : {0, 1, 2, 3, 4, 5, 7, 64, 1000, 4099}) {
      std::vector<std::atomic<int>> runs(count + 1);
      pool->ParallelFor(count, [&](size_t index) { ++runs[std::min(index, count)]; });
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(runs[i], 1) << num_threads << " " << count;
      EXPECT_EQ(runs[count], 0) << "an index outside the count";
    }
  }
}

TEST(ThreadPoolTest, ResultsAreVisibleAfterwardsWithoutAtomics) {
  const auto pool = ThreadPool::Create(3);
  ASSERT_TRUE(pool);
  std::vector<size_t> values(513);
  for (size_t round = 0; round < 50; ++round) {
    pool->ParallelFor(values.size(), [&](size_t index) { values[index] += index * round; });
  }
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i * (49 * 50 / 2));
}

TEST(ThreadPoolTest, NoMoreThreadsThanAskedFor) {
  for (size_t num_threads = 1; num_threads <= 3; ++num_threads) {
    const auto pool = ThreadPool::Create(num_threads);
    ASSERT_TRUE(pool);
    std::vector<std::thread::id> ids(200);
    pool->ParallelFor(ids.size(), [&](size_t index) { ids[index] = std::this_thread::get_id(); });
    EXPECT_LE(std::set(ids.begin(), ids.end()).size(), num_threads);
  }
}

TEST(ThreadPoolTest, ASingleThreadIsTheCaller) {
  const auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->handle(), nullptr);
  const std::thread::id caller = std::this_thread::get_id();
  pool->ParallelFor(5, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ThreadPoolTest, HandsOnWhatATaskThrows) {
  for (size_t num_threads = 1; num_threads <= 3; ++num_threads) {
    const auto pool = ThreadPool::Create(num_threads);
    ASSERT_TRUE(pool);
    for (const size_t from : {size_t{0}, size_t{150}}) {
      std::atomic<size_t> num_done = 0;
      const auto task = [&](size_t index) {
        if (index >= from) throw std::bad_alloc();
        ++num_done;
      };
      EXPECT_THROW(pool->ParallelFor(200, task), std::bad_alloc);
      EXPECT_EQ(num_done, from);
    }
    size_t runs = 0;
    pool->ParallelFor(1, [&](size_t) { ++runs; });
    EXPECT_EQ(runs, 1u);
  }
}

TEST(ThreadPoolTest, TakesConstAndTemporaryTasks) {
  const auto pool = ThreadPool::Create(2);
  ASSERT_TRUE(pool);
  std::atomic<size_t> sum = 0;
  const auto task = [&sum](size_t index) { sum += index; };
  pool->ParallelFor(10, task);
  pool->ParallelFor(10, [&sum](size_t index) { sum += index; });
  EXPECT_EQ(sum, 90u);
}

TEST(ThreadPoolTest, WorksAfterBeingMoved) {
  auto pool = ThreadPool::Create(2);
  ASSERT_TRUE(pool);
  const ThreadPool moved = std::move(*pool);
  std::atomic<size_t> runs = 0;
  moved.ParallelFor(100, [&](size_t) { ++runs; });
  EXPECT_EQ(runs, 100u);
}

TEST(ThreadPoolTest, SubnormalResultsAreTheSameOnEveryThreadCount) {
  std::vector<std::vector<float>> results;
  for (size_t num_threads = 1; num_threads <= 3; ++num_threads) {
    const auto pool = ThreadPool::Create(num_threads);
    ASSERT_TRUE(pool);
    std::vector<float> values(64);
    volatile float tiny = 0x1p-126f;
    pool->ParallelFor(values.size(),
                      [&](size_t index) { values[index] = tiny / static_cast<float>(index + 1); });
    results.push_back(values);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(ThreadPoolTest, NumbersOutsideTheRangeAreErrors) {
  for (const size_t num_threads : {size_t{0}, size_t{1025}, SIZE_MAX}) {
    const auto pool = ThreadPool::Create(num_threads);
    ASSERT_FALSE(pool);
    EXPECT_EQ(pool.error().code(), ErrorCode::kUsage);
    EXPECT_NE(pool.error().message().find("outside 1 to 1024"), std::string::npos);
  }
}

}  // namespace
}  // namespace cria
