// A model that computes more slowly as its processor becomes hot. The sensors are files of the
// test, and time goes on only when the pacer sleeps or the test says so.

#include "llm/thermal_pacer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/scheduler_fixture.h"
#include "llm/scripted_clock.h"
#include "llm/tiny_engine.h"
#include "support/temporary_directory.h"
#include "support/thermal_zone.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kLimit = 75.0;

class ThermalPacerTest : public SchedulerTest {
 protected:
  void SetCelsius(double celsius) {
    support::WriteThermalZone(root_.path(), 0, "cpu-thermal",
                              std::to_string(std::lround(celsius * 1000.0)) + "\n");
  }
  void LoseSensor() { support::WriteThermalZone(root_.path(), 0, "cpu-thermal", ""); }

  ThermalOptions Options() {
    return {.max_celsius = kLimit,
            .on_slowing = [this](std::string_view sentence) { told_.emplace_back(sentence); },
            .sensor_root = root_.path(),
            .time = {.now = ScriptedClock::Now, .sleep = ScriptedClock::Advance}};
  }
  void MakePacer() {
    pacer_.emplace(Options(), platform::TemperatureSensor::Open(root_.path()),
                   ThermalPacer::Pools{&pool_, &batch_pool_});
  }

  // Runs a step of 100 ms, and returns how long the next one has to wait for it.
  milliseconds PauseAfterStep() {
    constexpr auto kStep = milliseconds(100);
    pacer_->BeginStep([] { return false; });
    ScriptedClock::Advance(kStep);
    pacer_->EndStep(kStep);
    const auto begin = ScriptedClock::Now();
    pacer_->BeginStep([] { return false; });
    return std::chrono::round<milliseconds>(ScriptedClock::Now() - begin);
  }
  // Waits until the sensors are read again, and no pause is left.
  milliseconds LaterPause() {
    ScriptedClock::Advance(ThermalPacer::kReadingPeriod);
    return PauseAfterStep();
  }
  // How many threads of the first pool share a loop.
  size_t NumThreads() const { return pacer_->figures().num_threads; }

  support::TemporaryDirectory root_;
  std::vector<std::string> told_;
  const ThreadPool pool_ = Unwrap(ThreadPool::Create(4, 1));
  const ThreadPool batch_pool_ = Unwrap(ThreadPool::Create(1));
  std::optional<ThermalPacer> pacer_;
};

TEST_F(ThermalPacerTest, NothingIsSlowedBelowTheBand) {
  SetCelsius(kLimit - ThermalPacer::kBandCelsius);
  MakePacer();
  EXPECT_FALSE(pacer_->figures().celsius);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(PauseAfterStep(), milliseconds(0));
  EXPECT_EQ(pacer_->figures().celsius, 70.0);
  EXPECT_FALSE(pacer_->figures().is_slowing);
  EXPECT_EQ(pacer_->figures().paused_seconds, 0.0);
  EXPECT_EQ(NumThreads(), 4u);
  EXPECT_TRUE(told_.empty());
}

TEST_F(ThermalPacerTest, PausesGrowUpToTheLimitAndEndWhenItCools) {
  SetCelsius(71.0);
  MakePacer();
  // The share of the time for computing is 1 - 0.75 x at the level x.
  EXPECT_EQ(PauseAfterStep(), milliseconds(18));
  EXPECT_EQ(NumThreads(), 3u);
  EXPECT_TRUE(pacer_->figures().is_slowing);
  SetCelsius(72.5);
  EXPECT_EQ(LaterPause(), milliseconds(60));
  EXPECT_EQ(NumThreads(), 3u);
  SetCelsius(74.0);
  EXPECT_EQ(LaterPause(), milliseconds(150));
  EXPECT_EQ(NumThreads(), 2u);
  for (const double celsius : {75.0, 75.1, 110.0}) {
    SetCelsius(celsius);
    EXPECT_EQ(LaterPause(), milliseconds(300)) << celsius;
  }
  EXPECT_EQ(NumThreads(), 2u);
  EXPECT_NEAR(pacer_->figures().paused_seconds, 0.018 + 0.06 + 0.15 + 3 * 0.3, 0.002);
  SetCelsius(60.0);
  EXPECT_EQ(LaterPause(), milliseconds(0));
  EXPECT_EQ(NumThreads(), 4u);
  EXPECT_FALSE(pacer_->figures().is_slowing);
  SetCelsius(80.0);
  EXPECT_EQ(LaterPause(), milliseconds(300));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("limit of 75 °C"))) << "it is said once";
}

