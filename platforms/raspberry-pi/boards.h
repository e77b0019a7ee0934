#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cria::raspberry_pi {

// A board on which Raspberry Pi OS runs with 64 bits.
struct Board {
  std::string_view name;   // As options write it: "pi-4-2gb".
  std::string_view title;  // "Raspberry Pi 4 Model B, 2 GB".
  uint64_t memory_bytes = 0;
  // What one program can have on Raspberry Pi OS Lite after booting, without a desktop.
  uint64_t usable_bytes = 0;
  uint32_t num_cores = 0;
  std::string_view core;  // As CpuTopology names it: "Cortex-A72".
  // What all cores together read from memory in the long run, about; 1 GB is 10^9 bytes.
  double read_bandwidth_gb_s = 0;
};

// From the smallest to the largest of each generation, older generations first.
std::span<const Board> Boards();

// Null where no board has this name.
const Board* FindBoard(std::string_view name);

}  // namespace cria::raspberry_pi
