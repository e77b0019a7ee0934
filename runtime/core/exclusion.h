#pragma once

#include <algorithm>
#include <chrono>

namespace cria {

// The time for which a thread pool does not use threads that have delayed it. Each exclusion is
// twice as long as the one before, until the threads have worked long enough without a delay.
class Exclusion {
 public:
  using Clock = std::chrono::steady_clock;

  // The longest exclusion: it bounds how long the threads are missed after what delayed them has
  // ended, and how often they may delay the pool while it has not.
  static constexpr Clock::duration kMax = std::chrono::milliseconds(250);

  explicit Exclusion(Clock::duration forgotten_after) : forgotten_after_(forgotten_after) {}

  bool Covers(Clock::time_point now) const { return now < end_; }

  // Excludes the threads after they have caused a delay. The first exclusion is as long as the
  // delay.
  void Extend(Clock::time_point now, Clock::duration delay) {
    length_ = std::min(std::max(2 * length_, delay), kMax);
    end_ = now + length_;
    served_ = Clock::duration::zero();
  }

  // The threads have worked for `time` without a delay.
  void AddService(Clock::duration time) {
    served_ += time;
    if (served_ >= forgotten_after_) length_ = Clock::duration::zero();
  }

 private:
  Clock::duration forgotten_after_;
  Clock::time_point end_;
  Clock::duration length_{0};
  Clock::duration served_{0};  // Since the last exclusion.
};

}  // namespace cria
