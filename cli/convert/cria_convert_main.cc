#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/convert/cache_check.h"
#include "cli/convert/calibration_sampler.h"
#include "cli/convert/checkpoint_options.h"
#include "cli/convert/checkpoint_source.h"
#include "cli/convert/conversion_check.h"
#include "cli/convert/conversion_report.h"
#include "cli/convert/cost_command.h"
#include "cli/convert/families_command.h"
#include "cli/convert/scheme_table.h"
#include "cli/convert/step_progress.h"
#include "cli/ends.h"
#include "cli/flags/byte_count.h"
#include "cli/flags/options.h"
#include "cli/input/text_file.h"
#include "cli/messages.h"
#include "cli/model_name.h"
#include "cli/plan/memory_report.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/standard_streams.h"
#include "converter/calibrate/shipped_text.h"
#include "converter/convert.h"
#include "converter/step_costs.h"
#include "core/format.h"
#include "core/platform.h"
#include "cria/error.h"

namespace {

using cria::ConvertOptions;
using cria::cli::kExitError;

struct Arguments : cria::cli::CheckpointArguments {
  std::string output;
  bool vocab_only = false;
  std::string calibration_path;
  bool calibrates_itself = false;
  bool rounds = false;  // Instead of calibrating with the text that ships.
  size_t calibration_tokens = 0;
  std::optional<bool> rotation;
  std::optional<std::string> resume_folder;
  double target_bits = 0.0;
  bool plan_only = false;
  cria::cli::DownloadArguments download;
  std::optional<bool> verify;  // Absent: small models are verified.
  std::optional<std::string> verify_path;
};

void AddOptions(cria::cli::CommandLine& command, Arguments& arguments) {
  cria::cli::AddCheckpointOptions(command, arguments);
  command
      .AddText("-o,--output", arguments.output,
               "The model file to write (default: the checkpoint's name with .cria)")
      .Metavar("FILE");
  command.AddFlag("--overwrite", arguments.options.overwrite,
                  "Replace the output even if Cria did not write it");
  command.AddFlag("--vocab-only", arguments.vocab_only,
                  "Write only the tokenizer and the chat template, for cria tokenize; needs no "
                  "weights");
  cria::cli::Option& target_size = command.Add(
      "--target-size", "BYTES",
      [&arguments](std::string_view text) -> cria::Status {
        const std::optional<uint64_t> bytes = cria::cli::ParseByteCount(text);
        if (!bytes || *bytes == 0) return cria::cli::WrongValue(text, "a size, such as 700M");
        arguments.options.target = {.file_bytes = *bytes};
        return {};
      },
      "Choose 2 to 6 or 8 bits for each matrix so that the file is at most this large, such as "
      "700M, and loses little");
  command
      .AddNumber("--target-bits", arguments.target_bits,
                 "The same for this number of bits per weight, such as 5.0", 1.0, 32.0)
      .Default("")
      .Excludes(target_size);
  command.AddFlag("--plan-only", arguments.plan_only,
                  "Only print what would be chosen for the target");
  cria::cli::Option& calibrate =
      command
          .AddText(
              "--calibrate", arguments.calibration_path,
              "Choose the codes of int4 and int8 weights for this text instead of the converter's "
              "own; - is standard input. Lines of JSON are read as conversations")
          .Metavar("FILE");
  cria::cli::Option& calibrate_self =
      command
          .AddFlag("--calibrate-self", arguments.calibrates_itself,
                   "The same for a text that the model itself writes")
          .Excludes(calibrate);
  command
      .AddFlag("--fast", arguments.rounds,
               "Round each weight instead, which takes seconds, but then int4 loses about three "
               "times as much, and int8 almost twice")
      .Excludes(calibrate)
      .Excludes(calibrate_self);
  command
      .AddNumber("--calibration-tokens", arguments.calibration_tokens,
                 "Tokens of the text to use at most (default: of the converter's own 8,192 to "
                 "12,288, and 16,384 for int2, int3 and a target; of yours four for each input of "
                 "the widest matrix, at least 16,384)",
                 size_t{256}, size_t{1} << 24)
      .Default("");
  command.AddChoice("--rotate", arguments.rotation,
                    {{"auto", std::nullopt}, {"always", true}, {"never", false}},
                    "When calibrating, rotate the hidden state: auto (if rounding then loses "
                    "clearly less), always or never [auto]");
  command
      .AddText("--resume", arguments.resume_folder,
               "Keep what calibrating has done in this folder, and go on with what is there")
      .Metavar("FOLDER");
  command
      .AddNumber("-t,--threads", arguments.options.num_threads,
                 "Threads (default: one for each processor)", size_t{1}, size_t{1024})
      .Default("");
  cria::cli::Option& verify = command.AddFlag(
      "--verify", [&arguments] { arguments.verify = true; },
      cria::Format(
          "Compare the model's predictions with those of the checkpoint in f32, and print how far "
          "each matrix moves them, which takes time, disk and memory (default: only the former, "
          "for "
          "up to {} million parameters)",
          cria::cli::kMaxCheckedParameters / 1'000'000));
  cria::cli::Option& verify_text =
      command
          .AddText("--verify-text", arguments.verify_path,
                   "Compare the predictions of this text; - is standard input")
          .Metavar("FILE");
  command
      .AddFlag(
          "--no-verify", [&arguments] { arguments.verify = false; },
          "Do not compare, and do not measure whether the KV cache can be in int8")
      .Excludes(verify)
      .Excludes(verify_text);
  cria::cli::AddDownloadOptions(command, arguments.download);
  command
      .AddFlag("--no-download-cache", arguments.download.removes_files,
               "Remove what was downloaded after it was converted")
      .Group(cria::cli::kDownloadGroup);
}

struct PlanCommand {
  cria::cli::CheckpointArguments source;
  bool rounds = false;
  cria::cli::DownloadArguments download;
  cria::cli::PlanArguments arguments;
  cria::EngineOptions engine;
};

// Every default is as in `cria plan`.
cria::Status Plan(PlanCommand& plan) {
  cria::cli::CheckpointArguments& conversion = plan.source;
  CRIA_ASSIGN_OR_RETURN(const auto source,
                        cria::cli::CheckpointSource::Open(
                            conversion.checkpoint, cria::hub::Purpose::kPlan, plan.download));
  conversion.checkpoint = source.path().string();
  CRIA_RETURN_IF_ERROR(cria::cli::ChooseWeights({.are_rounded = plan.rounds}, conversion));
  CRIA_ASSIGN_OR_RETURN(const cria::ModelOutline outline,
                        source.is_downloaded()
                            ? cria::OutlineConfiguration(source.path(), conversion.options)
                            : cria::OutlineConversion(source.path(), conversion.options));
  return cria::cli::PrintPlan(outline, plan.engine, plan.arguments);
}

void AddPlanCommand(cria::cli::CommandLine& program) {
  auto plan = std::make_shared<PlanCommand>();
  cria::cli::CommandLine& command =
      program.AddCommand("plan", "Print how much memory a checkpoint will take after conversion");
  cria::cli::AddCheckpointOptions(command, plan->source);
  command.AddFlag("--fast", plan->rounds, "Plan for a conversion with --fast, whose int4 is qb4w");
  cria::cli::AddPlanOptions(command, plan->arguments);
  cria::cli::AddContextOptions(command, plan->engine);
  cria::cli::AddDownloadOptions(command, plan->download);
  command.SetAction([plan] { return Plan(*plan); });
}

// One bar for all steps of a conversion, those around it included.
class ConversionBar {
 public:
  explicit ConversionBar(const cria::StepCosts& costs) : steps_(costs) {}

