#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <format>
#include <optional>
#include <string>
#include <string_view>

#include "cli/checkpoint_options.h"
#include "cli/conversion_check.h"
#include "cli/memory_report.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/progress_bar.h"
#include "converter/convert.h"
#include "core/platform.h"
#include "cria/error.h"

namespace {

using cria::ConvertOptions;
using cria::ConvertReport;
using cria::cli::kExitError;
using cria::cli::kExitUsage;

struct Arguments {
  std::string checkpoint;
  std::string output;
  bool vocab_only = false;
  ConvertOptions options;
  std::optional<bool> verify;  // Unless given: where it takes no more than a moment.
};

// The signal that asked to stop, or 0.
volatile std::sig_atomic_t stop_signal = 0;

void OnStopSignal(int signal) { stop_signal = signal; }

void InstallSignalHandlers() {
  struct sigaction action = {};
  action.sa_handler = OnStopSignal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // What the caller had ignored, as nohup does, stays ignored.
    struct sigaction before = {};
    if (sigaction(signal, &action, &before) == 0 && before.sa_handler == SIG_IGN) {
      std::signal(signal, SIG_IGN);
    }
  }
  // A file that grows beyond a limit is then an error like a full disk instead of the end.
  std::signal(SIGXFSZ, SIG_IGN);
}

void AddOptions(CLI::App& app, Arguments& arguments) {
  cria::cli::AddCheckpointOptions(app, arguments.checkpoint, arguments.options);
  app.add_option("-o,--output", arguments.output,
                 "Model file to write (default: the checkpoint's name with .cria)");
  app.add_flag("--vocab-only", arguments.vocab_only,
               "Write the tokenizer and the chat template alone, for cria tokenize; needs no "
               "weights");
  app.add_option("-t,--threads", arguments.options.num_threads,
                 "Threads (default: one for each processor)")
      ->check(CLI::Range(1, 1024));
  app.add_flag_function(
      "--verify,!--no-verify", [&arguments](int64_t count) { arguments.verify = count > 0; },
      std::format(
          "Compare what the model predicts with the checkpoint in f32, which takes disk and "
          "memory for that (default: up to {} million parameters)",
          cria::cli::kMostCheckedParameters / 1'000'000));
}

// Tells how much memory the model would take, with every default as in `cria plan`.
int RunPlan(int argc, char** argv) {
  CLI::App app("Tells how much memory a checkpoint will take once it is converted.",
               "cria-convert plan");
  std::string checkpoint;
  ConvertOptions conversion;
  cria::cli::PlanArguments plan;
  cria::EngineOptions engine;
  cria::cli::AddCheckpointOptions(app, checkpoint, conversion);
  cria::cli::AddPlanOptions(app, plan);
  cria::cli::AddContextOptions(app, engine);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const auto program = cria::platform::ReadMemoryUsage();
  const cria::Status printed =
      cria::OutlineConversion(checkpoint, conversion).and_then([&](const auto& outline) {
        return cria::cli::PrintPlan(outline, engine, plan, program);
      });
  return printed ? cria::cli::FinishOutput("cria-convert")
                 : cria::cli::ReportError("cria-convert", printed.error());
}

