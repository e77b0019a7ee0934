#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/flags/command_line.h"
#include "converter/hub/download.h"
#include "cria/error.h"

namespace cria::cli {

// The heading in the help above the options of downloads.
inline constexpr const char* kDownloadGroup = "Checkpoints on the hub";

// Where the files of a checkpoint that is on the hub are kept.
struct DownloadArguments {
  std::string cache_folder;
  bool removes_files = false;  // After they were converted.
};

// How to connect to the hub: by the variables HF_ENDPOINT and HF_TOKEN, which have the same names
// and meanings as for huggingface_hub.
hub::DownloadOptions DownloadOptionsOf(const DownloadArguments& arguments);

void AddDownloadOptions(CommandLine& command, DownloadArguments& arguments);

// A checkpoint as the user named it: a path, or a name on the hub, which is downloaded.
class CheckpointSource {
 public:
  static Result<CheckpointSource> Open(const std::string& checkpoint, hub::Purpose purpose,
                                       const DownloadArguments& arguments);

  bool is_downloaded() const { return download_.has_value(); }
  const std::filesystem::path& path() const { return path_; }
  // Removes downloaded files if they are not to be kept. Called after the conversion, so that a
  // conversion that failed can be repeated without another download.
  void Finish() const;

 private:
  CheckpointSource(std::filesystem::path path, std::optional<hub::DownloadedCheckpoint> download,
                   bool removes_files);

  std::filesystem::path path_;
  std::optional<hub::DownloadedCheckpoint> download_;
  bool removes_files_;
};

}  // namespace cria::cli
