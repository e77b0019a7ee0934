#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/embed/embedding_printer.h"
#include "cli/embed/text_embeddings.h"
#include "cli/embed/vector_norm.h"
#include "cli/engine_loader.h"
#include "cli/flags/options.h"
#include "cli/input/text_file.h"
#include "cli/models/get_model.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"

namespace cria::cli {
namespace {

constexpr size_t kEmbedSequences = 4;
constexpr int64_t kEuclidean = 2;

struct EmbedOptions {
  ModelChoice model;
  std::vector<std::string> given;  // Texts of the command line.
  std::optional<std::string> file;
  std::string separator = "\n";
  std::optional<Pooling> pooling;
  int64_t norm = kEuclidean;
  EmbeddingFormat format = EmbeddingFormat::kTable;
  bool is_quiet = false;
  EngineOptions engine;
};

// The texts between separators. One at the end of the file ends the last text, and a line may end
// as Windows ends it.
std::vector<std::string_view> DivideTexts(std::string_view file, std::string_view separator) {
  std::vector<std::string_view> texts;
  while (!file.empty()) {
    const size_t end = std::min(file.find(separator), file.size());
    std::string_view text = file.substr(0, end);
    file.remove_prefix(std::min(end + separator.size(), file.size()));
    if (separator == "\n" && text.ends_with('\r')) text.remove_suffix(1);
    texts.push_back(text);
  }
  return texts;
}

// What the command keeps besides what the engine plans for each text that runs.
Result<MemoryLine> TextMemory(const std::string& model_path, const EmbedOptions& options,
                              size_t file_bytes, size_t num_texts) {
  uint64_t bytes = file_bytes + num_texts * sizeof(std::string_view);
  if (EmbeddingPrinter::ComparesTexts(options.format) && num_texts > 1) {
    CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(model_path));
    bytes += uint64_t{num_texts} * file.config().hidden_size * sizeof(float);
  }
  return MemoryLine::Other("embed: texts", MemoryKind::kPrivate, bytes);
}

Status CheckTexts(const EmbedOptions& options, size_t num_texts) {
  if (num_texts == 0) {
    return Fail(ErrorCode::kUsage,
                options.file || !IsTerminal(stdin)
                    ? "there is no text to embed: the file is empty"
                    : "there is no text to embed: give it behind the model, with -f or by a pipe");
  }
  if (EmbeddingPrinter::ComparesTexts(options.format) &&
      num_texts > EmbeddingPrinter::kMaxComparedTexts) {
    return Fail(ErrorCode::kUsage,
                Format("{} texts are too many to compare, of which there may be {}; "
                       "--embd-output-format array, json and raw compare none",
                       num_texts, EmbeddingPrinter::kMaxComparedTexts));
  }
  return {};
}

Status RunEmbed(EmbedOptions options) {
  std::string file;
  std::vector<std::string_view> texts(options.given.begin(), options.given.end());
  if (options.separator.empty()) {
    return Fail(ErrorCode::kUsage, "--embd-separator is empty: texts could not be told apart");
  }
  if (texts.empty() && (options.file || !IsTerminal(stdin))) {
    CRIA_ASSIGN_OR_RETURN(file, ReadTextFile(options.file.value_or("-"), LongText()));
    texts = DivideTexts(file, options.separator);
  }
  CRIA_RETURN_IF_ERROR(CheckTexts(options, texts.size()));
  options.engine.other_threads = options.engine.num_sequences;
  options.engine.num_texts = options.engine.num_sequences;
  CRIA_ASSIGN_OR_RETURN(const std::string path, GetModel(options.model, options.engine));
  CRIA_ASSIGN_OR_RETURN(MemoryLine memory, TextMemory(path, options, file.size(), texts.size()));
  options.engine.other_memory.push_back(std::move(memory));
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, LoadEngine(path, options.engine));

  TextEmbeddings embeddings(*engine, texts, !options.is_quiet);
  CRIA_RETURN_IF_ERROR(embeddings.Check());
  const auto start = std::chrono::steady_clock::now();
  EmbeddingPrinter printer(options.format, texts);
  const bool is_euclidean = options.norm == kEuclidean;
  CRIA_RETURN_IF_ERROR(embeddings.Run(
      {.pooling = options.pooling.value_or(engine->pooling()), .is_normalized = is_euclidean},
      [&](size_t index, std::span<float> embedding) {
        if (!is_euclidean) NormalizeBy(options.norm, embedding);
        printer.Print(index, embedding);
      }));
  printer.Finish(std::filesystem::path(path).stem().string(), embeddings.num_tokens());
  if (!options.is_quiet) {
    const double seconds = MillisecondsSince(start) / 1000.0;
    std::fprintf(stderr, "%s, %zu tokens in %.1f s, %.1f tok/s\n",
                 CountText(texts.size(), "text").c_str(), embeddings.num_tokens(), seconds,
                 static_cast<double>(embeddings.num_tokens()) / seconds);
  }
  return {};
}

void AddTextOptions(CommandLine& command, EmbedOptions& options) {
  Option& given = command
                      .Add(
                          "-p,--prompt", "TEXT",
                          [&options](std::string_view text) -> Status {
                            options.given.emplace_back(text);
                            return {};
                          },
                          "A text to embed; also without -p; may be repeated")
                      .Positional()
                      .Repeatable();
  command
      .AddText("-f,--file", options.file,
               "A file with a text in each line; -: standard input, which is the default if it is "
               "not a terminal")
      .Excludes(given)
      .Metavar("FILE");
  command
      .AddText("--embd-separator", options.separator,
               "What stands between the texts of the file (default: a line end)")
      .Metavar("TEXT");
}

}  // namespace

void AddEmbedCommand(CommandLine& program) {
  auto options = std::make_shared<EmbedOptions>();
  options->engine.num_sequences = kEmbedSequences;
  CommandLine& command = program.AddCommand("embed", "Print the embeddings of texts");
  AddModelChoice(command, options->model);
  AddTextOptions(command, *options);
  command.AddChoice(
      "--pooling", options->pooling,
      {{"last", std::optional(Pooling::kLast)}, {"mean", std::optional(Pooling::kMean)}},
      "Take the hidden state of the last token, or the mean of all: last or mean (default: what "
      "the model file says, or last)");
  command.AddNumber("--embd-normalize", options->norm,
                    "-1: as they are; 0: the largest number becomes 32760; 1: the sum of absolute "
                    "values becomes 1; 2: the Euclidean norm; p: the p-norm",
                    int64_t{-1}, int64_t{1000});
  command
      .AddChoice("--embd-output-format", options->format,
                 {{"table", EmbeddingFormat::kTable},
                  {"array", EmbeddingFormat::kArray},
                  {"json", EmbeddingFormat::kJson},
                  {"json+", EmbeddingFormat::kJsonAndSimilarities},
                  {"raw", EmbeddingFormat::kRaw}},
                 "table: for people, with the cosine similarities of several texts; array: "
                 "lists; json: OpenAI's form; json+: that and the similarities; raw: a line of "
                 "numbers for each text")
      .Default("table");
  command.AddFlag("-q,--quiet", options->is_quiet, "Print no figures");
  AddEngineOptions(command, options->engine);
  command.SetAction([options] { return RunEmbed(*options); });
}

}  // namespace cria::cli
