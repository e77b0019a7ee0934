#include "server/work/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace cria::server {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// Keeps a thread of a queue busy until it is opened.
class Gate {
 public:
  WorkQueue::Job Job() {
    return {.run = [this] {
      entered_.count_down();
      opened_.wait();
    }};
  }
  void AwaitEntered() { entered_.wait(); }
  void Open() { opened_.count_down(); }

 private:
  std::latch entered_{1};
  std::latch opened_{1};
};

TEST(WorkQueueTest, RunsJobsInTheirOrder) {
  std::vector<int> order;
  std::latch done(3);
  Gate gate;
  WorkQueue queue(1, 10);
  ASSERT_TRUE(queue.Submit(gate.Job()));
  gate.AwaitEntered();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue.Submit({.run = [&, i] {
      order.push_back(i);
      done.count_down();
    }}));
  }
  EXPECT_EQ(queue.figures().waiting, 3u);
  EXPECT_EQ(queue.figures().running, 1u);
  gate.Open();
  done.wait();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(WorkQueueTest, RunsAsManyJobsAtOnceAsItHasThreads) {
  std::latch all(3);
  std::latch done(3);
  WorkQueue queue(3, 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue.Submit({.run = [&] {
      all.arrive_and_wait();
      done.count_down();
    }}));
  }
  done.wait();
}

TEST(WorkQueueTest, ThreadsWithoutAJobHelp) {
  constexpr int kSteps = 100;
  std::atomic<int> next = 0;
  std::vector<std::atomic<int>> calls(kSteps);
  std::latch all(3);
  std::promise<void> done;
  WorkQueue queue(3, 0);
  ASSERT_TRUE(queue.Submit({.run = [&] {
    queue.Share([&] {
      const int i = next++;
      if (i >= kSteps) return false;
      // The first steps end only when all threads are in one.
      if (i < 3) all.arrive_and_wait();
      ++calls[static_cast<size_t>(i)];
      return true;
    });
    EXPECT_GE(next, kSteps);
    done.set_value();
  }}));
  done.get_future().wait();
  for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
}

TEST(WorkQueueTest, JobsComeBeforeWhatIsShared) {
  Gate gate;
  std::atomic<bool> has_run = false;
  std::promise<void> done;
  WorkQueue queue(2, 2);
  ASSERT_TRUE(queue.Submit(gate.Job()));
  gate.AwaitEntered();
  ASSERT_TRUE(queue.Submit({.run = [&] {
    // The other thread takes the job that waits when it is free, and then helps.
    ASSERT_TRUE(queue.Submit({.run = [&] { has_run = true; }}));
    gate.Open();
    queue.Share([&] { return !has_run; });
    done.set_value();
  }}));
  done.get_future().wait();
  EXPECT_TRUE(has_run);
}

TEST(WorkQueueTest, RefusesWhatIsBeyondItsBound) {
  Gate gate;
  WorkQueue queue(1, 2);
  ASSERT_TRUE(queue.Submit(gate.Job()));
  gate.AwaitEntered();
  EXPECT_TRUE(queue.Submit({.run = [] {}}));
  EXPECT_TRUE(queue.Submit({.run = [] {}}));
  EXPECT_FALSE(queue.Submit({.run = [] { ADD_FAILURE(); }}));
  EXPECT_EQ(queue.figures().refused, 1u);
  EXPECT_EQ(queue.figures().accepted, 3u);
  gate.Open();
}

TEST(WorkQueueTest, DropsJobsNobodyWaitsFor) {
  Gate gate;
  WorkQueue queue(1, 2);
  ASSERT_TRUE(queue.Submit(gate.Job()));
  gate.AwaitEntered();
  std::atomic<bool> gone = false;
  const auto held = std::make_shared<int>();
  ASSERT_TRUE(queue.Submit({.run = [held] { ADD_FAILURE(); }, .gone = &gone}));
  ASSERT_TRUE(queue.Submit({.run = [held] { ADD_FAILURE(); }, .gone = &gone}));
  gone = true;
  // Their places are free, and what they held is freed.
  std::promise<void> ran;
  ASSERT_TRUE(queue.Submit({.run = [&] { ran.set_value(); }}));
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(queue.figures().abandoned, 2u);
  gate.Open();
  ran.get_future().wait();
}

TEST(WorkQueueTest, DropsAnAbandonedJobAtItsTurn) {
  Gate gate;
  WorkQueue queue(1, 2);
  ASSERT_TRUE(queue.Submit(gate.Job()));
  gate.AwaitEntered();
  const std::atomic<bool> gone = true;
  std::promise<void> ran;
  ASSERT_TRUE(queue.Submit({.run = [] { ADD_FAILURE(); }, .gone = &gone}));
  ASSERT_TRUE(queue.Submit({.run = [&] { ran.set_value(); }}));
  gate.Open();
  ran.get_future().wait();
  EXPECT_EQ(queue.figures().abandoned, 1u);
}

TEST(WorkQueueTest, CloseWaitsForRunningJobsAndRefusesOthers) {
  Gate gate;
  WorkQueue queue(1, 5);
  ASSERT_TRUE(queue.Submit(gate.Job()));
  gate.AwaitEntered();
  std::promise<void> refused;
  ASSERT_TRUE(queue.Submit({.run = [] { ADD_FAILURE(); }, .refuse = [&] { refused.set_value(); }}));
  std::thread closing([&] { queue.Close(std::chrono::hours(1)); });
  refused.get_future().wait();
  EXPECT_FALSE(queue.Submit({.run = [] { ADD_FAILURE(); }}));
  EXPECT_FALSE(queue.ends());
  gate.Open();
  closing.join();
  EXPECT_FALSE(queue.ends());
}

TEST(WorkQueueTest, AfterTheGraceJobsAreToldToEnd) {
  std::latch entered(1);
  WorkQueue queue(1, 5);
  ASSERT_TRUE(queue.Submit({.run = [&] {
    entered.count_down();
    while (!queue.ends()) std::this_thread::yield();
  }}));
  entered.wait();
  queue.Close(milliseconds(1));
  EXPECT_TRUE(queue.ends());
  EXPECT_EQ(queue.figures().running, 0u);
}

TEST(WorkQueueTest, ManyThreadsSubmit) {
  std::atomic<int> ran = 0;
  std::atomic<int> taken = 0;
  {
    WorkQueue queue(2, 8);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 500; ++k) {
          if (queue.Submit({.run = [&] { ++ran; }, .refuse = [&] { ++ran; }})) ++taken;
        }
      });
    }
    threads.clear();
    queue.Close(std::chrono::hours(1));
  }
  EXPECT_EQ(ran, taken);
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace cria::server
