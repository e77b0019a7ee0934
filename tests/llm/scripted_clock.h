#pragma once

#include <atomic>

#include "llm/scheduler.h"

namespace cria {

// A clock that goes on only when a test says so: what depends on how long a model takes is then the
// same on every machine. All tests of a process share it.
class ScriptedClock {
 public:
  using Clock = Scheduler::Clock;

  static Clock::time_point Now() { return Clock::time_point(Clock::duration(Ticks().load())); }
  static void Advance(Clock::duration time) { Ticks() += time.count(); }

 private:
  static std::atomic<Clock::rep>& Ticks() {
    static std::atomic<Clock::rep> ticks = 1;
    return ticks;
  }
};

}  // namespace cria
