#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cria::raspberry_pi {

// A board that runs the 64-bit Raspberry Pi OS.
struct Board {
  std::string_view name;   // As in options: "pi-4-2gb".
  std::string_view title;  // "Raspberry Pi 4 Model B, 2 GB".
  uint64_t memory_bytes = 0;
  // The memory for one program on Raspberry Pi OS Lite after booting.
  uint64_t usable_bytes = 0;
  uint32_t num_cores = 0;
  std::string_view core;  // The name in CpuTopology: "Cortex-A72".
  // Whether the core has dot products of int8, which decide how rows are rounded.
  bool has_dot_products = false;
  // About what all cores together can read from memory continuously; 1 GB is 10^9 bytes.
  double read_bandwidth_gb_s = 0;
};

// Sorted by generation, older ones first, then by memory.
std::span<const Board> Boards();

// Null if no board has this name.
const Board* FindBoard(std::string_view name);

}  // namespace cria::raspberry_pi
