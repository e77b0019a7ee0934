#include "cli/models/model_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>

#include "cli/models/converter_program.h"
#include "cli/models/json_object.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "ops/kv_cache_view.h"

namespace cria::cli {
namespace {

namespace fs = std::filesystem;

// The options that decide what the model takes, as cria-convert has them.
std::vector<std::string> ContextWords(const EngineOptions& options) {
  std::vector<std::string> words = {"-np", Format("{}", options.num_sequences)};
  if (options.kv_type) {
    words.emplace_back("--kv");
    words.emplace_back(KvTypeName(*options.kv_type));
  }
  if (options.context_tokens != 0) {
    words.emplace_back("-c");
    words.push_back(
        options.context_tokens == kModelsOwnContext ? "0" : Format("{}", options.context_tokens));
  }
  return words;
}

std::string DurationText(double seconds) {
  if (seconds < 60.0) return Format("{:.0f} s", std::max(1.0, std::ceil(seconds)));
  if (seconds < 5400.0) return Format("{:.0f} min", std::ceil(seconds / 60.0));
  return Format("{:.1f} h", seconds / 3600.0);
}

uint64_t CostInDisk(const ModelCost& cost) {
  const uint64_t download = cost.download_bytes.value_or(0);
  // The model file is hardly larger than what it is made of.
  const uint64_t file = cost.file_bytes.value_or(download);
  return download > std::numeric_limits<uint64_t>::max() - file
             ? std::numeric_limits<uint64_t>::max()
             : download + file;
}

// The folder's disk; also if the folder does not exist yet.
std::optional<uint64_t> FreeBytes(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  if (error) return std::nullopt;
  return space.available;
}

}  // namespace

Result<ModelCost> AskForCost(const ModelSource& source, const EngineOptions& options,
                             const fs::path& downloads, int lock) {
  std::vector<std::string> words = {"cost", source.checkpoint, "--download-cache",
                                    downloads.string()};
  for (std::string& word : ContextWords(options)) words.push_back(std::move(word));
  CRIA_ASSIGN_OR_RETURN(const std::string text,
                        RunConverter(words, ConverterOutput::kReturned, lock));
  JsonObject json(text);
  if (!json.is_object()) {
    return Fail(ErrorCode::kInternal,
                "cria-convert printed something else than what a model costs; install the version "
                "that belongs to this program");
  }
  return ModelCost{.licence = json.Text("licence"),
                   .download_bytes = json.WholeNumber("download_bytes"),
                   .file_bytes = json.WholeNumber("model_file_bytes"),
                   .convert_seconds = json.Number("convert_seconds"),
                   .peak_bytes = json.WholeNumber("peak_bytes"),
                   .context_tokens = json.WholeNumber("context_tokens").value_or(0)};
}

std::string CostText(const ModelSource& source, const ModelCost& cost, const fs::path& store) {
  std::string text = Format("{} becomes a model in {}:\n", Printable(source.checkpoint),
                            Printable(store.string()));
  if (source.is_on_hub()) {
    text += Format(
        "  download  {}, {}\n",
        cost.download_bytes ? FormatBytes(*cost.download_bytes) : "of a size that is not known",
        cost.licence.empty() ? "no licence is given" : "licence " + Printable(cost.licence));
  }
  if (cost.convert_seconds) {
    text += Format("  convert   {} on a fast computer, longer on a board\n",
                   DurationText(*cost.convert_seconds));
  }
  const std::optional<uint64_t> free = FreeBytes(store);
  text +=
      Format("  disk      {}{}{}\n",
             cost.file_bytes ? FormatBytes(*cost.file_bytes) : "about as much as the checkpoint",
             free ? Format("; {} are free", FormatBytes(*free)) : "",
             source.is_on_hub() ? "; the download is removed afterwards" : "");
  if (cost.peak_bytes) {
    text += Format("  memory    {} with {} tokens of context\n", FormatBytes(*cost.peak_bytes),
                   cost.context_tokens);
  }
  return text;
}

// This counts download and model together; the converter later checks its download alone.
Status CheckDisk(const ModelSource& source, const ModelCost& cost, const fs::path& store) {
  const std::optional<uint64_t> free = FreeBytes(store);
  const uint64_t needed = CostInDisk(cost);
  if (!free || needed <= *free) return {};
  return Fail(ErrorCode::kIo,
              Format("{}: the download and the model need {}, but only {} are free on the disk of "
                     "{}; make room, or name a folder on another disk with CRIA_MODELS",
                     source.checkpoint, FormatBytes(needed), FormatBytes(*free), store.string()));
}

}  // namespace cria::cli
