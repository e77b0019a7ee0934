#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/pack_entries.h"
#include "cli/emulator.h"
#include "cli/ends.h"
#include "cli/flags/options.h"
#include "cli/messages.h"
#include "cli/start_engine.h"
#include "cli/terminal/progress_bar.h"
#include "core/cpu_threads.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "model/checksum.h"
#include "model/packed_file.h"
#include "model/path_contents.h"
#include "xnn/known_layouts.h"
#include "xnn/pack_cache.h"
#include "xnn/packed_file_writer.h"

namespace cria::cli {
namespace {

struct PackOptions {
  std::string model_path;
  std::string output_path;
  std::string cache_folder;
  std::string processor;
  size_t num_threads = 0;
  bool standalone = false;
  bool overwrite = false;
  bool list = false;
  bool clear = false;
  bool remove = false;
  std::string entry;
  std::optional<EntryAge> older_than;
  bool json = false;
  bool check = false;
};

// Whether it is what a rank has of a model.
bool IsPart(const ModelFile& model) { return model.packing_digest() != model.digest(); }

// Removes the weights of one model, or old ones.
Status Remove(const PackOptions& options, const xnn::PackCache& cache) {
  const int num_choices = static_cast<int>(!options.model_path.empty()) +
                          static_cast<int>(!options.entry.empty()) +
                          static_cast<int>(options.older_than.has_value());
  if (num_choices != 1) {
    return Fail(
        ErrorCode::kUsage,
        "say which model's packed weights to remove: with -m FILE, with a name or digest that "
        "--list prints, or with --older-than");
  }
  if (options.older_than.has_value()) return RemoveOldEntries(cache, *options.older_than);
  if (!options.entry.empty()) return RemoveEntries(cache, options.entry, options.entry);
  CRIA_ASSIGN_OR_RETURN(ModelFile model, ModelFile::Open(options.model_path));
  CRIA_RETURN_IF_ERROR(TakeNamedPart(model));
  return RemoveEntries(cache, DigestText(model.packing_digest()), options.model_path);
}

Status Check(const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(const PackedFile packed, PackedFile::Open(path));
  CRIA_RETURN_IF_ERROR(packed.VerifyPayload());
  std::printf("%s: every checksum matches\n", Printable(path).c_str());
  return {};
}

// Nothing if this processor cannot pack for the requested one.
Result<std::optional<xnn::PackTarget>> TargetOf(const PackOptions& options,
                                                const ModelFile& model) {
  if (options.processor.empty()) return xnn::ThisProcessor();
  if (options.output_path.empty()) {
    return Fail(ErrorCode::kUsage,
                "the cache takes only weights for this processor: name a file for others "
                "with -o");
  }
  if (const xnn::KnownLayout* known = xnn::FindKnownLayout(options.processor)) {
    return xnn::TargetInPlaceOf(*known, model);
  }
  std::string names;
  for (const xnn::KnownLayout& known : xnn::KnownLayouts()) {
    names += (names.empty() ? "" : ", ") + std::string(known.processor);
  }
  return Fail(ErrorCode::kUsage,
              Format("--for {} is unknown; the known processors are {}", options.processor, names));
}

// Runs the same command with the program for that processor. Returns only if that fails.
Status PackEmulated(const PackOptions& options, const ModelFile& model) {
  if (IsPart(model)) {
    return Fail(ErrorCode::kUnsupported,
                Format("the part of a rank cannot be packed here for {}, which has another "
                       "layout: pack it on the board, or let it be packed at the first start",
                       options.processor));
  }
  std::vector<std::string> arguments = {"pack",
                                        "-m",
                                        options.model_path,
                                        "-o",
                                        options.output_path,
                                        "-t",
                                        std::to_string(options.num_threads),
                                        "--for",
                                        options.processor};
  if (options.standalone) arguments.emplace_back("--standalone");
  if (options.overwrite) arguments.emplace_back("--overwrite");
  return RunEmulated(options.processor, arguments);
}

Status Pack(const PackOptions& options, const xnn::PackCache& cache) {
  if (options.model_path.empty()) {
    return Fail(ErrorCode::kUsage, "say which model to pack with -m, or use --list or --clear");
  }
  CRIA_ASSIGN_OR_RETURN(ModelFile model, ModelFile::Open(options.model_path));
  CRIA_RETURN_IF_ERROR(TakeNamedPart(model));
  if (IsPart(model) && options.standalone) {
    return Fail(ErrorCode::kUsage,
                "a standalone file has a whole model, and not the part of a rank");
  }
  if (!options.check && !options.overwrite && !options.output_path.empty()) {
    CRIA_RETURN_IF_ERROR(CheckReplaceable(options.output_path));
  }
  CRIA_ASSIGN_OR_RETURN(const std::optional<xnn::PackTarget> target, TargetOf(options, model));
  if (!target.has_value()) return PackEmulated(options, model);
  std::string path = options.output_path;
  if (path.empty() && options.standalone) {
    return Fail(ErrorCode::kUsage, "--standalone makes a new model file: name it with -o");
  }
  if (path.empty()) {
    if (cache.folder().empty()) {
      return Fail(ErrorCode::kUsage, "there is no folder for packed weights: name a file with -o");
    }
    CRIA_RETURN_IF_ERROR(cache.MakeFolder());
    cache.RenameOlderFile(model);
    path = cache.PathFor(model);
  }
  if (options.check) return Check(path);
  CRIA_ASSIGN_OR_RETURN(const ThreadPool pool,
                        ThreadPool::Create(ThreadCountOrDefault(options.num_threads)));

  xnn::WrittenPack written;
  {
    const StopSentence stopped("packing was stopped", StopSentence::CtrlC::kExit);
    ProgressBar bar("packing", std::chrono::seconds(1));
    const xnn::PackingProgress progress = [&](uint64_t done, uint64_t total,
                                              std::string_view matrix) {
      bar.Update(done, total, matrix);
      return true;
    };
    const auto write = options.standalone            ? xnn::WriteStandaloneFile
                       : options.output_path.empty() ? xnn::ReplacePackedFile
                                                     : xnn::WritePackedFile;
    CRIA_ASSIGN_OR_RETURN(written, write(model, path, *target, pool, progress));
  }
  std::printf("%s: %s\n", Printable(path).c_str(), FormatBytes(written.file_bytes).c_str());
  if (written.doubled_bytes != 0) {
    std::printf(
        "(this includes %s for the embedding table in its portable form: its rows are read one by "
        "one; as the output head, it is packed as well)\n",
        FormatBytes(written.doubled_bytes).c_str());
  }
  return {};
}

Status RunPack(const PackOptions& options) {
  const xnn::PackCache cache(options.cache_folder);
  if (options.json && !options.list) {
    return Fail(ErrorCode::kUsage, "only --list takes --json");
  }
  if (options.older_than.has_value() && !options.remove) {
    return Fail(ErrorCode::kUsage, "only --remove takes --older-than");
  }
  if (options.list) return ListEntries(cache, options.json);
  if (options.clear) return ClearEntries(cache);
  if (options.remove) return Remove(options, cache);
  if (!options.entry.empty()) {
    return Fail(ErrorCode::kUsage, "only --remove takes a name; give the model with -m");
  }
  return Pack(options, cache);
}

}  // namespace

void AddPackCommand(CommandLine& program) {
  auto options = std::make_shared<PackOptions>();
  CommandLine& command = program.AddCommand(
      "pack", "Pack a model's weights for this processor, so that later starts are fast");
  command.AddText("-m,--model", options->model_path, "The model file (.cria)").Metavar("FILE");
  command
      .AddText("-o,--output", options->output_path,
               "The file to write (default: a file in the cache, which all commands use)")
      .Metavar("FILE");
  command.AddFlag("--overwrite", options->overwrite,
                  "Replace the file of -o even if Cria did not write it");
  command.AddFlag("--standalone", options->standalone,
                  "Write a whole model with packed weights in place of the portable ones");
  Option& list = command.AddFlag("--list", options->list,
                                 "List what the cache holds and whether it is usable");
  command.AddFlag("--json", options->json, "With --list: print JSON");
  Option& clear =
      command.AddFlag("--clear", options->clear, "Remove all packed weights from the cache")
          .Excludes(list);
  command
      .AddFlag("--remove", options->remove,
               "Remove the packed weights of the model of -m, or of NAME: a digest, or a file's "
               "name that --list prints; or those that --older-than says")
      .Excludes(list)
      .Excludes(clear);
  command.AddText("NAME", options->entry, "With --remove: the packed weights to remove")
      .Metavar("NAME");
  command.Add(
      "--older-than", "AGE",
      [&age = options->older_than](std::string_view text) { return ReadEntryAge(text, age); },
      "With --remove: packed weights that are older than so many hours, days or weeks, such as "
      "30d, and that no program uses");
  Option& check = command.AddFlag("--check", options->check,
                                  "Read the packed weights and compare their checksums");
  command
      .AddText("--for", options->processor,
               "Pack for a board's processor, such as cortex-a76, instead of this one; uses an "
               "emulator if this one packs into another layout")
      .Metavar("PROCESSOR")
      .Excludes(check);
  AddPackCacheOption(command, options->cache_folder);
  command.AddNumber("-t,--threads", options->num_threads, "Threads; 0: one for each fast core");
  command.SetAction([options] { return RunPack(*options); });
}

}  // namespace cria::cli
