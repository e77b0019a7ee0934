#include "cli/mpi/mpi_memory.h"

#include <cstdint>

namespace cria::cli {

std::vector<MemoryLine> MpiMemory(ProgramKind kind) {
  constexpr uint64_t kStep = uint64_t{64} << 10;
  // Heaps and stacks of OpenMPI, PMIx and UCX, and what the loader changes in their libraries.
  uint64_t private_steps = 55;
  // Their code and tables: 30 libraries, also for networks that the board does not have.
  uint64_t mapped_steps = 170;
  if (kind == ProgramKind::kArm64) {
    private_steps = 63;
    mapped_steps = 141;
  } else if (kind == ProgramKind::kArm) {
    private_steps = 47;
    mapped_steps = 119;
  }
  return {{"MPI", MemoryKind::kPrivate, private_steps * kStep},
          {"MPI, from its files", MemoryKind::kMapped, mapped_steps * kStep}};
}

}  // namespace cria::cli
