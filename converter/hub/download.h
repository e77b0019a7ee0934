#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "converter/hub/checkpoint_folder.h"
#include "converter/hub/checkpoint_name.h"
#include "converter/hub/file_choice.h"
#include "converter/hub/hub_client.h"
#include "cria/error.h"

namespace cria::hub {

struct DownloadOptions {
  std::string endpoint = "https://huggingface.co";
  std::string token;            // Empty: none.
  std::filesystem::path cache;  // The folder that the folders of checkpoints are created in.
  std::string user_agent;
  Retries retries = {};
};

// Any of these may be empty.
struct DownloadEvents {
  // Called several times a second, with what is there of all files.
  std::function<void(std::string_view file, uint64_t done_bytes, uint64_t total_bytes)> progress;
  // Called once if another process downloads the same checkpoint.
  std::function<void()> waiting;
};

// A downloaded checkpoint. While the object exists, no other process removes its files.
class DownloadedCheckpoint {
 public:
  // The folder, or the GGUF file that was named: the first one if the model is split.
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  const std::string& commit() const { return commit_; }
  const std::string& licence() const { return licence_; }  // Empty if it is not known.

  // Removes its files, unless another process uses them.
  void Remove() const { folder_.Remove(); }

 private:
  friend Result<DownloadedCheckpoint> Download(const CheckpointName& name, Purpose purpose,
                                               const DownloadOptions& options,
                                               const DownloadEvents& events);
  explicit DownloadedCheckpoint(CheckpointFolder folder)
      : folder_(std::move(folder)), path_(folder_.path()) {}

  CheckpointFolder folder_;
  std::filesystem::path path_;
  std::string commit_;
  std::string licence_;
};

// Downloads the files of the checkpoint that the purpose needs and that are not there yet, all of
// the same commit.
Result<DownloadedCheckpoint> Download(const CheckpointName& name, Purpose purpose,
                                      const DownloadOptions& options, const DownloadEvents& events);

}  // namespace cria::hub
