#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/bench_report.h"
#include "cli/bench/bench_row.h"
#include "cli/bench/memory_bench.h"
#include "cli/bench/speed_bench.h"
#include "cli/bench/speed_plot.h"
#include "cli/commands/commands.h"
#include "cli/flags/options.h"
#include "cli/models/get_model.h"
#include "cli/plot/svg.h"

namespace cria::cli {
namespace {

struct BenchOptions {
  ModelChoice model;
  SpeedOptions speed;
  std::string format = "md";
  bool memory = false;
  bool json = false;
  std::string plot_path;
};

Status MeasureMemory(const BenchOptions& options) {
  const std::vector<size_t>& threads = options.speed.threads;
  const bool json = options.json || options.format == "json";
  const std::vector<size_t>& sequences = options.speed.sequences;
  if (threads.size() != 1 || sequences.size() != 1 || (!json && options.format != "md")) {
    return Fail(ErrorCode::kUsage,
                "--memory takes one number of threads and of sequences, and prints md or json");
  }
  EngineOptions engine = options.speed.engine;
  engine.num_threads = threads[0];
  engine.num_sequences = sequences[0];
  return RunMemoryBench(options.speed.model_path, engine, json);
}

Status MeasureSpeed(const BenchOptions& options) {
  const BenchFormat format = options.json || options.format == "json" ? BenchFormat::kJson
                             : options.format == "csv"                ? BenchFormat::kCsv
                                                                      : BenchFormat::kMarkdown;
  const bool plots = !options.plot_path.empty();
  if (plots) CRIA_RETURN_IF_ERROR(CheckPlots(options.speed));
  BenchReport report(format);
  std::vector<nlohmann::ordered_json> rows;  // For the picture.
  const Status status =
      RunSpeedBench(options.speed, [&](const Engine& engine, const SpeedResult& result) {
        nlohmann::ordered_json row = BenchRow(engine, result);
        if (plots) rows.push_back(row);
        report.Add(std::move(row));
      });
  // Also prints the results of a run that was stopped.
  report.Finish();
  if (!status || !plots) return status;
  return WriteFigure(PlotSpeed(rows), options.plot_path);
}

}  // namespace

void AddBenchCommand(CommandLine& program) {
  auto options = std::make_shared<BenchOptions>();
  SpeedOptions& speed = options->speed;
  CommandLine& command = program.AddCommand(
      "bench", "Measure speed, as llama-bench does, or the memory that a model takes");
  AddModelChoice(command, options->model);
  const Option* const speed_only[] = {
      &command.AddList(
          "-p,--n-prompt", speed.prompt_tokens,
          "Prompt tokens to run at once, such as 128,512 for two tests; 0: no such test"),
      &command.AddList("-n,--n-gen", speed.generated_tokens, "Tokens to generate; 0: no such test"),
      &command.AddList("-d,--n-depth", speed.depths,
                       "Tokens that are in the context before a test"),
      &command
           .AddText("-f,--file", speed.text_path,
                    "A text that the tests begin with, instead of made-up tokens")
           .Metavar("FILE"),
      &command.AddNumber("-r,--repetitions", speed.repetitions, "How often each test is run"),
      &command.AddFlag("--products", speed.with_products,
                       "Compare each test with the speed of its matrix products alone"),
      &command.AddFlag("--profile", speed.with_profile,
                       "Print how long each step of the decoder takes (md and json)"),
      &command
           .AddText("--plot", options->plot_path,
                    "Draw speed over depth, rows and threads into this file, as SVG, if the tests "
                    "have several")
           .Metavar("FILE"),
  };
  command
      .AddChoice("-o,--output", options->format, {{"md", "md"}, {"csv", "csv"}, {"json", "json"}},
                 "Output format: md, csv or json")
      .Default(options->format);
  command.AddFlag("--json", options->json, "The same as -o json");
  Option& memory = command.AddFlag(
      "--memory", options->memory,
      "Measure memory instead, from loading to a full context, and compare it with the plan");
  for (const Option* const option : speed_only) memory.Excludes(*option);
  AddEngineOptions(command, speed.engine);
  AddDraftOptions(command, speed.engine);
  // In the other commands, 0 is the model's own length.
  command.RemoveOption("--ctx-size");
  command.AddNumber("-c,--ctx-size", speed.engine.context_tokens,
                    "Tokens that the KV cache holds; 0: as many as the tests need");
  // Lists replace the options with one number.
  command.RemoveOption("--threads");
  command.AddList("-t,--threads", speed.threads, "Threads; 0: one for each fast core");
  command.RemoveOption("--parallel");
  command.AddList("-np,--parallel", speed.sequences,
                  "Sequences that generate at the same time; one reads prompts");
  command.SetAction([options]() -> Status {
    SpeedOptions& values = options->speed;
    CRIA_ASSIGN_OR_RETURN(values.model_path, GetModel(options->model, values.engine));
    return options->memory ? MeasureMemory(*options) : MeasureSpeed(*options);
  });
}

}  // namespace cria::cli
