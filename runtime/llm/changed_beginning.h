#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cria {

// A part of a prompt that is new, between a beginning and a rest that an earlier text has, too. The
// rest is computed again, although it was in the cache, because keys and values depend on all
// tokens before them. A time of day before all instructions is such a part.
struct ChangedBeginning {
  size_t first = 0;  // Tokens [first, end) of the prompt differ.
  size_t end = 0;
  size_t num_same = 0;  // So many behind these are the same; 0: nothing of this kind was found.
};

// Looks for such a place behind the first `num_common` tokens. Finds only rests of at least 256
// tokens, and not all of these: it looks for a few parts of the prompt in the earlier text.
ChangedBeginning FindChangedBeginning(std::span<const int32_t> tokens, size_t num_common,
                                      std::span<const int32_t> earlier);

}  // namespace cria