  cria::ProgressCallback Callback() {
    return [this](const cria::ConvertProgress& progress) {
      const cria::cli::StepProgress::Whole whole = steps_.Update(progress);
      bar_.Skip(whole.skipped);
      bar_.Update(whole.done, whole.total, whole.item);
      return true;
    };
  }
  void Clear() { bar_.Clear(); }

 private:
  cria::cli::StepProgress steps_;
  cria::cli::ProgressBar bar_{"converting"};
};

// Whether the options ask for codes that the checkpoint does not have yet.
bool ChoosesCodes(const Arguments& arguments) {
  return !arguments.calibration_path.empty() || arguments.calibrates_itself || arguments.rounds ||
         arguments.calibration_tokens != 0 || arguments.rotation || arguments.resume_folder ||
         arguments.target_bits != 0.0;
}

// Sets the options for a target, for calibrating and for measuring errors.
cria::Status PrepareOptions(Arguments& arguments) {
  ConvertOptions& options = arguments.options;
  if (arguments.verify_path) {
    CRIA_ASSIGN_OR_RETURN(std::string text,
                          cria::cli::ReadTextFile(*arguments.verify_path, cria::cli::LongText()));
    options.error_texts.push_back(std::move(text));
  } else if (arguments.verify == true) {
    const std::span<const char* const> texts = cria::cli::ShortTexts();
    options.error_texts.assign(texts.begin(), texts.end());
  }
  if (arguments.target_bits != 0.0) options.target = {.bits_per_weight = arguments.target_bits};
  if (arguments.rounds && options.keeps_codes) {
    return cria::Fail(cria::ErrorCode::kUsage,
                      "--fast rounds weights, which --weights keep leaves as they are");
  }
  if (arguments.plan_only && !options.target) {
    return cria::Fail(cria::ErrorCode::kUsage, "--plan-only needs --target-size or --target-bits");
  }
  const bool reads_text = !arguments.calibration_path.empty();
  const bool takes_own_text = !reads_text && !arguments.calibrates_itself &&
                              cria::cli::CalibratesByDefault(arguments.options, arguments.rounds);
  if (!reads_text && !arguments.calibrates_itself && !takes_own_text) {
    const char* const flag = arguments.resume_folder             ? "--resume"
                             : arguments.calibration_tokens != 0 ? "--calibration-tokens"
                             : arguments.rotation                ? "--rotate"
                                                                 : nullptr;
    if (flag == nullptr) return {};
    return cria::Fail(
        cria::ErrorCode::kUsage,
        std::string(flag) +
            (arguments.rounds ? " goes without --fast" : " needs --calibrate or --calibrate-self"));
  }
  cria::cli::SetMemoryAdvice("--fast takes less, because it reads one tensor after another");
  cria::CalibrationOptions& calibration = options.calibration.emplace();
  CRIA_RETURN_IF_ERROR(cria::CheckOptions(options));
  calibration.max_tokens = arguments.calibration_tokens;
  calibration.resume_folder = arguments.resume_folder;
  calibration.rotation = arguments.rotation;
  if (reads_text) {
    CRIA_ASSIGN_OR_RETURN(calibration.text, cria::cli::ReadTextFile(arguments.calibration_path,
                                                                    cria::cli::LongText()));
  } else if (takes_own_text) {
    calibration.text = cria::ShippedText();
    calibration.is_optional = true;
  }
  return {};
}

// Lets the model write a text to calibrate with if that is wanted.
cria::Status Sample(Arguments& arguments, const cria::ModelConfig& config, ConversionBar& bar) {
  if (!arguments.calibrates_itself) return {};
  CRIA_ASSIGN_OR_RETURN(arguments.options.calibration->tokens,
                        cria::cli::SampleCalibrationTokens(
                            arguments.checkpoint, arguments.output, config, arguments.options,
                            arguments.calibration_tokens, bar.Callback()));
  return {};
}

cria::Status PrintSchemes(const Arguments& arguments, ConversionBar& bar) {
  CRIA_ASSIGN_OR_RETURN(
      const cria::ChosenSchemes schemes,
      cria::ChooseSchemesFor(arguments.checkpoint, arguments.options, bar.Callback()));
  bar.Clear();
  std::fputs(cria::cli::SchemeTable(schemes.choices, schemes.are_measured).c_str(), stdout);
  if (schemes.are_compared) {
    std::puts(
        "A conversion also chooses codes for a mix of only the two numbers of bits between which "
        "the target\nlies, and stores what loses less.");
  }
  return {};
}

// Whether to compare the model with the checkpoint in f32.
bool IsToBeVerified(const Arguments& arguments, const cria::ModelConfig& config) {
  if (arguments.plan_only) return false;
  if (arguments.verify_path) return true;
  return arguments.verify.value_or(cria::CountParameters(config) <=
                                   cria::cli::kMaxCheckedParameters);
}

// The sentence for the user. Fails if something is wrong with the model.
cria::Result<std::string> Verify(const Arguments& arguments, const cria::Conversion& conversion,
                                 const cria::ModelConfig& config, ConversionBar& bar) {
  const char* const text =
      arguments.verify_path ? arguments.options.error_texts[0].c_str() : nullptr;
  CRIA_ASSIGN_OR_RETURN(
      const cria::cli::ConversionCheck check,
      cria::cli::CheckConversion(
          arguments.checkpoint, arguments.output, conversion, config, arguments.options,
          text != nullptr ? std::span(&text, 1) : cria::cli::ShortTexts(), bar.Callback()));
  if (!check.obstacle) return cria::cli::CheckText(check);
  // Other texts would help.
  const bool is_asked_for = arguments.verify == true || arguments.verify_path;
  if (is_asked_for && check.obstacle->code() == cria::ErrorCode::kUnsupported) {
    return std::unexpected(*check.obstacle);
  }
  return "not verified: " + cria::cli::Printable(cria::cli::Sentence(*check.obstacle));
}

cria::Status ConvertVocabulary(const Arguments& arguments) {
  CRIA_ASSIGN_OR_RETURN(
      const cria::VocabularyReport report,
      cria::ConvertVocabulary(arguments.checkpoint, arguments.output,
                              arguments.options.chat_template, arguments.options.overwrite));
  cria::cli::PrintNotes(report.notes);
  std::printf("%s: a vocabulary of %zu tokens, without weights\n",
              cria::cli::Printable(arguments.output).c_str(), report.num_tokens);
  return {};
}

// Gives the model its name, and prints the report. `verified` may be empty.
cria::Status Finish(const Arguments& arguments, cria::Conversion& conversion,
                    const std::string& verified) {
  CRIA_RETURN_IF_ERROR(conversion.Commit());
  cria::cli::PrintReport(conversion.report(), arguments.output);
  const cria::Scheme weights = arguments.options.weights;
  if (arguments.rounds && weights != cria::Scheme::kF32 && !conversion.report().found_codes) {
    const char* const part = arguments.options.target         ? "less"
                             : weights == cria::Scheme::kQb4w ? "about a third as much"
                             : weights == cria::Scheme::kQc8w ? "about six tenths as much"
                                                              : "less";
    std::printf(
        "each weight is rounded: without --fast, the conversion takes longer, and a small model "
        "loses %s\n",
        part);
  }
  if (!verified.empty()) std::printf("%s\n", verified.c_str());
  return {};
}

cria::Status ConvertLocal(Arguments& arguments) {
  if (arguments.output.empty()) arguments.output = cria::cli::ModelNameFor(arguments.checkpoint);
  cria::cli::RemoveAbandonedChecks(arguments.output);
  if (arguments.vocab_only) return ConvertVocabulary(arguments);
  const char* const how_it_goes_on =
      arguments.resume_folder
          ? "converting was stopped; the same command goes on behind the last finished layer"
          : "converting was stopped; nothing was written";
  const cria::cli::StopSentence stopped(how_it_goes_on, cria::cli::StopSentence::CtrlC::kSignal);
  CRIA_RETURN_IF_ERROR(cria::cli::ChooseWeights(
      {.are_chosen = ChoosesCodes(arguments), .are_rounded = arguments.rounds}, arguments));
  CRIA_RETURN_IF_ERROR(PrepareOptions(arguments));
  CRIA_ASSIGN_OR_RETURN(const cria::ModelOutline outline,
                        cria::OutlineConversion(arguments.checkpoint, arguments.options));
  auto& calibration = arguments.options.calibration;
  if (calibration && calibration->is_optional && calibration->max_tokens == 0) {
    calibration->max_tokens =
        cria::cli::DefaultShippedTextTokens(arguments.options, outline.config);
  }
  const bool verifies = IsToBeVerified(arguments, outline.config);
  ConversionBar bar(cria::EstimateStepCosts(outline.config, arguments.options,
                                            {.samples = arguments.calibrates_itself,
                                             .verifies = verifies,
                                             .writes = !arguments.plan_only}));
  CRIA_RETURN_IF_ERROR(Sample(arguments, outline.config, bar));
  if (arguments.plan_only) return PrintSchemes(arguments, bar);
  cria::cli::CacheCheck cache;
  cria::CacheCallback prefers_f16_cache;
  if (arguments.verify != false) {
    prefers_f16_cache = [&](const cria::platform::File& model) -> cria::Result<bool> {
      cache = cria::cli::CheckCache(model, arguments.options.num_threads);
      return cache.prefers_f16();
    };
  }
  CRIA_ASSIGN_OR_RETURN(
      cria::Conversion conversion,
      cria::ConvertUncommitted(arguments.checkpoint, arguments.output, arguments.options,
                               bar.Callback(), prefers_f16_cache));
  if (std::string text = cria::cli::CheckText(cache); !text.empty()) {
    conversion.AddNote(std::move(text));
  }
  std::string verified;
  // A model that is wrong must not replace an older one.
  if (verifies) {
    const cria::cli::EndWithMemoryLeft end([&] {
      bar.Clear();
      const cria::Status finished = Finish(arguments, conversion, "not verified: memory ran out");
      return finished ? 0 : cria::cli::ReportError("cria-convert", finished.error());
    });
    CRIA_ASSIGN_OR_RETURN(verified, Verify(arguments, conversion, outline.config, bar));
  }
  bar.Clear();
  return Finish(arguments, conversion, verified);
}

cria::Status Convert(Arguments& arguments) {
  using cria::hub::Purpose;
  CRIA_ASSIGN_OR_RETURN(
      const auto source,
      cria::cli::CheckpointSource::Open(
          arguments.checkpoint, arguments.vocab_only ? Purpose::kVocabulary : Purpose::kConversion,
          arguments.download));
  arguments.checkpoint = source.path().string();
  CRIA_RETURN_IF_ERROR(ConvertLocal(arguments));
  source.Finish();
  return {};
}

int Run(int argc, char** argv) {
  cria::cli::CommandLine program(
      "cria-convert", "Converts a checkpoint of the Llama family into a Cria model file.");
  program.SetVersion(cria::Format("cria-convert {}", cria::ConverterVersion()));
  Arguments arguments;
  AddOptions(program, arguments);
  program.SetAction([&arguments] { return Convert(arguments); });
  AddPlanCommand(program);
  cria::cli::AddCostCommand(program);
  cria::cli::AddFamiliesCommand(program);
  const cria::Status result = program.Run(std::vector<std::string>(argv + 1, argv + argc));
  if (result) return cria::cli::FinishOutput("cria-convert");
  return cria::cli::ReportError("cria-convert", result.error());
}

}  // namespace

int main(int argc, char** argv) {
  cria::cli::TakeClosedStreams();
  cria::cli::InstallEndHandlers("cria-convert", "fewer threads (-t) take less");
  try {
    return Run(argc, argv);
  } catch (const std::bad_alloc&) {
    cria::cli::EndWithoutMemory();
  } catch (const std::exception& exception) {
    // Errors of a checkpoint are values; only another library throws here.
    std::fprintf(stderr, "cria-convert: error: %s\n",
                 cria::cli::Printable(exception.what()).c_str());
    return kExitError;
  }
}
