#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace cria {

struct ConvertProgress {
  std::string_view tensor;  // The tensor that is being stored.
  uint64_t done_weights;
  uint64_t total_weights;
};

// Called on the converting thread several times a second; returning false cancels. May be empty.
using ProgressCallback = std::function<bool(const ConvertProgress&)>;

}  // namespace cria
