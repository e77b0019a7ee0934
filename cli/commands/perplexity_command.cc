#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/commands.h"
#include "cli/engine_loader.h"
#include "cli/flags/options.h"
#include "cli/input/left_out.h"
#include "cli/input/text_file.h"
#include "cli/report.h"
#include "cli/terminal/progress_bar.h"
#include "core/format.h"
#include "llm/measure/perplexity.h"

namespace cria::cli {
namespace {

struct PerplexityOptions {
  std::string model_path;
  std::string text_path;
  bool json = false;
  bool is_quiet = false;
  EngineOptions engine;
};

Status RunPerplexity(const PerplexityOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.text_path, LongText()));
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                        LoadEngine(options.model_path, options.engine));
  CRIA_ASSIGN_OR_RETURN(
      const std::vector<int32_t> tokens,
      engine->tokenizer().Encode(text, {.add_bos = false, .parse_special = false}));
  if (const std::string notice = LeftOutNotice(engine->tokenizer(), text); !notice.empty()) {
    std::fprintf(stderr, "cria: %s\n", notice.c_str());
  }
  const auto start = std::chrono::steady_clock::now();
  const bool shows_progress = !options.is_quiet && (!options.json || ProgressBar::CanRedraw());
  ProgressBar bar("perplexity");
  CRIA_ASSIGN_OR_RETURN(
      const Perplexity measured,
      MeasurePerplexity(engine->decoder(), tokens, engine->file().vocabulary().bos_token_id,
                        engine->decoder().context_tokens(), [&](const Perplexity& so_far) {
                          if (!shows_progress) return;
                          bar.Update(
                              so_far.predicted_tokens, tokens.size(),
                              Format("{:.4f} nats per token", so_far.mean_negative_log_likelihood));
                        }));
  bar.Clear();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double tokens_per_second = static_cast<double>(measured.predicted_tokens) / seconds.count();
  const double perplexity = std::exp(measured.mean_negative_log_likelihood);
  const size_t num_threads = engine->batch_pool().num_threads();
  if (options.json) {
    PrintJson({{"mean_negative_log_likelihood", measured.mean_negative_log_likelihood},
               {"perplexity", perplexity},
               {"tokens", measured.predicted_tokens},
               {"context_tokens", engine->decoder().context_tokens()},
               {"tokens_per_second", tokens_per_second},
               {"threads", num_threads},
               {"peak_resident_bytes", platform::ReadMemoryUsage().peak_resident_bytes}});
    return {};
  }
  if (!options.is_quiet) {
    std::fprintf(stderr, "%zu tokens, %.1f tok/s, %s, peak memory %s\n", measured.predicted_tokens,
                 tokens_per_second, CountText(num_threads, "thread").c_str(), PeakMemory().c_str());
  }
  std::printf("mean negative log-likelihood: %.6f nats per token\nperplexity: %.4f\ntokens: %zu\n",
              measured.mean_negative_log_likelihood, perplexity, measured.predicted_tokens);
  return {};
}

}  // namespace

void AddPerplexityCommand(CommandLine& program) {
  auto options = std::make_shared<PerplexityOptions>();
  options->engine.max_logit_bytes = kMeasuringLogitBytes;
  CommandLine& command =
      program.AddCommand("perplexity", "Measure how well a model predicts a text");
  AddModelOption(command, options->model_path);
  command.AddText("-f,--file", options->text_path, "The text; -: standard input")
      .Required()
      .Metavar("FILE");
  command.AddFlag("--json", options->json, "Print a JSON object");
  command.AddFlag("-q,--quiet", options->is_quiet, "Print no figures besides the result");
  AddEngineOptions(command, options->engine, KvType::kF32);
  command.SetAction([options] { return RunPerplexity(*options); });
}

}  // namespace cria::cli
