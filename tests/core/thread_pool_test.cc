#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/exclusion.h"
#include "core/platform_threads.h"
#include "core/worker_gate.h"
#include "support/sleeping_thread.h"

namespace cria {
namespace {

using std::chrono::milliseconds;

// Starts all threads, even if this machine cannot run them at once.
Result<ThreadPool> CreatePool(size_t num_threads) {
  return ThreadPool::Create(num_threads, num_threads);
}

TEST(ThreadPoolTest, EveryIndexRunsExactlyOnce) {
  for (size_t num_threads = 1; num_threads <= 4; ++num_threads) {
    const auto pool = CreatePool(num_threads);
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
  const auto pool = CreatePool(3);
  ASSERT_TRUE(pool);
  std::vector<size_t> values(513);
  for (size_t round = 0; round < 50; ++round) {
    pool->ParallelFor(values.size(), [&](size_t index) { values[index] += index * round; });
  }
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i * (49 * 50 / 2));
}

TEST(ThreadPoolTest, NoMoreThreadsThanAskedFor) {
  for (size_t num_threads = 1; num_threads <= 3; ++num_threads) {
    const auto pool = CreatePool(num_threads);
    ASSERT_TRUE(pool);
    std::vector<std::thread::id> ids(200);
    pool->ParallelFor(ids.size(), [&](size_t index) { ids[index] = std::this_thread::get_id(); });
    EXPECT_LE(std::set(ids.begin(), ids.end()).size(), num_threads);
  }
}

TEST(ThreadPoolTest, ASingleThreadIsTheCaller) {
  const auto pool = CreatePool(1);
  ASSERT_TRUE(pool);
  const std::thread::id caller = std::this_thread::get_id();
  pool->ParallelFor(5, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ThreadPoolTest, ALimitLeavesOutThreads) {
  const auto pool = CreatePool(3);
  ASSERT_TRUE(pool);
  const std::thread::id caller = std::this_thread::get_id();
  for (const size_t limit : {1, 2, 1, 3}) {
    pool->LimitThreads(limit);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::thread::id> ids(200);
      pool->ParallelFor(ids.size(), [&](size_t index) { ids[index] = std::this_thread::get_id(); });
      std::set<std::thread::id> used(ids.begin(), ids.end());
      used.insert(caller);
      EXPECT_LE(used.size(), limit);
      EXPECT_FALSE(used.contains(std::thread::id())) << "an index did not run";
    }
  }
  EXPECT_EQ(pool->num_threads(), 3u);
}

TEST(ThreadPoolTest, HandsOnWhatATaskThrows) {
  for (size_t num_threads = 1; num_threads <= 3; ++num_threads) {
    const auto pool = CreatePool(num_threads);
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
  const auto pool = CreatePool(2);
  ASSERT_TRUE(pool);
  std::atomic<size_t> sum = 0;
  const auto task = [&sum](size_t index) { sum += index; };
  pool->ParallelFor(10, task);
  pool->ParallelFor(10, [&sum](size_t index) { sum += index; });
  EXPECT_EQ(sum, 90u);
}

TEST(ThreadPoolTest, WorksAfterBeingMoved) {
  auto pool = CreatePool(2);
  ASSERT_TRUE(pool);
  const ThreadPool moved = std::move(*pool);
  std::atomic<size_t> runs = 0;
  moved.ParallelFor(100, [&](size_t) { ++runs; });
  EXPECT_EQ(runs, 100u);
}

TEST(ThreadPoolTest, SubnormalResultsAreTheSameOnEveryThreadCount) {
  std::vector<std::vector<float>> results;
  for (size_t num_threads = 1; num_threads <= 3; ++num_threads) {
    const auto pool = CreatePool(num_threads);
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

TEST(ThreadPoolTest, TasksLearnWhichThreadRunsThem) {
  for (size_t num_threads = 1; num_threads <= 4; ++num_threads) {
    const auto pool = CreatePool(num_threads);
    ASSERT_TRUE(pool);
    std::vector<std::atomic<bool>> is_busy(num_threads);
    std::vector<std::set<std::thread::id>> ids(num_threads);
    pool->ParallelFor(500, [&](size_t, size_t thread) {
      ASSERT_LT(thread, num_threads);
      EXPECT_FALSE(is_busy[thread].exchange(true)) << "two tasks at once have one thread's number";
      ids[thread].insert(std::this_thread::get_id());
      is_busy[thread] = false;
    });
    for (const auto& seen : ids) EXPECT_LE(seen.size(), 1u);
    EXPECT_TRUE(ids[0].empty() || ids[0].contains(std::this_thread::get_id()));
  }
}

// Without workers, `num_threads` is still what was asked for.
TEST(ThreadPoolTest, StartsNoMoreThreadsThanCanRun) {
  const auto pool = ThreadPool::Create(4, 1);
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->num_threads(), 4u);
  const std::thread::id caller = std::this_thread::get_id();
  size_t runs = 0;
  pool->ParallelFor(100, [&](size_t, size_t thread) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(thread, 0u);
    ++runs;
  });
  EXPECT_EQ(runs, 100u);
  EXPECT_TRUE(ThreadPool::Create(2, 0));
  EXPECT_TRUE(ThreadPool::Create(2, SIZE_MAX));
}

TEST(ThreadPoolTest, WorkersHelp) {
  const auto pool = CreatePool(2);
  ASSERT_TRUE(pool);
  // Each of two tasks waits for the other, so that one thread cannot run both.
  std::atomic<int> num_begun = 0;
  pool->ParallelFor(2, [&](size_t) {
    ++num_begun;
    support::Await([&] { return num_begun == 2; });
  });
}

// Workers spin, sleep, are called while they fall asleep, and are late, by turns.
TEST(ThreadPoolTest, SurvivesPausesOfEveryLength) {
  for (const size_t num_threads : {2, 3, 5}) {
    const auto pool = CreatePool(num_threads);
    ASSERT_TRUE(pool);
    std::vector<size_t> values(67);
    size_t total = 0;
    for (size_t round = 0; round < 400; ++round) {
      const size_t count = round % values.size() + 1;
      total += count;
      pool->ParallelFor(count, [&](size_t index) { ++values[index]; });
      if (round % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round * 3));
    }
    size_t sum = 0;
    for (const size_t value : values) sum += value;
    EXPECT_EQ(sum, total);
  }
}

// A task that takes long makes its worker late; what follows is done without it, or with it.
TEST(ThreadPoolTest, LateWorkersLoseNothing) {
  const auto pool = CreatePool(3);
  ASSERT_TRUE(pool);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 10; ++round) {
    std::vector<size_t> values(30);
    for (int repetition = 0; repetition < 20; ++repetition) {
      pool->ParallelFor(values.size(), [&](size_t index) {
        if (repetition == 0 && std::this_thread::get_id() != caller) {
          std::this_thread::sleep_for(milliseconds(2));
        }
        values[index] += index;
      });
    }
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], 20 * i);
  }
}

