#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/flags/constraint_options.h"
#include "cli/flags/options.h"
#include "cli/flags/server_options.h"
#include "cli/plan/memory_report.h"
#include "cli/plan/server_memory.h"
#include "cli/start_engine.h"
#include "llm/engine.h"

namespace cria::cli {
namespace {

struct PlanOptions {
  std::string model_path;
  PlanArguments plan;
  EngineOptions engine;
  ConstraintOptions constraint;  // Only whether there is one.
  bool serves = false;
  server::HttpBounds bounds;
  size_t max_waiting = kServerQueue;
};

Status Plan(PlanOptions options) {
  if (options.serves) {
    options.plan.program = ProgramName::kServe;
    // The server has one for every sequence.
    options.engine.max_constraints = options.engine.num_sequences;
    options.engine.other_memory =
        ServerMemory(options.bounds, options.engine.num_sequences, options.max_waiting);
    // The HTTP thread is one more.
    options.engine.other_threads = options.engine.num_sequences + 1;
    options.engine.num_texts = options.engine.num_sequences;
  }
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(options.model_path));
  CRIA_ASSIGN_OR_RETURN(const bool has_ranks, PrintPlanOfRanks(file, options.engine, options.plan));
  if (has_ranks) return {};
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
  // Added before -np: the later setter wins.
  command
      .AddFlag(
          "--serve",
          [&values = *options] {
            values.serves = true;
            values.engine.num_sequences = kServerSequences;
            values.engine.default_kept_sequences = kServerKeptPrompts;
          },
          "Plan for cria-serve: with connections, requests and answers, and with -np 4 unless it "
          "is given")
      .Group(kServerGroup);
  AddContextOptions(command, options->engine);
  AddDraftOptions(command, options->engine);
  AddConstraintOptions(command, options->constraint);
  AddServerBounds(command, options->bounds, options->max_waiting);
  AddKeptPrompts(command, options->engine);
  command.SetAction([options] {
    options->engine.max_constraints = options->constraint.is_given() ? 1 : 0;
    return Plan(*options);
  });
}

}  // namespace cria::cli
