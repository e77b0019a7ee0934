#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cria::support {

// Rounds random weights to ggml's Q4_0, for files that other programs are measured with. It is not
// a quantizer for users: those are in converter/quantize.
constexpr size_t kQ4_0Weights = 32;  // Weights of a block.
constexpr uint32_t kQ4_0Number = 2;  // The number of the type in GGUF files.

// Blocks of an f16 scale and 32 codes from 0 to 15, which stand for -8 to 7 times the scale. The
// weight with the largest magnitude becomes -8. Throws std::runtime_error unless all blocks are
// whole.
std::string EncodeQ4_0(std::span<const float> values);

}  // namespace cria::support
