#include "cli/terminal.h"

#include <gtest/gtest.h>

#include <csignal>

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

TEST(InterruptGuardDeathTest, GivesCtrlCBack) {
  {
    const InterruptGuard guard;
  }
  EXPECT_EXIT(std::raise(SIGINT), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace cria::cli