TEST_F(ThermalPacerTest, TheSensorsAreReadOnceASecondAlsoInAPause) {
  SetCelsius(60.0);
  MakePacer();
  EXPECT_EQ(PauseAfterStep(), milliseconds(0));
  SetCelsius(80.0);
  // The last reading holds for a second.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(PauseAfterStep(), milliseconds(0));
  // A step of 10 seconds at the limit demands a pause of 30, which ends when it cools.
  ScriptedClock::Advance(seconds(10));
  pacer_->EndStep(seconds(10));
  const auto begin = ScriptedClock::Now();
  int looks = 0;
  pacer_->BeginStep([&] {
    if (++looks == 250) SetCelsius(50.0);
    return false;
  });
  const auto pause = ScriptedClock::Now() - begin;
  EXPECT_GE(pause, milliseconds(2490));
  EXPECT_LE(pause, milliseconds(3510));
}

TEST_F(ThermalPacerTest, TimeThatWentByAnywayCountsAsAPause) {
  SetCelsius(75.0);
  MakePacer();
  EXPECT_EQ(PauseAfterStep(), milliseconds(300));
  pacer_->EndStep(milliseconds(100));
  ScriptedClock::Advance(milliseconds(200));
  const auto begin = ScriptedClock::Now();
  pacer_->BeginStep([] { return false; });
  EXPECT_EQ(ScriptedClock::Now() - begin, milliseconds(100));
}

TEST_F(ThermalPacerTest, APauseEndsWhenItIsCancelled) {
  SetCelsius(75.0);
  MakePacer();
  EXPECT_EQ(PauseAfterStep(), milliseconds(300));
  pacer_->EndStep(seconds(100));
  const auto begin = ScriptedClock::Now();
  int looks = 0;
  pacer_->BeginStep([&] { return ++looks > 3; });
  EXPECT_EQ(ScriptedClock::Now() - begin, 3 * ThermalPacer::kLookPeriod);
}

TEST_F(ThermalPacerTest, ASensorThatFailsIsForgottenAfterAWhile) {
  SetCelsius(75.0);
  MakePacer();
  EXPECT_EQ(PauseAfterStep(), milliseconds(300));
  LoseSensor();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(LaterPause(), milliseconds(300)) << i;
  ScriptedClock::Advance(ThermalPacer::kForgottenAfter);
  EXPECT_EQ(PauseAfterStep(), milliseconds(0));
  EXPECT_FALSE(pacer_->figures().celsius);
  EXPECT_FALSE(pacer_->figures().is_slowing);
  EXPECT_EQ(NumThreads(), 4u);
  EXPECT_EQ(LaterPause(), milliseconds(0));
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_THAT(told_[1], HasSubstr("cannot be read"));
  SetCelsius(75.0);
  EXPECT_EQ(LaterPause(), milliseconds(300));
  EXPECT_EQ(told_.size(), 2u);
}

TEST_F(ThermalPacerTest, TheLimitHasBounds) {
  for (const double good : {0.0, 30.0, 80.5, 125.0}) {
    EXPECT_TRUE(ThermalOptions{.max_celsius = good}.Validate()) << good;
  }
  for (const double bad :
       {-1.0, 0.1, 29.9, 125.1, 1e300, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Status refused = ThermalOptions{.max_celsius = bad}.Validate();
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message(), HasSubstr("outside 30 to 125"));
  }
}

