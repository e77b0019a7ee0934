#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/text_file.h"
#include "llm/perplexity.h"

namespace cria::cli {
namespace {

struct PerplexityOptions {
  std::string model_path;
  std::string text_path;
  EngineOptions engine;
};

Status RunPerplexity(const PerplexityOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.text_path));
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                        Engine::Load(options.model_path, options.engine));
  CRIA_ASSIGN_OR_RETURN(
      const std::vector<int32_t> tokens,
      engine->tokenizer().Encode(text, {.add_bos = false, .parse_special = false}));
  const bool live = IsTerminal(stderr);
  CRIA_ASSIGN_OR_RETURN(
      const Perplexity measured,
      MeasurePerplexity(engine->decoder(), tokens, engine->file().vocabulary().bos_token_id,
                        engine->session().context_tokens(), [&](const Perplexity& so_far) {
                          std::fprintf(stderr, "%s%zu of %zu tokens, %.4f nats per token%s",
                                       live ? "\r" : "", so_far.predicted_tokens, tokens.size(),
                                       so_far.mean_negative_log_likelihood, live ? "" : "\n");
                        }));
  if (live) std::fputc('\n', stderr);
  std::printf("mean negative log-likelihood: %.6f nats per token\nperplexity: %.4f\ntokens: %zu\n",
              measured.mean_negative_log_likelihood,
              std::exp(measured.mean_negative_log_likelihood), measured.predicted_tokens);
  return {};
}

}  // namespace

void AddPerplexityCommand(CLI::App& app, Status& result) {
  auto options = std::make_shared<PerplexityOptions>();
  CLI::App* command = app.add_subcommand("perplexity", "Measure how well a model predicts a text");
  AddModelOption(*command, options->model_path);
  command->add_option("-f,--file", options->text_path, "The text")->required()->type_name("FILE");
  AddEngineOptions(*command, options->engine);
  command->callback([options, &result] { result = RunPerplexity(*options); });
}

}  // namespace cria::cli
