#pragma once

#include <cstddef>
#include <vector>

#include "cli/plan/program_memory.h"
#include "llm/memory_plan.h"

namespace cria::cli {

// What MPI takes of a rank's memory beside the program and its model: parts of a plan. Like those
// of the program, the figures are fixed. Those of x86-64 were measured with OpenMPI 5.0.7 between
// ranks on boards of their own, which have 0.1 MB less of shared memory than ranks that share a
// board; and with MPICH 4.2.1 between ranks that share a board. Those of Arm were not measured:
// they are in proportion to these as the server's are. A plan for 32 bits is that of MPICH.
std::vector<MemoryLine> MpiMemory(ProgramKind kind, size_t num_ranks);

}  // namespace cria::cli
