#include "raspberry-pi/boards.h"

#include <algorithm>
#include <array>

namespace cria::raspberry_pi {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kGibibyte = uint64_t{1} << 30;

// Firmware and graphics take 64 to 76 MB; kernel, page tables and services took 126 to 156 MB, and
// more on larger boards, because the kernel describes more pages. A quarter of a gigabyte plus a
// sixteenth of the memory covers both. For comparison, after booting: a Zero 2 W has 291 MiB
// available, and this function returns 224; a Pi 3B+ has 822 MiB of 909 unused, and this function
// returns 704.
constexpr uint64_t UsableBytes(uint64_t memory_bytes) {
  return memory_bytes - memory_bytes / 16 - 256 * kMebibyte;
}

// All boards have 32 data lines. Programs get about two thirds of the theoretical bandwidth: STREAM
// measures 5.5 GB/s of 8.0 on a Pi 4, and decoders of language models 11.4 of 17.1 on a Pi 5. For
// the boards with LPDDR2 this is an estimate.
constexpr double ReadBandwidth(double megatransfers_per_second) {
  return megatransfers_per_second * 1e6 * 4 / 1e9 * 2 / 3;
}

constexpr Board FourCores(std::string_view name, std::string_view title, uint64_t memory_bytes,
                          std::string_view core, double read_bandwidth_gb_s) {
  return {.name = name,
          .title = title,
          .memory_bytes = memory_bytes,
          .usable_bytes = UsableBytes(memory_bytes),
          .num_cores = 4,
          .core = core,
          .has_dot_products = core == "Cortex-A76",
          .read_bandwidth_gb_s = read_bandwidth_gb_s};
}

constexpr Board CortexA53(std::string_view name, std::string_view title, uint64_t memory_bytes) {
  return FourCores(name, title, memory_bytes, "Cortex-A53", ReadBandwidth(900));
}

// The memory of the Pi 4 supports 3200, but its maker specifies the result as 2000.
constexpr Board CortexA72(std::string_view name, std::string_view title, uint64_t memory_bytes) {
  return FourCores(name, title, memory_bytes, "Cortex-A72", ReadBandwidth(2000));
}

constexpr Board CortexA76(std::string_view name, std::string_view title, uint64_t memory_bytes) {
  return FourCores(name, title, memory_bytes, "Cortex-A76", ReadBandwidth(4267));
}

constexpr auto kBoards = std::to_array<Board>({
    CortexA53("pi-zero-2w", "Raspberry Pi Zero 2 W, 512 MB", 512 * kMebibyte),
    CortexA53("pi-3a", "Raspberry Pi 3 Model A+, 512 MB", 512 * kMebibyte),
    CortexA53("pi-3", "Raspberry Pi 3 Model B or B+, 1 GB", 1 * kGibibyte),
    CortexA72("pi-4-1gb", "Raspberry Pi 4 Model B, 1 GB", 1 * kGibibyte),
    CortexA72("pi-4-2gb", "Raspberry Pi 4 Model B, 2 GB", 2 * kGibibyte),
    CortexA72("pi-4-4gb", "Raspberry Pi 4 Model B, 4 GB", 4 * kGibibyte),
    CortexA72("pi-400", "Raspberry Pi 400, 4 GB", 4 * kGibibyte),
    CortexA72("pi-4-8gb", "Raspberry Pi 4 Model B, 8 GB", 8 * kGibibyte),
    CortexA76("pi-5-2gb", "Raspberry Pi 5, 2 GB", 2 * kGibibyte),
    CortexA76("pi-5-4gb", "Raspberry Pi 5, 4 GB", 4 * kGibibyte),
    CortexA76("pi-5-8gb", "Raspberry Pi 5, 8 GB", 8 * kGibibyte),
    CortexA76("pi-500", "Raspberry Pi 500, 8 GB", 8 * kGibibyte),
    CortexA76("pi-5-16gb", "Raspberry Pi 5, 16 GB", 16 * kGibibyte),
});

}  // namespace

std::span<const Board> Boards() { return kBoards; }

const Board* FindBoard(std::string_view name) {
  const auto found = std::ranges::find(kBoards, name, &Board::name);
  return found == kBoards.end() ? nullptr : &*found;
}

}  // namespace cria::raspberry_pi
