#include "cli/terminal/terminal.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "support/sleeping_thread.h"

namespace cria::cli {
namespace {

TEST(InterruptGuard, TurnsCtrlCIntoAFlag) {
  const InterruptGuard guard;
  EXPECT_FALSE(guard.interrupted());
  std::raise(SIGINT);
  EXPECT_TRUE(guard.interrupted());
  EXPECT_TRUE(guard.flag()->load());
}

TEST(InterruptGuard, ForgetsAnEarlierCtrlC) {
  {
    const InterruptGuard guard;
    std::raise(SIGINT);
  }
  const InterruptGuard next;
  EXPECT_FALSE(next.interrupted());
}

// A terminal or a pipe that is full makes a write wait.
TEST(InterruptGuard, AWriteThatWaitsGoesOnAfterCtrlC) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK), 0);
  std::array<char, 4096> bytes = {};
  while (write(ends[1], bytes.data(), bytes.size()) > 0) {
  }
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);

  const InterruptGuard guard;
  const pthread_t writer = pthread_self();
  const pid_t writer_id = support::ThisThread();
  std::thread reader([&] {
    support::AwaitSleep(writer_id);
    pthread_kill(writer, SIGINT);
    support::Await([&] { return guard.interrupted() && support::IsAsleep(writer_id); });
    while (read(ends[0], bytes.data(), bytes.size()) > 0) {
    }
  });
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  reader.join();
  EXPECT_TRUE(guard.interrupted());
  for (const int end : ends) close(end);
}

TEST(InterruptGuardDeathTest, GivesCtrlCBack) {
  {
    const InterruptGuard guard;
  }
  EXPECT_EXIT(std::raise(SIGINT), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace cria::cli
