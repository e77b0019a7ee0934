#include "cli/start_engine.h"

namespace cria::cli {

Result<std::unique_ptr<Engine>> StartEngine(const std::string& path, const EngineOptions& options) {
  return Engine::Load(path, options);
}

size_t NumRanks() { return 1; }

Status TakeNamedPart(ModelFile&) { return {}; }

bool PlansRanks() { return false; }

Result<bool> PrintPlanOfRanks(const ModelFile&, const EngineOptions&, const PlanArguments&) {
  return false;
}

}  // namespace cria::cli
