#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cli/plan/memory_report.h"
#include "llm/engine.h"

namespace cria::cli {

// What differs between the programs of one board and cria-mpi: each has its own of these functions.

// Loads the model in this process, or, in cria-mpi, on all ranks. There, it ends the engine that
// was loaded before.
Result<std::unique_ptr<Engine>> StartEngine(const std::string& path, const EngineOptions& options);
// How many ranks run; 1: this process alone.
size_t NumRanks();

// If the command line of cria-mpi names a rank, leaves only its part in `model`.
Status TakeNamedPart(ModelFile& model);
// Whether the command line of cria-mpi, or mpirun, says how many ranks there are.
bool PlansRanks();
// If PlansRanks(), prints their plan and returns
// true.
Result<bool> PrintPlanOfRanks(const ModelFile& model, const EngineOptions& options,
                              const PlanArguments& arguments);

}  // namespace cria::cli
