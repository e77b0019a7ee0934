#include "cli/models/get_model.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/model_name.h"
#include "cli/models/converter_program.h"
#include "cli/models/model_cost.h"
#include "cli/models/model_source.h"
#include "cli/models/model_store.h"
#include "cli/models/named_model.h"
#include "cli/models/new_entry.h"
#include "cli/start_engine.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/shell_word.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "core/output_file.h"
#include "model/model_file.h"

namespace cria::cli {
namespace {

namespace fs = std::filesystem;

// Asks at the terminal; Enter alone is a yes.
bool AsksAndAgrees() {
  std::fputs("Go on? [Y/n] ", stderr);
  std::array<char, 64> line = {};
  if (std::fgets(line.data(), static_cast<int>(line.size()), stdin) == nullptr) return false;
  const std::string_view answer(line.data());
  return answer == "\n" || answer.starts_with('y') || answer.starts_with('Y');
}

// The layout that has most bytes of the model's matrices.
std::string_view MainScheme(const ModelFile& file) {
  std::vector<std::pair<Scheme, uint64_t>> sums;
  for (const StoredTensor& tensor : file.tensors()) {
    const Scheme scheme = tensor.layout.scheme;
    const uint64_t bytes = tensor.data.bytes + tensor.scales.bytes;
    bool is_known = false;
    for (auto& [known, sum] : sums) {
      if (known != scheme) continue;
      sum += bytes;
      is_known = true;
    }
    if (!is_known) sums.emplace_back(scheme, bytes);
  }
  std::pair<Scheme, uint64_t> most = {Scheme::kF32, 0};
  for (const auto& sum : sums) {
    if (sum.second > most.second) most = sum;
  }
  return SchemeName(most.first);
}

Status WriteDescription(const fs::path& folder, const std::string& file_name,
                        const ModelSource& source, const std::string& licence) {
  CRIA_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open((folder / file_name).string()));
  nlohmann::ordered_json description;
  const auto set = [&](const char* key, std::string text) { description[key] = std::move(text); };
  set("name", fs::path(file_name).stem().string());
  set("source", source.checkpoint);
  set("licence", licence);
  set("scheme", std::string(MainScheme(model)));
  set("file", file_name);
  const std::string text =
      description.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  CRIA_ASSIGN_OR_RETURN(OutputFile file,
                        OutputFile::Create(folder / kDescriptionName, text.size()));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(text))));
  return file.Commit();
}

Status ConvertIntoEntry(const ModelStore& store, const ModelSource& source,
                        const std::string& file_name, const NewEntry& entry) {
  std::vector<std::string> words = {source.checkpoint, "-o", (entry.folder() / file_name).string()};
  if (source.is_on_hub()) {
    // What is downloaded is removed only after the model is complete: a later start goes on.
    const std::string cache = store.downloads().string();
    for (const char* word : {"--download-cache", cache.c_str(), "--no-download-cache"}) {
      words.emplace_back(word);
    }
  }
  return RunConverter(words, ConverterOutput::kDropped, entry.descriptor()).transform([](auto&&) {
  });
}

// The error if the user must be asked, but there is no terminal.
std::unexpected<Error> FailToAsk(const ModelSource& source) {
  const char* const what = source.is_on_hub() ? "downloads and converts" : "converts";
  return Fail(
      ErrorCode::kUsage,
      Format("{}: no model of this checkpoint is in the store yet, and there is no terminal "
             "to ask at; -y {} it, and so does cria pull {}",
             source.checkpoint, what, ShellWord(source.checkpoint)));
}

Result<StoredModel> MakeStoredModel(const ModelStore& store, const ModelSource& source,
                                    const EngineOptions& options, bool asks, NewEntry entry) {
  CRIA_ASSIGN_OR_RETURN(const ModelCost cost,
                        AskForCost(source, options, store.downloads(), entry.descriptor()));
  std::fprintf(stderr, "cria: %s", CostText(source, cost, store.folder()).c_str());
  CRIA_RETURN_IF_ERROR(CheckDisk(source, cost, store.folder()));
  if (asks && !AsksAndAgrees()) {
    return Fail(ErrorCode::kCancelled, "nothing was downloaded or converted");
  }
  const std::string file_name = ModelNameFor(source.checkpoint);
  CRIA_RETURN_IF_ERROR(ConvertIntoEntry(store, source, file_name, entry));
  CRIA_RETURN_IF_ERROR(WriteDescription(entry.folder(), file_name, source, cost.licence));
  CRIA_RETURN_IF_ERROR(entry.Commit());
  std::optional<StoredModel> made = store.Find(source.Id());
  if (!made) {
    return Fail(ErrorCode::kIo, Format("{}: another program removed what was just made",
                                       (store.folder() / source.Id()).string()));
  }
  std::fprintf(stderr, "cria: %s is kept, with %s\n", Printable(made->name).c_str(),
               FormatBytes(made->bytes).c_str());
  return *std::move(made);
}

// The model of a checkpoint, which is made if the store does not have it. With `asks`, the user has
// not agreed to that yet.
Result<StoredModel> GetStoredModel(const ModelStore& store, const ModelSource& source,
                                   const EngineOptions& options, bool asks) {
  const std::string id = source.Id();
  while (true) {
    std::error_code ignored;
    // An entry that another process completes after this look is found below.
    const bool exists = fs::exists(store.folder() / id, ignored);
    if (std::optional<StoredModel> stored = store.Find(id)) return *std::move(stored);
    // An entry that lacks its file or description is made again.
    if (exists) CRIA_RETURN_IF_ERROR(RemoveStoredEntry(store.folder(), id));
    if (asks && !(IsTerminal(stdin) && IsTerminal(stderr))) return FailToAsk(source);
    CRIA_ASSIGN_OR_RETURN(std::optional<NewEntry> entry, NewEntry::Begin(store.folder(), id, [] {
                            std::fputs("cria: waiting for another process that gets this model\n",
                                       stderr);
                          }));
    if (entry) return MakeStoredModel(store, source, options, asks, *std::move(entry));
  }
}

}  // namespace

Result<std::string> GetModel(const ModelChoice& choice, const EngineOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const NamedModel named, FindNamedModel(choice.name));
  if (!named.source) return named.path;
  CRIA_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::Open());
  // Each board has a disk of its own, and rank 0 alone would get the model.
  if (NumRanks() > 1 && !store.Find(named.source->Id())) {
    return Fail(ErrorCode::kUsage,
                Format("{}: get the model on each board first, with cria pull {}",
                       named.source->checkpoint, ShellWord(named.source->checkpoint)));
  }
  CRIA_ASSIGN_OR_RETURN(const StoredModel stored,
                        GetStoredModel(store, *named.source, options, !choice.agrees));
  return stored.path.string();
}

}  // namespace cria::cli
