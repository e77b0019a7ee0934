#include "cli/terminal/block_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cria::cli {

std::string Sparkline(std::span<const double> values) {
  constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double largest = values.empty() ? 0.0 : *std::ranges::max_element(values);
  std::string text;
  for (const double value : values) {
    const double level = largest > 0.0 ? value / largest * (kBlocks.size() - 1) : 0.0;
    text += kBlocks[static_cast<size_t>(std::lround(level))];
  }
  return text;
}

std::string PartsBar(uint64_t first, uint64_t second, uint64_t whole, size_t width) {
  const auto cells = [&](uint64_t amount) {
    if (whole == 0) return size_t{0};
    const double share = std::min(static_cast<double>(amount) / static_cast<double>(whole), 1.0);
    return static_cast<size_t>(std::lround(share * static_cast<double>(width)));
  };
  const size_t first_end = cells(first);
  const size_t second_end = cells(first + second);
  std::string bar;
  for (size_t cell = 0; cell < width; ++cell) {
    bar += cell < first_end ? "█" : cell < second_end ? "▒" : "░";
  }
  return bar;
}

}  // namespace cria::cli
