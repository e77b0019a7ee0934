#pragma once

namespace cria {

// The order in which a layer uses its buffers; both norms begin with adding the projected rows. The
// lifetime of a buffer is from the step that writes it to the last step that reads it.
enum LayerStep : int {
  kNormStep,
  kQkvStep,
  kAttentionStep,
  kOutputStep,
  kFeedForwardNormStep,
  kGateUpStep,
  kDownStep,
  kNextNormStep,
};

}  // namespace cria
