#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/engine_loader.h"
#include "cli/eval/choice_evaluation.h"
#include "cli/eval/eval_plot.h"
#include "cli/eval/evaluation_summary.h"
#include "cli/eval/prediction_table.h"
#include "cli/eval/text_evaluation.h"
#include "cli/flags/options.h"
#include "cli/input/left_out.h"
#include "cli/input/text_file.h"
#include "cli/models/get_model.h"
#include "cli/plot/svg.h"
#include "cli/report.h"
#include "cli/start_engine.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/progress_bar.h"
#include "core/format.h"
#include "core/format_bytes.h"

namespace cria::cli {
namespace {

// So many tokens of each model are bars of the picture.
constexpr size_t kFarTokens = 8;

struct EvalOptions {
  std::vector<std::string> models;
  bool agrees = false;
  std::optional<std::string> text_path;
  std::optional<std::string> choices_path;
  std::optional<std::string> base_path;
  std::optional<std::string> logits_path;
  std::optional<std::string> save_path;
  size_t save_top = 0;
  std::optional<std::string> table_path;
  std::optional<std::string> resume_path;
  std::optional<std::string> plot_path;
  bool parse_special = false;
  bool json = false;
  bool is_quiet = false;
  EngineOptions engine;
};

// What identifies an evaluation: parts that are added one after another.
class Identity {
 public:
  void Add(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void Add(const Engine& engine) {
    Add(std::as_bytes(std::span(engine.file().digest())));
    const uint64_t numbers[] = {
        engine.decoder().context_tokens(),
        static_cast<uint64_t>(engine.memory_plan().options.decoder.kv_type)};
    Add(std::as_bytes(std::span(numbers)));
  }
  Digest Finish() const { return Digest128(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Evaluation {
 public:
  explicit Evaluation(const EvalOptions& options) : options_(options) {}

  Status Run() {
    CRIA_RETURN_IF_ERROR(CheckOptions());
    return options_.choices_path ? RunChoices() : RunTexts();
  }

 private:
  Status CheckOptions() const {
    if (!options_.text_path && !options_.choices_path && !options_.logits_path) {
      return Fail(ErrorCode::kUsage, "give a text with --file or questions with --choices");
    }
    if (options_.save_top > 0 && !options_.save_path) {
      return Fail(ErrorCode::kUsage, "--save-top needs --save-logits");
    }
    if (options_.plot_path && !options_.base_path && !options_.logits_path) {
      return Fail(ErrorCode::kUsage,
                  "--plot draws how far models are from a base: give it with --base or --logits");
    }
    if (options_.table_path) CRIA_RETURN_IF_ERROR(CheckTableName(*options_.table_path));
    return has_several() ? CheckSeveral() : Status();
  }

  // Some options are of one model.
  Status CheckSeveral() const {
    const std::pair<const char*, bool> given[] = {
        {"--choices", options_.choices_path.has_value()},
        {"--save-logits", options_.save_path.has_value()},
        {"--per-token", options_.table_path.has_value()},
        {"--resume", options_.resume_path.has_value()},
        {"--packed", !options_.engine.packing.packed_path.empty()}};
    for (const auto& [name, is_given] : given) {
      if (is_given) return Fail(ErrorCode::kUsage, Format("{} is for one model", name));
    }
    if (NumRanks() > 1) return Fail(ErrorCode::kUsage, "several ranks load one model");
    return {};
  }
  bool has_several() const { return options_.models.size() > 1; }
  Result<std::string> ModelPath(const std::string& name) const {
    return GetModel({.name = name, .agrees = options_.agrees}, options_.engine);
  }

  Result<std::optional<ProgressFile>> OpenProgress(const Identity& identity, size_t result_bytes) {
    if (!options_.resume_path) return std::nullopt;
    CRIA_ASSIGN_OR_RETURN(ProgressFile file, ProgressFile::Open(*options_.resume_path,
                                                                identity.Finish(), result_bytes));
    return std::optional(std::move(file));
  }

  bool ShowsProgress() const {
    return !options_.is_quiet && (!options_.json || ProgressBar::CanRedraw());
  }

  // Prints what it was and how fast.
  void PrintFigures(size_t count, const char* what) const {
    if (options_.is_quiet || options_.json) return;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    std::fprintf(stderr, "%zu %s, %.1f s, %s, peak memory %s\n", count, what, seconds.count(),
                 CountText(engine_->batch_pool().num_threads(), "thread").c_str(),
                 PeakMemory().c_str());
  }

  // Several models are objects in a list, in the order in which they were given.
  void Print(nlohmann::ordered_json json, const std::string& text) {
    if (!options_.json) {
      std::fputs(text.c_str(), stdout);
      return;
    }
    json["context_tokens"] = engine_->decoder().context_tokens();
    json["threads"] = engine_->batch_pool().num_threads();
    json["peak_resident_bytes"] = platform::ReadMemoryUsage().peak_resident_bytes;
    if (!has_several()) {
      PrintJson(json);
      return;
    }
    results_.push_back(std::move(json));
    if (results_.size() == options_.models.size()) PrintJson(results_);
  }

  Status RunChoices() {
    CRIA_ASSIGN_OR_RETURN(const std::string lines,
                          ReadTextFile(*options_.choices_path, LongText()));
    CRIA_ASSIGN_OR_RETURN(const std::vector<ChoiceQuestion> questions,
                          ReadChoiceQuestions(lines, *options_.choices_path));
    CRIA_ASSIGN_OR_RETURN(const std::string path, ModelPath(options_.models.front()));
    CRIA_ASSIGN_OR_RETURN(engine_, LoadEngine(path, options_.engine));
    Identity identity;
    identity.Add(*engine_);
    identity.Add(std::as_bytes(std::span(lines)));
    CRIA_ASSIGN_OR_RETURN(std::optional<ProgressFile> progress,
                          OpenProgress(identity, sizeof(ChoiceResult)));
    ProgressBar bar("eval", std::chrono::seconds(1));
    start_ = std::chrono::steady_clock::now();
    CRIA_ASSIGN_OR_RETURN(
        const std::vector<ChoiceResult> results,
        EvaluateChoices(engine_->decoder(), engine_->tokenizer(), questions,
                        progress ? &*progress : nullptr, [&](std::span<const ChoiceResult> so_far) {
                          if (!ShowsProgress()) return;
                          bar.Update(so_far.size(), questions.size(), "questions");
                        }));
    bar.Clear();
    PrintFigures(results.size(), "questions");
    Print(ChoiceSummaryJson(results), ChoiceSummaryText(results));
    return {};
  }

  // The base's engine, if there is one, whose predictions are of the same tokens. Of several
  // models, the first one loads it for all, unless the context of another is shorter.
  Status LoadBase() {
    if (!options_.base_path) return {};
    const size_t context_tokens = engine_->decoder().context_tokens();
    if (base_ && base_->decoder().context_tokens() != context_tokens) base_.reset();
    if (NumRanks() > 1) {
      return Fail(ErrorCode::kUsage,
                  "several ranks load one model: write the base's predictions with --save-logits, "
                  "and compare with them by --logits");
    }
    if (!base_) {
      EngineOptions engine = options_.engine;
      engine.context_tokens = context_tokens;
      engine.packing.packed_path.clear();
      CRIA_ASSIGN_OR_RETURN(base_, LoadEngine(*options_.base_path, engine));
    }
    if (base_->decoder().vocab_size() != engine_->decoder().vocab_size()) {
      return Fail(ErrorCode::kUsage, "the model and its base have vocabularies of different sizes");
    }
    return {};
  }

  Result<std::vector<int32_t>> Tokens(const SavedLogits* saved) const {
    const EncodeOptions encoding = {.add_bos = false, .parse_special = options_.parse_special};
    if (!options_.text_path) return saved->of().tokens;
    CRIA_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                          engine_->tokenizer().Encode(text_, encoding));
    if (const std::string notice = LeftOutNotice(engine_->tokenizer(), text_); !notice.empty()) {
      std::fprintf(stderr, "cria: %s\n", notice.c_str());
    }
    if (base_) {
      CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> base_tokens,
                            base_->tokenizer().Encode(text_, encoding));
      if (base_tokens != tokens) {
        return Fail(ErrorCode::kUsage, "the model and its base have different tokenizers");
      }
    }
    if (saved != nullptr && saved->of().tokens != tokens) {
      return Fail(ErrorCode::kUsage, *options_.logits_path + ": is of another text or tokenizer");
    }
    return tokens;
  }

  Status CheckSaved(const SavedLogits& saved) const {
    const SavedLogitsOf& of = saved.of();
    if (of.vocab_size != engine_->decoder().vocab_size()) {
      return Fail(ErrorCode::kUsage,
                  Format("{}: has a vocabulary of {} tokens, the model {}", *options_.logits_path,
                         of.vocab_size, engine_->decoder().vocab_size()));
    }
    if (of.bos_token_id != bos()) {
      return Fail(ErrorCode::kUsage, *options_.logits_path + ": is of another tokenizer");
    }
    return {};
  }

  int32_t bos() const { return engine_->file().vocabulary().bos_token_id; }

  Result<std::optional<SavedLogits>> OpenSaved() {
    if (!options_.logits_path) return std::nullopt;
    CRIA_ASSIGN_OR_RETURN(SavedLogits saved, SavedLogits::Open(*options_.logits_path));
    size_t& context = engine_options_.context_tokens;
    if (context != 0 && context != saved.of().window_tokens) {
      return Fail(ErrorCode::kUsage, Format("{}: is of a context of {} tokens",
                                            *options_.logits_path, saved.of().window_tokens));
    }
    context = saved.of().window_tokens;
    return std::optional(std::move(saved));
  }

  Result<std::optional<SavedLogitsWriter>> CreateSave(const std::vector<int32_t>& tokens) const {
    if (!options_.save_path) return std::nullopt;
    const size_t vocab_size = engine_->decoder().vocab_size();
    if (options_.save_top > vocab_size) {
      return Fail(ErrorCode::kUsage, Format("--save-top must be at most {}, the tokens of the "
                                            "vocabulary",
                                            vocab_size));
    }
    SavedLogitsOf of = {.tokens = tokens,
                        .bos_token_id = bos(),
                        .window_tokens = static_cast<uint32_t>(engine_->decoder().context_tokens()),
                        .vocab_size = static_cast<uint32_t>(vocab_size),
                        .kept_tokens = static_cast<uint32_t>(options_.save_top)};
    if (!options_.is_quiet) {
      std::fprintf(stderr, "%s will have %s: %zu positions of %zu tokens\n",
                   options_.save_path->c_str(), FormatBytes(of.file_bytes()).c_str(),
                   of.num_predictions(), options_.save_top == 0 ? vocab_size : options_.save_top);
    }
    CRIA_ASSIGN_OR_RETURN(SavedLogitsWriter writer,
                          SavedLogitsWriter::Create(*options_.save_path, std::move(of)));
    return std::optional(std::move(writer));
  }

  Status RunTexts() {
    engine_options_ = options_.engine;
    CRIA_ASSIGN_OR_RETURN(std::optional<SavedLogits> saved, OpenSaved());
    if (options_.text_path) {
      CRIA_ASSIGN_OR_RETURN(text_, ReadTextFile(*options_.text_path, LongText()));
    }
    std::vector<ComparedModel> compared;
    for (const std::string& name : options_.models) {
      engine_.reset();
      CRIA_RETURN_IF_ERROR(RunText(name, saved, compared));
    }
    if (!options_.plot_path) return {};
    const std::string& base = options_.base_path ? *options_.base_path : *options_.logits_path;
    return WriteFigure(PlotEvaluation(compared, ShownName(base)), *options_.plot_path);
  }

  // The name of a model's file; of another name of a model, all of it.
  static std::string ShownName(const std::string& name) {
    std::error_code error;
    const bool is_path = std::filesystem::exists(name, error);
    return Printable(is_path ? std::filesystem::path(name).filename().string() : name);
  }

  // Adds the comparison to `compared` if it will be drawn.
  Status RunText(const std::string& name, std::optional<SavedLogits>& saved,
                 std::vector<ComparedModel>& compared) {
    CRIA_ASSIGN_OR_RETURN(const std::string path, ModelPath(name));
    CRIA_ASSIGN_OR_RETURN(engine_, LoadEngine(path, engine_options_));
    if (saved) CRIA_RETURN_IF_ERROR(CheckSaved(*saved));
    CRIA_RETURN_IF_ERROR(LoadBase());
    CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, Tokens(saved ? &*saved : nullptr));
    Decoder& decoder = engine_->decoder();
    CRIA_ASSIGN_OR_RETURN(const TextWindows windows,
                          TextWindows::Create(tokens, bos(), decoder.context_tokens(),
                                              decoder.context_tokens(), decoder.vocab_size()));
    Identity identity;
    identity.Add(*engine_);
    if (base_) identity.Add(*base_);
    if (saved) identity.Add(std::as_bytes(std::span(saved->digest())));
    identity.Add(std::as_bytes(std::span(tokens)));
    CRIA_ASSIGN_OR_RETURN(std::optional<ProgressFile> progress,
                          OpenProgress(identity, sizeof(TokenPrediction)));
    CRIA_ASSIGN_OR_RETURN(std::optional<SavedLogitsWriter> save, CreateSave(tokens));
    ProgressBar bar("eval", std::chrono::seconds(1));
    const bool has_base = base_ || saved;
    start_ = std::chrono::steady_clock::now();
    const TextEvaluation evaluation = {.model = &decoder,
                                       .base = base_ ? &base_->decoder() : nullptr,
                                       .saved_base = saved ? &*saved : nullptr,
                                       .save = save ? &*save : nullptr,
                                       .progress = progress ? &*progress : nullptr,
                                       .on_window = [&](std::span<const TokenPrediction> so_far) {
                                         if (ShowsProgress())
                                           bar.Update(so_far.size(), windows.num_targets(),
                                                      "tokens");
                                       }};
    CRIA_ASSIGN_OR_RETURN(const std::vector<TokenPrediction> predictions,
                          EvaluateText(windows, evaluation));
    bar.Clear();
    if (save) CRIA_RETURN_IF_ERROR(save->Commit());
    if (options_.table_path) {
      CRIA_RETURN_IF_ERROR(
          WritePredictions(*options_.table_path, predictions, has_base, engine_->tokenizer()));
    }
    PrintFigures(predictions.size(), "tokens");
    const TextSummary summary = SummarizeText(predictions, has_base);
    const double bits = BitsPerWeight(OutlineOf(engine_->file()));
    std::string text = SummaryText(summary);
    nlohmann::ordered_json json;
    if (has_several()) json["model"] = name;
    json.update(SummaryJson(summary));
    json["bits_per_weight"] = bits;
    if (has_several()) {
      text = Format("{}{}, {:.2f} bits per weight\n{}", &name == options_.models.data() ? "" : "\n",
                    Printable(name), bits, text);
    }
    Print(std::move(json), text);
    if (options_.plot_path) {
      compared.push_back(
          {.name = ShownName(name),
           .bits_per_weight = bits,
           .summary = summary,
           .far_tokens = FindFarTokens(predictions, engine_->tokenizer(), kFarTokens)});
    }
    return {};
  }

  const EvalOptions& options_;
  EngineOptions engine_options_;
  std::string text_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Engine> base_;
  nlohmann::ordered_json results_ = nlohmann::ordered_json::array();
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

void AddEvalCommand(CommandLine& program) {
  auto options = std::make_shared<EvalOptions>();
  options->engine.max_logit_bytes = kMeasuringLogitBytes;
  CommandLine& command = program.AddCommand(
      "eval", "Compare a model's predictions of a text with a base's, or ask it multiple choice");
  command
      .Add(
          "-m,--model", "MODEL",
          [models = &options->models](std::string_view name) -> Status {
            models->emplace_back(name);
            return {};
          },
          std::string(kModelNameHelp) + "; may be repeated")
      .Environment("CRIA_MODEL")
      .Required()
      .Positional()
      .Repeatable();
  AddAgreement(command, options->agrees);
  Option& text = command.AddText("-f,--file", options->text_path, "The text; -: standard input")
                     .Metavar("FILE");
  Option& base =
      command
          .AddText("--base", options->base_path, "Compare with this model file, such as one in f32")
          .Metavar("FILE");
  Option& logits = command
                       .AddText("--logits", options->logits_path,
                                "Compare with what --save-logits saved; the text may be left out")
                       .Metavar("FILE")
                       .Excludes(base);
  Option& save = command
                     .AddText("--save-logits", options->save_path,
                              "Save the logarithms of all probabilities as f16")
                     .Metavar("FILE");
  command
      .AddNumber("--save-top", options->save_top,
                 "Save only this many of the most likely tokens; 0: all")
      .Metavar("N");
  Option& table = command
                      .AddText("--per-token", options->table_path,
                               "Write a row for each token: .csv, .jsonl or .json")
                      .Metavar("FILE");
  Option& plot =
      command
          .AddText("--plot", options->plot_path,
                   "Draw divergence over bits per weight, and the worst tokens, into this SVG file")
          .Metavar("FILE");
  command
      .AddText("--choices", options->choices_path,
               "Questions: in each line a JSON object with context, choices and label")
      .Metavar("FILE")
      .Excludes(text)
      .Excludes(base)
      .Excludes(logits)
      .Excludes(save)
      .Excludes(table)
      .Excludes(plot);
  command
      .AddText("--resume", options->resume_path,
               "Keep results in this file, and go on with those that it has")
      .Metavar("FILE")
      .Excludes(save);
  command.AddFlag("--parse-special", options->parse_special,
                  "Names of control tokens in the text become these tokens, as in a conversation "
                  "that the chat template wrote");
  command.AddFlag("--json", options->json, "Print a JSON object");
  command.AddFlag("-q,--quiet", options->is_quiet, "Print no figures besides the result");
  AddEngineOptions(command, options->engine, KvType::kF32);
  command.SetAction([options] { return Evaluation(*options).Run(); });
}

}  // namespace cria::cli