TEST_F(ThermalPacerTest, ASchedulerPausesBetweenForwards) {
  SetCelsius(75.0);
  MakePacer();
  Load(1, kContext, 16, ScriptedClock::Now);
  scheduler_ = std::make_unique<Scheduler>(*model_, ScriptedClock::Now, &*pacer_);
  model_->after_forward = [] { ScriptedClock::Advance(milliseconds(10)); };
  Session session(*scheduler_);
  const auto begin = ScriptedClock::Now();
  const Outcome outcome = Answer(session, Prompt(1, 1), 5);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.generated, Expected(Prompt(1, 1), 5));
  // Nothing pauses before the first Forward and behind the last one.
  EXPECT_EQ(model_->sequences_run.size(), 5u);
  EXPECT_EQ(ScriptedClock::Now() - begin, 5 * milliseconds(10) + 4 * milliseconds(30));
  EXPECT_NEAR(pacer_->figures().paused_seconds, 0.12, 1e-9);
  // The scheduler has learnt the time of the model alone.
  double estimated = 0.0;
  Seat seat;
  scheduler_->EstimateSeconds(seat, std::span(&estimated, 1));
  EXPECT_NEAR(estimated, 0.01, 1e-3);
}

TEST_F(ThermalPacerTest, ASchedulersPauseEndsForACancelledAnswer) {
  SetCelsius(75.0);
  // A Forward of a minute demands a pause of three. In the pause before the second one, the answer
  // is cancelled.
  static std::atomic<bool> cancel;
  static std::atomic<int> num_sleeps;
  cancel = false;
  num_sleeps = 0;
  ThermalOptions options = Options();
  options.time.sleep = [](ThermalPacer::Clock::duration duration) {
    ScriptedClock::Advance(duration);
    if (++num_sleeps == 3) cancel = true;
  };
  pacer_.emplace(options, platform::TemperatureSensor::Open(root_.path()),
                 ThermalPacer::Pools{&pool_, &batch_pool_});
  Load(1, kContext, 16, ScriptedClock::Now);
  scheduler_ = std::make_unique<Scheduler>(*model_, ScriptedClock::Now, &*pacer_);
  model_->after_forward = [] { ScriptedClock::Advance(std::chrono::minutes(1)); };
  Session session(*scheduler_);
  const auto begin = ScriptedClock::Now();
  const Outcome outcome = Answer(session, Prompt(40, 1), 5, nullptr, &cancel);
  EXPECT_THAT(outcome.error, HasSubstr("stopped"));
  EXPECT_EQ(model_->sequences_run.size(), 2u);
  EXPECT_EQ(ScriptedClock::Now() - begin,
            2 * std::chrono::minutes(1) + 3 * ThermalPacer::kLookPeriod);
}

// The tokens and their logits of an engine with any number of threads that may compute.
TEST_F(ThermalPacerTest, AnEnginesAnswersHaveTheSameBits) {
  const TinyModelFile model(support::SpecGqa(), 128, {.weights = Scheme::kQc8w});
  const auto logits = [&](const EngineOptions& options) {
    const auto engine = Unwrap(Engine::Load(model.path(), options));
    const std::unique_ptr<Session> session = engine->NewSession();
    Turn turn(*session, {});
    std::vector<float> all;
    Tokens tokens = {1, 7, 3, 9, 4};
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(turn.Prefill(tokens));
      const LogitRows rows = Unwrap(turn.Logits());
      all.insert(all.end(), rows[0].begin(), rows[0].end());
      tokens.push_back(static_cast<int32_t>(std::ranges::max_element(rows[0]) - rows[0].begin()));
    }
    const ThermalPacer* const pacer = engine->pacer();
    EXPECT_EQ(pacer != nullptr, options.thermal.has_limit());
    if (pacer != nullptr) {
      EXPECT_GT(pacer->figures().paused_seconds, 0.0);
      EXPECT_EQ(pacer->figures().num_threads, 2u);
    }
    return all;
  };
  EngineOptions options = {.num_threads = 3, .context_tokens = 64};
  const std::vector<float> expected = logits(options);
  SetCelsius(80.0);
  options.thermal = Options();
  EXPECT_EQ(logits(options), expected);
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(ThermalPacerTest, AnEngineWithoutSensorSaysSo) {
  const TinyModelFile model(support::SpecGqa());
  EngineOptions options = {.num_threads = 1, .context_tokens = 64};
  std::vector<std::string> notices;
  options.on_notice = [&](std::string_view sentence) { notices.emplace_back(sentence); };
  options.thermal = Options();
  EXPECT_EQ(Unwrap(Engine::Load(model.path(), options))->pacer(), nullptr);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("75 °C has no effect")));
  options.thermal.max_celsius = 20.0;
  const auto refused = Engine::Load(model.path(), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace cria
