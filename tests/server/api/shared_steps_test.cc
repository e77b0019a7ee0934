#include "server/api/shared_steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <new>
#include <vector>

namespace cria::server {
namespace {

// Runs the steps in a job of a queue with two threads.
Status RunInJob(size_t count, const std::function<Status(size_t)>& run) {
  std::promise<Status> status;
  WorkQueue work(2, 1);
  EXPECT_TRUE(
      work.Submit({.run = [&] { status.set_value(RunShared(work, count, run)); }, .refuse = {}}));
  return status.get_future().get();
}

TEST(RunSharedTest, EachStepRunsOnceAndTwoAtTheSameTime) {
  std::vector<std::atomic<int>> num_runs(20);
  std::atomic<bool> has_second = false;
  EXPECT_TRUE(RunInJob(num_runs.size(), [&](size_t i) -> Status {
    ++num_runs[i];
    if (i == 1) {
      has_second = true;
      has_second.notify_all();
    }
    if (i == 0) has_second.wait(false);
    return {};
  }));
  for (const std::atomic<int>& count : num_runs) EXPECT_EQ(count, 1);
  EXPECT_TRUE(RunInJob(0, [](size_t) -> Status { return Fail(ErrorCode::kUsage, "none"); }));
}

TEST(RunSharedTest, TheFirstErrorEndsTheRest) {
  std::atomic<size_t> num_runs = 0;
  const Status failed = RunInJob(1000, [&](size_t i) -> Status {
    ++num_runs;
    if (i >= 2) return Fail(ErrorCode::kCancelled, "stopped");
    return {};
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kCancelled);
  // Another thread may have been in a step of its own.
  EXPECT_LE(num_runs, 4u);
  const Status without = RunInJob(3, [](size_t) -> Status { throw std::bad_alloc(); });
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code(), ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace cria::server
