#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cria::cli {

// One character for each value, from "▁" for 0 to "█" for the largest: "▂▅█". Values are not
// negative; if all are 0, so are their characters.
std::string Sparkline(std::span<const double> values);

// A bar of `width` characters that stands for `whole`: "█" for the first part of it, "▒" for the
// second, "░" for the rest. Parts that are more than the whole fill the bar.
std::string PartsBar(uint64_t first, uint64_t second, uint64_t whole, size_t width);

}  // namespace cria::cli
