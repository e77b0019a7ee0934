#pragma once

#include <cstddef>
#include <string>

#include "core/format.h"

namespace cria::cli {

// Reading a prompt, or generating tokens, after `depth_tokens` that are in the cache.
struct SpeedTest {
  size_t prompt_tokens = 0;     // One of these two
  size_t generated_tokens = 0;  // is 0.
  size_t depth_tokens = 0;
  size_t num_sequences = 1;  // Each generates as many tokens; they share those of the depth.

  bool is_prompt() const { return prompt_tokens > 0; }
  // A prompt of one token is computed like a generated one.
  bool is_batch() const { return prompt_tokens > 1; }
  size_t tokens() const { return (prompt_tokens + generated_tokens) * num_sequences; }

  // As in llama-bench: "pp512", "tg128 @ d2048"; "tg128 x4" for four sequences.
  std::string Name() const {
    std::string name = Format("{}{}", is_prompt() ? "pp" : "tg", prompt_tokens + generated_tokens);
    if (num_sequences > 1) name += Format(" x{}", num_sequences);
    if (depth_tokens > 0) name += Format(" @ d{}", depth_tokens);
    return name;
  }
};

}  // namespace cria::cli
