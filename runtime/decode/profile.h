#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cria {

// The kinds of operators between one token and the next.
enum class OperatorKind : uint8_t {
  kEmbedding,
  kRotation,  // After the embedding, with rotated_residual. kNorm includes the other rotation.
  // Includes adding the projected rows before it, and quantizing the result, as kAttention and
  // kActivation do. Of a model that several ranks compute, it includes the sums over these.
  kNorm,
  kQkvProj,      // Or the product that a convolution or linear attention begins with.
  kRope,         // Includes biases and norms before it, and storing keys and values.
  kAttention,    // Or the delta rule, and what is done with its output.
  kConvolution,  // For linear attention, it includes scalars and norms of heads.
  kOProj,        // Or the product after a convolution or linear attention.
  kRouting,      // Choosing experts, and collecting their rows.
  kGateUpProj,
  kActivation,  // The gate's function, and the product with the rows of up.
  kDownProj,
  kPerLayer,  // Per-layer inputs, and the blocks that read them.
  kMtp,       // The product that MtpLayer begins with.
  kLmHead,
  kSampling,
};
inline constexpr size_t kNumOperatorKinds = 16;
std::string_view OperatorKindName(OperatorKind kind);

// Time spent on each kind of operator. Reading the clock takes 20 to 40 ns each time.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  // Restarts the clock; time since the last Count() is not attributed.
  void Resume() { last_ = Clock::now(); }
  // Adds the time since the last call to `kind`.
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
