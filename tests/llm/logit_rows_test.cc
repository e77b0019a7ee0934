#include "llm/logit_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "llm/session_fixture.h"
#include "support/sleeping_thread.h"

namespace cria {
namespace {

class LogitRowsTest : public testing::Test {
 protected:
  // Whether another session's prompt waits while `rows` exist, and is read when they are gone.
  void ExpectToHold(LogitRows rows) {
    std::atomic<pid_t> id = 0;
    std::atomic<bool> is_read = false;
    Session other(scheduler_);
    const std::jthread reader([&] {
      id = support::ThisThread();
      EXPECT_TRUE(Turn(other).Prefill(Counting(5, 50)));
      is_read = true;
    });
    support::Await([&] { return id != 0 && support::IsAsleep(id); });
    EXPECT_FALSE(is_read);
    rows.Release();
    EXPECT_TRUE(rows.empty());
    support::Await([&] { return is_read.load(); });
  }

  ScriptedModel model_{kVocabSize, 512, 16, NextOf, 2};
  Scheduler scheduler_{model_};
  Session session_{scheduler_};
};

TEST_F(LogitRowsTest, OthersGoOnWhenTheyAreReleased) {
  Turn turn(session_);
  ASSERT_TRUE(turn.Prefill(Counting(5)));
  LogitRows rows = std::move(*turn.Logits());
  ASSERT_EQ(rows.size(), 1u);
  LogitRows moved = std::move(rows);
  EXPECT_EQ(moved.front()[static_cast<size_t>(NextOf(Counting(5)))], 8.0f);
  ExpectToHold(std::move(moved));
}

// Rows of an earlier Forward must not give away the place of later ones.
TEST_F(LogitRowsTest, ThoseOfAnEarlierForwardReleaseNothing) {
  Turn turn(session_);
  ASSERT_TRUE(turn.Prefill(Counting(5)));
  LogitRows old = std::move(*turn.Logits());
  LogitRows rows = std::move(*turn.Logits());
  old.Release();
  ExpectToHold(std::move(rows));
}

}  // namespace
}  // namespace cria
