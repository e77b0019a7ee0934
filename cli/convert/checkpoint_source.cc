#include "cli/convert/checkpoint_source.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/ends.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/progress_bar.h"
#include "converter/convert.h"
#include "converter/hub/checkpoint_name.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "core/platform.h"

namespace cria::cli {
namespace {

// The value without spaces and line breaks around it; "" if it is not set.
std::string EnvironmentValue(const char* name) {
  const char* value = std::getenv(name);
  const std::string_view text = value == nullptr ? "" : value;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

Result<hub::DownloadedCheckpoint> DownloadWithProgress(const hub::CheckpointName& name,
                                                       hub::Purpose purpose,
                                                       const DownloadArguments& arguments) {
  const StopSentence stopped(
      "downloading was stopped; the same command continues after the last byte",
      StopSentence::CtrlC::kSignal);
  ProgressBar bar("downloading", std::chrono::seconds(2));
  const hub::DownloadEvents events = {
      .progress =
          [&bar](std::string_view file, uint64_t done_bytes, uint64_t total_bytes) {
            bar.Update(
                done_bytes, total_bytes,
                Format("{} of {}, {}", FormatBytes(done_bytes), FormatBytes(total_bytes), file));
          },
      .waiting =
          [] {
            std::fputs("cria-convert: waiting for another process that uses this checkpoint\n",
                       stderr);
          }};
  return hub::Download(name, purpose, DownloadOptionsOf(arguments), events);
}

void PrintDownload(const hub::CheckpointName& name, const hub::DownloadedCheckpoint& download) {
  const std::string licence =
      download.licence().empty() ? "no licence is given" : "licence " + download.licence();
  std::printf("%s\n", Printable(Format("hf:{}: {}, commit {}, files in {}", name.repository(),
                                       licence, download.commit(), download.folder().string()))
                          .c_str());
  std::fflush(stdout);  // Printed even if the conversion is stopped.
}

// Fails if there is no such path, but it could be a model on the hub whose "hf:" was forgotten.
Status CheckIsNoHubName(const std::string& checkpoint) {
  std::error_code ignored;
  const std::string name = "hf:" + checkpoint;
  if (std::filesystem::exists(checkpoint, ignored) || !hub::ParseCheckpointName(name)) return {};
  return Fail(ErrorCode::kNotFound,
              Format("{}: does not exist; a model on the hub is written {}", checkpoint, name));
}

}  // namespace

hub::DownloadOptions DownloadOptionsOf(const DownloadArguments& arguments) {
  hub::DownloadOptions options;
  if (const std::string endpoint = EnvironmentValue("HF_ENDPOINT"); !endpoint.empty()) {
    options.endpoint = endpoint;
  }
  options.token = EnvironmentValue("HF_TOKEN");
  options.cache = arguments.cache_folder;
  options.user_agent = Format("cria-convert/{}", ConverterVersion());
  return options;
}

void AddDownloadOptions(CommandLine& command, DownloadArguments& arguments) {
  if (const std::string cache = platform::CacheFolder(); !cache.empty()) {
    arguments.cache_folder = cache + "/checkpoints";
  }
  command
      .AddText("--download-cache", arguments.cache_folder,
               "Folder for what hf: downloads; also CRIA_DOWNLOAD_CACHE")
      .Environment("CRIA_DOWNLOAD_CACHE")
      .Default(arguments.cache_folder)
      .Metavar("FOLDER")
      .Group(kDownloadGroup);
}

Result<CheckpointSource> CheckpointSource::Open(const std::string& checkpoint, hub::Purpose purpose,
                                                const DownloadArguments& arguments) {
  if (!hub::IsCheckpointName(checkpoint)) {
    CRIA_RETURN_IF_ERROR(CheckIsNoHubName(checkpoint));
    return CheckpointSource(checkpoint, std::nullopt, false);
  }
  CRIA_ASSIGN_OR_RETURN(const hub::CheckpointName name, hub::ParseCheckpointName(checkpoint));
  if (arguments.cache_folder.empty()) {
    return Fail(ErrorCode::kUsage,
                "there is no folder for downloads, because HOME is not set; give one with "
                "--download-cache");
  }
  CRIA_ASSIGN_OR_RETURN(hub::DownloadedCheckpoint download,
                        DownloadWithProgress(name, purpose, arguments));
  if (purpose != hub::Purpose::kPlan) PrintDownload(name, download);
  std::filesystem::path path = download.path();
  return CheckpointSource(std::move(path), std::move(download), arguments.removes_files);
}

CheckpointSource::CheckpointSource(std::filesystem::path path,
                                   std::optional<hub::DownloadedCheckpoint> download,
                                   bool removes_files)
    : path_(std::move(path)), download_(std::move(download)), removes_files_(removes_files) {}

void CheckpointSource::Finish() const {
  if (removes_files_ && download_) download_->Remove();
}

}  // namespace cria::cli
