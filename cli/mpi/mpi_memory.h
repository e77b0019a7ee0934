#pragma once

#include <vector>

#include "cli/program_memory.h"
#include "llm/memory_plan.h"

namespace cria::cli {

// What MPI takes of a rank's memory beside the program and its model: parts of a plan. Like those
// of the program, the figures are fixed. They were measured with OpenMPI 5.0.7 on x86-64, between
// ranks on boards of their own; ranks that share a board have 0.1 MB of shared memory more.
std::vector<MemoryLine> MpiMemory(ProgramKind kind);

}  // namespace cria::cli