TEST(ThreadPoolTest, CallersMayTakeTurns) {
  const auto pool = CreatePool(3);
  ASSERT_TRUE(pool);
  std::vector<size_t> values(100);
  for (int turn = 0; turn < 20; ++turn) {
    std::thread([&] {
      for (int round = 0; round < 10; ++round) {
        pool->ParallelFor(values.size(), [&](size_t index) { ++values[index]; });
      }
    }).join();
  }
  for (const size_t value : values) ASSERT_EQ(value, 200u);
}

TEST(ThreadPoolTest, PoolsMayWorkByTurnsAndEndWithoutWork) {
  for (int round = 0; round < 20; ++round) {
    const auto first = CreatePool(2);
    const auto second = CreatePool(3);
    const auto idle = CreatePool(2);
    ASSERT_TRUE(first && second && idle);
    std::atomic<size_t> runs = 0;
    for (int turn = 0; turn < 10; ++turn) {
      (turn % 2 == 0 ? first : second)->ParallelFor(9, [&](size_t) { ++runs; });
    }
    EXPECT_EQ(runs, 90u);
  }
}

TEST(ThreadPoolTest, TheCallersFloatingPointModeStays) {
  const auto pool = CreatePool(2);
  ASSERT_TRUE(pool);
  volatile float tiny = 0x1p-126f;
  const float before = tiny / 4;
  pool->ParallelFor(8, [](size_t) {});
  EXPECT_EQ(tiny / 4, before);
}

