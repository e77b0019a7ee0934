#pragma once

#include <algorithm>
#include <chrono>

namespace cria {

// For how long a thread pool does without threads that delay it. Each time it is extended, it lasts
// twice as long as before; good service makes it forget.
class Exclusion {
 public:
  using Clock = std::chrono::steady_clock;

  // The longest exclusion: it bounds how long the threads are missed after what delayed them has
  // ended, and how often they may delay the pool while it has not.
  static constexpr Clock::duration kMax = std::chrono::milliseconds(250);

  explicit Exclusion(Clock::duration forgotten_after) : forgotten_after_(forgotten_after) {}

  bool Covers(Clock::time_point now) const { return now < end_; }

  // The threads have cost `delay`: the first exclusion is as long.
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
