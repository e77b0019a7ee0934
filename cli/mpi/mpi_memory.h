#pragma once

#include <vector>

#include "cli/program_memory.h"
#include "llm/memory_plan.h"

namespace cria::cli {

// What MPI takes of a rank's memory beside the program and its model: parts of a plan. Like those
// of the program, the figures are fixed. Those of x86-64 were measured with OpenMPI 5.0.7, between
// ranks on boards of their own; ranks that share a board have 0.1 MB of shared memory more. Those
// of Arm were not measured: they are in proportion to these as the server's are.
std::vector<MemoryLine> MpiMemory(ProgramKind kind);

}  // namespace cria::cli
