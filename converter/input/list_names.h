#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace cria {

// The names in the rows of a table, for a sentence: "llama, qwen2 and qwen3".
template <typename Row, size_t kNumRows>
std::string ListNames(const std::array<Row, kNumRows>& table, std::string_view Row::* name) {
  std::string names;
  for (size_t i = 0; i < kNumRows; ++i) {
    if (i > 0) names += i + 1 < kNumRows ? ", " : " and ";
    names += table[i].*name;
  }
  return names;
}

}  // namespace cria
