#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/flags/constraint_options.h"
#include "cli/flags/options.h"
#include "cli/memory_report.h"
#include "llm/engine.h"

namespace cria::cli {
namespace {

struct PlanOptions {
  std::string model_path;
  PlanArguments plan;
  EngineOptions engine;
  ConstraintOptions constraint;  // Only whether there is one.
};

Status Plan(const PlanOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(options.model_path));
  CRIA_ASSIGN_OR_RETURN(std::shared_ptr<const ModelOutline> draft_model,
                        OutlineOfDraftModel(options.engine, file));
  return PrintPlan(OutlineOf(file), options.engine, options.plan, std::move(draft_model));
}

}  // namespace

void AddPlanCommand(CommandLine& program) {
  auto options = std::make_shared<PlanOptions>();
  CommandLine& command =
      program.AddCommand("plan", "Print how much memory a model will take, without loading it");
  AddModelOption(command, options->model_path);
  AddPlanOptions(command, options->plan);
  AddContextOptions(command, options->engine);
  AddDraftOptions(command, options->engine);
  AddConstraintOptions(command, options->constraint);
  command.SetAction([options] {
    options->engine.max_constraints = options->constraint.is_given() ? 1 : 0;
    return Plan(*options);
  });
}

}  // namespace cria::cli
