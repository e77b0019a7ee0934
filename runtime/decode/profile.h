#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cria {

// The kinds of work between a token and the next.
enum class OperatorKind : uint8_t {
  kEmbedding,
  kNorm,  // With the quantization of its result, as for kAttention and kSwiGlu.
  kQkvProj,
  kRope,  // With biases and norms before it, and storing keys and values.
  kAttention,
  kOProj,
  kGateUpProj,
  kSwiGlu,
  kDownProj,
  kResidual,
  kLmHead,
  kSampling,
};
inline constexpr size_t kNumOperatorKinds = 12;
std::string_view OperatorKindName(OperatorKind kind);

// Time spent on each kind of operator. Looking at the clock takes 20 to 40 ns for each.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  // What follows is counted from now on; what lies between is nobody's.
  void Resume() { last_ = Clock::now(); }
  // All time since the last call belongs to `kind`.
  void Count(OperatorKind kind) {
    const Clock::time_point now = Clock::now();
    times_[static_cast<size_t>(kind)] += now - last_;
    last_ = now;
  }

  Clock::duration time(OperatorKind kind) const { return times_[static_cast<size_t>(kind)]; }
  Clock::duration total() const;

 private:
  Clock::time_point last_;
  std::array<Clock::duration, kNumOperatorKinds> times_ = {};
};

}  // namespace cria