std::string DefaultOutput(const std::string& checkpoint) {
  std::error_code error;
  auto path = std::filesystem::absolute(checkpoint, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const bool is_folder = std::filesystem::is_directory(path, error);
  return (is_folder ? path.filename() : path.stem()).string() + ".cria";
}

void PrintReport(const ConvertReport& report, const std::string& output) {
  std::printf("%-26s %-6s %8s %14s %12s %12s %10s\n", "tensors", "scheme", "count", "weights", "MB",
              "RMS error", "relative");
  for (const cria::TensorKindReport& kind : report.kinds) {
    std::printf("%-26s %-6s %8zu %14llu %12.3f %12.3e %9.3f%%\n",
                std::string(cria::TensorRoleName(kind.role)).c_str(),
                std::string(cria::SchemeName(kind.scheme)).c_str(), kind.num_tensors,
                static_cast<unsigned long long>(kind.num_weights),
                static_cast<double>(kind.stored_bytes) / 1e6, kind.rms_error(),
                100.0 * kind.relative_rms_error());
  }
  std::string digest;
  for (const uint8_t byte : report.digest) digest += std::format("{:02x}", byte);
  std::printf("%s: %s, %llu parameters, %.2f bits per weight, %.1f MB, digest %s\n", output.c_str(),
              report.name.c_str(), static_cast<unsigned long long>(report.num_parameters),
              report.bits_per_weight, static_cast<double>(report.file_bytes) / 1e6, digest.c_str());
}

// Shows the progress on `bar`, and cancels where a signal asked to.
cria::ProgressCallback ProgressOn(cria::cli::ProgressBar& bar) {
  return [&bar](const cria::ConvertProgress& progress) {
    bar.Update(progress.done_weights, progress.total_weights, progress.tensor);
    return stop_signal == 0;
  };
}

cria::Result<ConvertReport> RunConvert(const Arguments& arguments) {
  cria::cli::ProgressBar bar("converting");
  return cria::Convert(arguments.checkpoint, arguments.output, arguments.options, ProgressOn(bar));
}

// Whether the model is to be compared with the checkpoint. One in f32 is what would be compared
// with.
bool IsToBeVerified(const Arguments& arguments, const ConvertReport& report) {
  return arguments.verify.value_or(arguments.options.weights != cria::Scheme::kF32 &&
                                   report.num_parameters <= cria::cli::kMostCheckedParameters);
}

cria::Status Verify(const Arguments& arguments) {
  cria::cli::ProgressBar bar("verifying");
  const auto comparison = cria::cli::CheckConversion(arguments.checkpoint, arguments.output,
                                                     arguments.options, ProgressOn(bar));
  if (comparison) {
    std::printf("%s\n", cria::cli::ComparisonText(*comparison).c_str());
  } else if (!arguments.verify && comparison.error().code() == cria::ErrorCode::kUnsupported) {
    // Nobody asked for it.
    std::printf("%s\n", comparison.error().message().c_str());
  } else {
    return std::unexpected(comparison.error());
  }
  return {};
}

// Everything is tidied up: dies of the signal, so that a calling script knows.
void DieOfStopSignal() {
  if (stop_signal == 0) return;
  std::signal(stop_signal, SIG_DFL);
  std::raise(stop_signal);
}

int ConvertVocabulary(const Arguments& arguments) {
  const auto tokens = cria::ConvertVocabulary(arguments.checkpoint, arguments.output,
                                              arguments.options.chat_template);
  if (!tokens) return cria::cli::ReportError("cria-convert", tokens.error());
  std::printf("%s: a vocabulary of %zu tokens, without weights\n", arguments.output.c_str(),
              *tokens);
  return cria::cli::FinishOutput("cria-convert");
}

int Run(int argc, char** argv) {
  // No subcommand of CLI11's, beside which it would ask for the folder to convert.
  if (argc > 1 && std::string_view(argv[1]) == "plan") return RunPlan(argc - 1, argv + 1);
  CLI::App app("Converts a checkpoint of the Llama family into a Cria model file.", "cria-convert");
  app.set_version_flag("--version", std::format("cria-convert {}", cria::ConverterVersion()));
  app.footer("cria-convert plan CHECKPOINT tells how much memory the model will take.");
  Arguments arguments;
  AddOptions(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (arguments.output.empty()) arguments.output = DefaultOutput(arguments.checkpoint);

  if (arguments.vocab_only) return ConvertVocabulary(arguments);
  InstallSignalHandlers();
  const auto report = RunConvert(arguments);
  if (report) {
    PrintReport(*report, arguments.output);
    const cria::Status verified =
        IsToBeVerified(arguments, *report) ? Verify(arguments) : cria::Status();
    if (verified) return cria::cli::FinishOutput("cria-convert");
    const int exit_code = cria::cli::ReportError("cria-convert", verified.error());
    DieOfStopSignal();
    return exit_code;
  }
  const int exit_code = cria::cli::ReportError("cria-convert", report.error());
  DieOfStopSignal();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  cria::cli::InstallOutOfMemoryHandler("cria-convert");
  try {
    return Run(argc, argv);
  } catch (const std::exception& exception) {
    // Not an error of the checkpoint, which would have come as a value.
    std::fprintf(stderr, "cria-convert: error: %s\n", exception.what());
    return kExitError;
  }
}
