#include "cli/mpi/mpi_memory.h"

#include <cstdint>

#include "mpi/library.h"

namespace cria::cli {
namespace {

// In units of kUnit.
struct Usage {
  uint64_t heaps = 0;  // Heaps and stacks of MPI's libraries, and what the loader changes in them.
  uint64_t files = 0;  // Their code and tables.
};
constexpr uint64_t kUnit = uint64_t{64} << 10;

// Buffers of MPICH for ranks on the same board: of each rank, and for each of the others.
constexpr uint64_t kSharedUnits = 62;
constexpr uint64_t kSharedUnitsPerRank = 15;

Usage OfOpenMpi(ProgramKind kind) {
  // It is 30 libraries, also for networks that the board does not have.
  switch (kind) {
    case ProgramKind::kX86:
      return {.heaps = 55, .files = 170};
    case ProgramKind::kArm64:
      return {.heaps = 63, .files = 141};
    case ProgramKind::kArm:
      return {.heaps = 47, .files = 119};
  }
  return {};
}

Usage OfMpich(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kX86:
      return {.heaps = 53, .files = 120};
    case ProgramKind::kArm64:
      return {.heaps = 61, .files = 100};
    case ProgramKind::kArm:
      return {.heaps = 45, .files = 84};
  }
  return {};
}

}  // namespace

std::vector<MemoryLine> MpiMemory(ProgramKind kind, size_t num_ranks) {
  // OpenMPI does not exist for 32 bits any more.
  const bool is_mpich = kind == ProgramKind::kArm || mpi::LinkedLibrary() == mpi::Library::kMpich;
  const Usage usage = is_mpich ? OfMpich(kind) : OfOpenMpi(kind);
  std::vector<MemoryLine> lines = {
      MemoryLine::Other("MPI", MemoryKind::kPrivate, usage.heaps * kUnit),
      MemoryLine::Other("MPI, from its files", MemoryKind::kMapped, usage.files * kUnit)};
  if (is_mpich) {
    lines.push_back(MemoryLine::Other("MPI, for ranks on one board", MemoryKind::kPrivate,
                                      (kSharedUnits + num_ranks * kSharedUnitsPerRank) * kUnit));
  }
  return lines;
}

}  // namespace cria::cli
