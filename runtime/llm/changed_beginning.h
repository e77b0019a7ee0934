#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cria {

// A place near the beginning of a prompt where it differs from an earlier text, although the tokens
// after this place are the same in both: for example, a time of day before all instructions, or
// messages that the client left out. All that follows is computed again, although it is cached.
struct ChangedBeginning {
  size_t first = 0;  // Tokens [first, end) of the prompt differ.
  size_t end = 0;
  size_t num_same = 0;  // How many tokens from `end` on are the same; 0 if no place was found.
};

// Looks for such a place after the first `num_common` tokens, which are the same in both texts. It
// searches the earlier text for a few parts of the prompt only, so that it can miss places, and it
// finds none with a num_same below 256.
ChangedBeginning FindChangedBeginning(std::span<const int32_t> tokens, size_t num_common,
                                      std::span<const int32_t> earlier);

}  // namespace cria
