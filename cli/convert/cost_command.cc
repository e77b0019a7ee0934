#include "cli/convert/cost_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/convert/checkpoint_options.h"
#include "cli/convert/checkpoint_source.h"
#include "cli/convert/conversion_check.h"
#include "cli/flags/options.h"
#include "cli/plan/program_memory.h"
#include "converter/convert.h"
#include "converter/hub/look_up.h"
#include "converter/step_costs.h"
#include "llm/engine.h"

namespace cria::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CostArguments {
  CheckpointArguments source;
  bool rounds = false;
  DownloadArguments download;
  EngineOptions engine;
};

// How long the conversion would take with these options on the machine on which the costs of steps
// were measured, with as many processors as this one has.
double ConversionSeconds(const ModelConfig& config, const CostArguments& arguments) {
  ConvertOptions options = arguments.source.options;
  if (CalibratesByDefault(options, arguments.rounds)) {
    CalibrationOptions& calibration = options.calibration.emplace();
    calibration.max_tokens = DefaultShippedTextTokens(options, config);
  }
  const StepCosts costs = EstimateStepCosts(
      config, options, {.verifies = CountParameters(config) <= kMaxCheckedParameters});
  const double nanoseconds = std::accumulate(costs.begin(), costs.end(), 0.0);
  const unsigned threads = options.num_threads != 0
                               ? static_cast<unsigned>(options.num_threads)
                               : std::max(std::thread::hardware_concurrency(), 1u);
  return nanoseconds / 1e9 / threads;
}

Status AddCosts(const ModelOutline& outline, const CostArguments& arguments, Json& json) {
  const platform::MemoryUsage program = ProgramMemory(ThisProgramKind(), ProgramName::kCria);
  const MemoryPlanOptions options = ResolveOptions(outline, arguments.engine, nullptr);
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(outline.config, options.decoder));
  CRIA_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(outline, options, program));
  json["convert_seconds"] = ConversionSeconds(outline.config, arguments);
  json["model_file_bytes"] = outline.file_bytes;
  json["context_tokens"] = options.decoder.context_tokens;
  json["peak_bytes"] = plan.peak_bytes();
  return {};
}

Status PrintCost(CostArguments& arguments) {
  std::string& checkpoint = arguments.source.checkpoint;
  Json json;
  std::optional<hub::CheckpointName> name;
  if (hub::IsCheckpointName(checkpoint)) {
    CRIA_ASSIGN_OR_RETURN(name, hub::ParseCheckpointName(checkpoint));
    CRIA_ASSIGN_OR_RETURN(const hub::RemoteCheckpoint remote,
                          hub::LookUp(*name, DownloadOptionsOf(arguments.download)));
    json["commit"] = remote.commit;
    json["licence"] = remote.licence;
    if (remote.bytes) json["download_bytes"] = *remote.bytes;
  }
  // The sizes in a GGUF file are not known before it is downloaded.
  if (!name || name->file.empty()) {
    CRIA_ASSIGN_OR_RETURN(const auto source, CheckpointSource::Open(checkpoint, hub::Purpose::kPlan,
                                                                    arguments.download));
    checkpoint = source.path().string();
    CRIA_RETURN_IF_ERROR(ChooseWeights({.are_rounded = arguments.rounds}, arguments.source));
    CRIA_ASSIGN_OR_RETURN(const ModelOutline outline,
                          name ? OutlineConfiguration(checkpoint, arguments.source.options)
                               : OutlineConversion(checkpoint, arguments.source.options));
    CRIA_RETURN_IF_ERROR(AddCosts(outline, arguments, json));
  }
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return {};
}

}  // namespace

void AddCostCommand(CommandLine& program) {
  auto arguments = std::make_shared<CostArguments>();
  CommandLine& command = program.AddCommand(
      "cost", "Print as JSON what a conversion takes: download, disk, time and memory");
  AddCheckpointOptions(command, arguments->source);
  command.AddFlag("--fast", arguments->rounds, "What a conversion with --fast takes");
  AddContextOptions(command, arguments->engine);
  AddDownloadOptions(command, arguments->download);
  command.SetAction([arguments] { return PrintCost(*arguments); });
}

}  // namespace cria::cli
