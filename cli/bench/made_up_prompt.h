#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cria::cli {

// Different tokens, so that different rows of the embedding are read.
inline std::vector<int32_t> MakeUpPrompt(size_t count, size_t vocab_size) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<int32_t>(i * 7919 % vocab_size);
  }
  return tokens;
}

}  // namespace cria::cli