TEST(ExclusionTest, DoublesUpToItsBoundAndIsForgotten) {
  Exclusion exclusion(milliseconds(8));
  Exclusion::Clock::time_point now = {};
  EXPECT_FALSE(exclusion.Covers(now));
  exclusion.Extend(now, milliseconds(3));
  EXPECT_TRUE(exclusion.Covers(now + milliseconds(2)));
  EXPECT_FALSE(exclusion.Covers(now + milliseconds(3)));
  // A short delay counts as twice the exclusion before it, a long one as itself.
  now += milliseconds(10);
  exclusion.Extend(now, milliseconds(1));
  EXPECT_TRUE(exclusion.Covers(now + milliseconds(5)));
  EXPECT_FALSE(exclusion.Covers(now + milliseconds(6)));
  exclusion.AddService(milliseconds(7));
  now += milliseconds(10);
  exclusion.Extend(now, milliseconds(1));
  EXPECT_TRUE(exclusion.Covers(now + milliseconds(11)));
  for (int i = 0; i < 20; ++i) exclusion.Extend(now, milliseconds(1));
  EXPECT_TRUE(exclusion.Covers(now + milliseconds(249)));
  EXPECT_FALSE(exclusion.Covers(now + milliseconds(250)));
  exclusion.AddService(milliseconds(5));
  exclusion.AddService(milliseconds(3));
  now += milliseconds(300);
  exclusion.Extend(now, milliseconds(1));
  EXPECT_FALSE(exclusion.Covers(now + milliseconds(1)));
}

TEST(IndexRangeTest, GivesEachIndexOnceFromBothEnds) {
  IndexRange range;
  size_t index = 0;
  EXPECT_FALSE(range.TakeFirst(index));
  EXPECT_FALSE(range.TakeLast(index));
  range.Set(5, 8);
  EXPECT_TRUE(range.TakeFirst(index));
  EXPECT_EQ(index, 5u);
  EXPECT_TRUE(range.TakeLast(index));
  EXPECT_EQ(index, 7u);
  EXPECT_TRUE(range.TakeLast(index));
  EXPECT_EQ(index, 6u);
  EXPECT_FALSE(range.TakeFirst(index));
  range.Set(IndexRange::kMaxIndices - 1, IndexRange::kMaxIndices);
  EXPECT_TRUE(range.TakeFirst(index));
  EXPECT_EQ(index, IndexRange::kMaxIndices - 1);
  EXPECT_FALSE(range.TakeLast(index));
}

TEST(MaxRunningThreadsTest, FollowsTheAffinityMask) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_GE(platform::MaxRunningThreads(), 1u);
  EXPECT_LE(platform::MaxRunningThreads(), static_cast<size_t>(CPU_COUNT(&allowed)));
  // In another thread, so that only its mask changes.
  std::thread([&] {
    const int processor = sched_getcpu();
    if (processor < 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(processor), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(platform::MaxRunningThreads(), 1u);
    EXPECT_EQ(platform::CurrentProcessor(), processor);
  }).join();
}

TEST(LeaveProcessorTest, MovesTheThreadAndKeepsItsMask) {
  std::thread([] {
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    const int processor = sched_getcpu();
    if (processor < 0) return;
    EXPECT_EQ(platform::LeaveProcessor(processor), CPU_COUNT(&before) > 1);
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));

    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(processor), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_FALSE(platform::LeaveProcessor(processor));
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&one, &after));
  }).join();
}

TEST(ThreadUsageTest, CountsProcessorTimeOfThisThread) {
  const platform::ThreadUsage before = platform::ReadThreadUsage();
  const auto begin = std::chrono::steady_clock::now();
  support::Await(
      [&] { return platform::ReadThreadUsage().processor_time > before.processor_time; });
  const platform::ThreadUsage after = platform::ReadThreadUsage();
  // A thread has at most the time that passes, which is counted in steps of up to 10 ms.
  EXPECT_LE(after.processor_time - before.processor_time,
            std::chrono::steady_clock::now() - begin + milliseconds(20));
  EXPECT_GE(after.preemptions, before.preemptions);
}

}  // namespace
}  // namespace cria
