#include "cli/serve/served_models.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/engine_loader.h"
#include "cli/models/get_model.h"
#include "cli/plan/server_memory.h"
#include "cli/start_engine.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "server/api/engine_source.h"

namespace cria::cli {
namespace {

namespace fs = std::filesystem;
using server::EngineSource;

struct ModelPath {
  std::string name;
  std::string path;
};

void Tell(std::string_view sentence) {
  std::fprintf(stderr, "cria-serve: %s\n", Printable(sentence).c_str());
}

std::string NameOf(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  if (name.ends_with(".cria")) name.resize(name.size() - 5);
  return name;
}

// The model files of a folder, in the order of their names.
Result<std::vector<ModelPath>> FindInFolder(const std::string& folder) {
  std::error_code error;
  std::vector<ModelPath> found;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code ignored;
    const std::string path = file->path().string();
    if (!path.ends_with(".cria") || !file->is_regular_file(ignored)) continue;
    found.push_back({NameOf(path), path});
  }
  if (error) {
    return Fail(ErrorCode::kUsage, Format("{}: is no folder of models: {}", folder,
                                          std::string_view(error.message())));
  }
  if (found.empty()) {
    return Fail(ErrorCode::kUsage, Format("{}: has no model files (.cria)", folder));
  }
  std::ranges::sort(found, {}, &ModelPath::name);
  return found;
}

Result<std::vector<ModelPath>> FindModels(const ServeOptions& options) {
  std::vector<ModelPath> models;
  if (!options.models_folder.empty()) {
    CRIA_ASSIGN_OR_RETURN(models, FindInFolder(options.models_folder));
  }
  for (const std::string& name : options.models) {
    CRIA_ASSIGN_OR_RETURN(std::string path,
                          GetModel({.name = name, .agrees = options.agrees}, options.engine));
    models.push_back({NameOf(path), std::move(path)});
  }
  if (models.empty()) {
    return Fail(ErrorCode::kUsage,
                "no model is given: name one or more with -m, or a folder of "
                "model files with --models");
  }
  for (size_t i = 0; i < models.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (models[i].name != models[k].name) continue;
      return Fail(ErrorCode::kUsage, Format("{} and {} would have the same name for clients",
                                            models[k].path, models[i].path));
    }
  }
  return models;
}

// What is only for a server of one model.
Status CheckSeveral(const ServeOptions& options) {
  if (NumRanks() > 1) {
    return Fail(ErrorCode::kUsage, "a server on several ranks has one model");
  }
  if (!options.alias.empty()) {
    return Fail(ErrorCode::kUsage, "--alias is for a server of one model");
  }
  if (!options.engine.draft_model_path.empty()) {
    return Fail(ErrorCode::kUsage, "a draft model is for a server of one model");
  }
  return {};
}

Status CheckPrompts(const ServeOptions& options, bool has_several) {
  const std::string& folder = options.prefix_cache.folder;
  if (folder.empty()) return {};
  if (options.engine.ranks->num_ranks() > 1) {
    return Fail(ErrorCode::kUsage, "--prefix-cache is for a model on one board");
  }
  std::error_code error;
  // Each model has a folder in it.
  if (has_several && fs::create_directory(folder, error)) {
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  if (!error) return {};
  return Fail(ErrorCode::kIo, Format("{}: {}", folder, std::string_view(error.message())));
}

EngineSource::Options SourceOptions(const ServeOptions& options, ModelPath model, bool is_only) {
  const PrefixCacheOptions& prompts = options.prefix_cache;
  EngineSource::Options source = {
      .engine = options.engine,
      .is_only = is_only,
      .max_prompt_bytes = prompts.max_bytes,
      .prompt_writing_time = std::chrono::seconds(options.shutdown_seconds),
      .on_notice = Tell};
  if (is_only) {
    source.load = LoadEngine;
    source.prompt_folder = prompts.folder;
    if (!options.alias.empty()) model.name = options.alias;
  } else {
    source.load = StartEngine;
    const auto tell = [name = model.name](std::string_view sentence) {
      Tell(Format("{}: {}", name, sentence));
    };
    source.engine.on_notice = source.engine.packing.on_notice = tell;
    source.on_loaded = [tell, has_told = false](const server::ServedModel& loaded) mutable {
      if (loaded.call_style.is_known || std::exchange(has_told, true)) return;
      tell(kUnknownCalls);
    };
    if (!prompts.folder.empty()) source.prompt_folder = prompts.folder + "/" + model.name;
  }
  source.name = std::move(model.name);
  source.path = std::move(model.path);
  return source;
}

// What the server uses without a model: each of several is planned beside it.
platform::MemoryUsage MemoryOfServer(const std::vector<MemoryLine>& lines) {
  platform::MemoryUsage usage = platform::ReadMemoryUsage();
  for (const MemoryLine& line : lines) {
    usage.private_bytes += line.bytes;
    usage.virtual_bytes += line.bytes;
  }
  return usage;
}

}  // namespace

Result<std::unique_ptr<server::ModelStore>> OpenServedModels(const ServeOptions& options) {
  CRIA_ASSIGN_OR_RETURN(std::vector<ModelPath> models, FindModels(options));
  const bool is_only = models.size() == 1;
  if (!is_only) CRIA_RETURN_IF_ERROR(CheckSeveral(options));
  CRIA_RETURN_IF_ERROR(CheckPrompts(options, !is_only));
  ServeOptions used = options;
  const std::vector<MemoryLine> lines =
      ServerMemory(options.bounds, options.engine.num_sequences, options.max_waiting,
                   options.prefix_cache, models.size());
  server::ModelStore::Options store = {.keep_alive = options.keep_alive};
  if (is_only) {
    used.engine.other_memory = lines;
    store.keep_alive = server::ModelStore::kForever;
  } else {
    store.program = MemoryOfServer(lines);
  }
  used.engine.other_threads =
      ServerThreads(options.engine.num_sequences, options.prefix_cache, models.size());
  used.engine.num_texts = options.engine.num_sequences;
  // Every sequence may write something that must match a schema.
  used.engine.max_constraints = options.engine.num_sequences;

  std::vector<server::ModelStore::NamedSource> sources;
  sources.reserve(models.size());
  size_t num_usable = 0;
  Status problem;
  for (ModelPath& model : models) {
    EngineSource::Options source_options = SourceOptions(used, std::move(model), is_only);
    std::string name = source_options.name;
    auto source = std::make_unique<EngineSource>(std::move(source_options));
    Status usable;
    if (!is_only) usable = source->Inspect();
    if (usable) usable = source->CheckFits(store.program);
    if (usable) {
      ++num_usable;
    } else {
      Tell(Format("{} cannot be served now: {}", name, usable.error().message()));
      problem = std::move(usable);
    }
    sources.push_back({std::move(name), std::move(source)});
  }
  if (num_usable == 0) return std::unexpected(std::move(problem.error()));
  auto opened = std::make_unique<server::ModelStore>(std::move(sources), std::move(store));
  // Its errors are those of loading.
  if (is_only) CRIA_RETURN_IF_ERROR(opened->Acquire({.index = 0}));
  return opened;
}

}  // namespace cria::cli
