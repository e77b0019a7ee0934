#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/constraint_options.h"
#include "cli/flags/options.h"
#include "cli/flags/server_options.h"
#include "cli/models/model_store.h"
#include "cli/models/named_model.h"
#include "cli/plan/memory_report.h"
#include "cli/plan/server_memory.h"
#include "cli/program_launcher.h"
#include "cli/start_engine.h"
#include "cli/terminal/shell_word.h"
#include "core/format.h"
#include "llm/engine.h"

namespace cria::cli {
namespace {

struct PlanOptions {
  std::string name;
  std::string model_path;
  PlanArguments plan;
  EngineOptions engine;
  ConstraintOptions constraint;  // Only whether there is one.
  bool serves = false;
  server::HttpBounds bounds;
  size_t max_waiting = kServerQueue;
  PrefixCacheOptions prefix_cache;
};

Status Plan(PlanOptions options) {
  if (options.serves) {
    options.plan.program = ProgramName::kServe;
    // The server has one for every sequence.
    options.engine.max_constraints = options.engine.num_sequences;
    options.engine.other_memory = ServerMemory(options.bounds, options.engine.num_sequences,
                                               options.max_waiting, options.prefix_cache);
    options.engine.other_threads =
        ServerThreads(options.engine.num_sequences, options.prefix_cache);
    options.engine.num_texts = options.engine.num_sequences;
  }
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(options.model_path));
  CRIA_ASSIGN_OR_RETURN(const bool has_ranks, PrintPlanOfRanks(file, options.engine, options.plan));
  if (has_ranks) return {};
  CRIA_ASSIGN_OR_RETURN(std::shared_ptr<const ModelOutline> draft_model,
                        OutlineOfDraftModel(options.engine, file));
  return PrintPlan(OutlineOf(file), options.engine, options.plan, draft_model);
}

// Becomes `cria-convert plan`, which plans from the configuration alone, with the same options.
Status PlanCheckpoint(const ModelSource& source, std::vector<std::string> words) {
  words.insert(words.begin(), {"plan", source.checkpoint});
  std::vector<char*> arguments;
  arguments.reserve(words.size());
  for (std::string& word : words) arguments.push_back(word.data());
  return BecomeProgram("cria-convert",
                       "what a checkpoint will take is computed by the program cria-convert, which "
                       "is not installed; it has a package of its own: apt install "
                       "./cria-convert_*.deb",
                       arguments);
}

// Fails if the options ask for something that only a model file has a plan of.
Status CheckOptionsOfCheckpoint(const PlanOptions& options) {
  const bool has_drafts =
      options.engine.drafts.has_drafts() || !options.engine.draft_model_path.empty();
  if (!options.serves && !options.constraint.is_given() && !has_drafts && !PlansRanks()) return {};
  return Fail(ErrorCode::kUsage,
              Format("{}: servers, drafts, constrained output and several ranks are planned for a "
                     "model that is there: cria pull {} gets it",
                     options.name, ShellWord(options.name)));
}

}  // namespace

void AddPlanCommand(CommandLine& program) {
  auto options = std::make_shared<PlanOptions>();
  CommandLine& command =
      program.AddCommand("plan", "Print how much memory a model will take, without loading it");
  AddModelNameOption(command, options->name);
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
  AddPrefixCache(command, options->prefix_cache);
  command.SetAction([options, &command]() -> Status {
    options->engine.max_constraints = options->constraint.is_given() ? 1 : 0;
    CRIA_ASSIGN_OR_RETURN(const NamedModel named, FindNamedModel(options->name));
    options->model_path = named.path;
    if (named.source) {
      CRIA_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::Open());
      const std::optional<StoredModel> stored = store.Find(named.source->Id());
      if (!stored) {
        CRIA_RETURN_IF_ERROR(CheckOptionsOfCheckpoint(*options));
        return PlanCheckpoint(*named.source, command.GivenWords("--model"));
      }
      options->model_path = stored->path.string();
    }
    return Plan(*options);
  });
}

}  // namespace cria::cli
