#include "llm/changed_beginning.h"

#include <algorithm>
#include <array>

#include "llm/common_beginning.h"

namespace cria {

ChangedBeginning FindChangedBeginning(std::span<const int32_t> tokens, size_t num_common,
                                      std::span<const int32_t> earlier) {
  constexpr size_t kMinSame = 256;
  constexpr size_t kPartTokens = 32;
  // How far the parts are behind the common tokens; the change is usually shorter than the first.
  constexpr std::array<size_t, 3> kDistances = {64, 256, 1024};
  ChangedBeginning found;
  for (const size_t distance : kDistances) {
    const size_t begin = num_common + distance;
    if (begin + kPartTokens > tokens.size()) break;
    const auto place = std::ranges::search(earlier, tokens.subspan(begin, kPartTokens));
    if (place.empty()) continue;
    const auto there = static_cast<size_t>(place.begin() - earlier.begin());
    size_t before = 0;
    while (before < distance && before < there &&
           tokens[begin - before - 1] == earlier[there - before - 1]) {
      ++before;
    }
    const size_t num_same = before + CommonBeginning(tokens.subspan(begin), earlier.subspan(there));
    if (num_same < kMinSame || num_same <= found.num_same) continue;
    found = {.first = num_common, .end = begin - before, .num_same = num_same};
  }
  return found;
}

}  // namespace cria
