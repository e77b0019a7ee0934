#include "cli/flags/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/format.h"

namespace cria::cli {
namespace {

// How many characters must be added, removed, replaced or swapped with the next one (the optimal
// string alignment distance).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& least = table[i][j];
      least = i + j;  // For an empty beginning, this is the distance.
      if (i == 0 || j == 0) continue;
      const bool is_same = a[i - 1] == b[j - 1];
      least = std::min(
          {table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (is_same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least = std::min(least, table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::string NearestName(std::string_view name, std::span<const std::string> known) {
  constexpr size_t kMaxCharacters = 64;  // No name is as long.
  constexpr size_t kMaxDistance = 3;
  const auto letters = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of("-/"), text.size()));
  };
  const std::string_view wanted = letters(name);
  if (wanted.size() > kMaxCharacters) return "";
  // Less than half of the letters may differ.
  size_t least = std::min((wanted.size() + 1) / 2, kMaxDistance + 1);
  std::string_view nearest;
  for (const std::string& candidate : known) {
    const size_t distance = Distance(wanted, letters(candidate));
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest.empty() ? "" : Format(" (the nearest is {})", nearest);
}

}  // namespace cria::cli
