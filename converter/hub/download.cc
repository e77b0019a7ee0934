#include "converter/hub/download.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <vector>

#include "converter/hub/file_download.h"
#include "converter/hub/hub_errors.h"
#include "converter/hub/model_info.h"
#include "core/format.h"
#include "core/format_bytes.h"

namespace cria::hub {
namespace {

// A sum that stays at its largest value.
uint64_t Sum(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

class Session {
 public:
  Session(HubClient& client, const CheckpointName& name, const ModelInfo& info,
          const CheckpointFolder& folder, const DownloadOptions& options,
          const DownloadEvents& events)
      : client_(client),
        name_(name),
        info_(info),
        folder_(folder),
        options_(options),
        events_(events) {}

  // Downloads those of the files that are not whole yet.
  Status FetchAll(const std::vector<RemoteFile>& files) {
    std::vector<RemoteFile> missing;
    uint64_t total_bytes = 0;
    uint64_t done_bytes = 0;
    uint64_t missing_bytes = 0;
    for (const RemoteFile& chosen : files) {
      CRIA_ASSIGN_OR_RETURN(const auto whole_bytes, folder_.WholeBytes(chosen.path));
      if (whole_bytes && *whole_bytes == chosen.size_bytes.value_or(*whole_bytes)) {
        total_bytes = Sum(total_bytes, *whole_bytes);
        done_bytes += *whole_bytes;
        continue;
      }
      RemoteFile file = chosen;
      CRIA_RETURN_IF_ERROR(AskForFacts(file));
      CRIA_ASSIGN_OR_RETURN(const uint64_t partial_bytes, folder_.PartialBytes(file.path));
      const uint64_t size_bytes = file.size_bytes.value_or(0);
      total_bytes = Sum(total_bytes, size_bytes);
      missing_bytes = Sum(missing_bytes, size_bytes - std::min(size_bytes, partial_bytes));
      missing.push_back(std::move(file));
    }
    CRIA_RETURN_IF_ERROR(CheckDisk(missing_bytes));
    for (const RemoteFile& file : missing) {
      uint64_t file_bytes = 0;
      CRIA_RETURN_IF_ERROR(
          DownloadFile(client_, name_, info_, file, folder_, [&](uint64_t num_bytes) {
            file_bytes = num_bytes;
            if (!events_.progress) return;
            const uint64_t done = done_bytes + num_bytes;
            events_.progress(file.path, done, std::max(done, total_bytes));
          }));
      done_bytes += file_bytes;
    }
    return {};
  }

 private:
  // The hub's list of files may lack sizes and hashes; then the headers of a file have them.
  Status AskForFacts(RemoteFile& file) {
    if (file.size_bytes && file.hash) return {};
    CRIA_ASSIGN_OR_RETURN(const HubAnswer answer,
                          client_.Head(FilePathOnHub(name_, info_.commit, file.path)));
    // If the hub does not answer such requests, the download itself shows what is wrong.
    if (answer.answer.breakdown || answer.answer.status >= 400) return {};
    if (!file.size_bytes) file.size_bytes = answer.file_bytes;
    if (!file.hash) file.hash = HashOfDigits(answer.file_hash_digits);
    return {};
  }

  Status CheckDisk(uint64_t missing_bytes) const {
    std::error_code error;
    const auto space = std::filesystem::space(folder_.path(), error);
    if (error || missing_bytes <= space.available) return {};
    return Fail(
        ErrorCode::kIo,
        Format("{}: {} are still to be downloaded, but only {} are free on this disk",
               options_.cache.string(), FormatBytes(missing_bytes), FormatBytes(space.available)),
        RemedyKind::kDownloadFolder);
  }

  HubClient& client_;
  const CheckpointName& name_;
  const ModelInfo& info_;
  const CheckpointFolder& folder_;
  const DownloadOptions& options_;
  const DownloadEvents& events_;
};

}  // namespace

Result<DownloadedCheckpoint> Download(const CheckpointName& name, Purpose purpose,
                                      const DownloadOptions& options,
                                      const DownloadEvents& events) {
  CRIA_ASSIGN_OR_RETURN(HubClient client, HubClient::Create(options.endpoint, options.token,
                                                            options.user_agent, options.retries));
  CRIA_ASSIGN_OR_RETURN(const ModelInfo info, FetchModelInfo(client, name));
  CRIA_ASSIGN_OR_RETURN(const std::vector<RemoteFile> files, ChooseFiles(name, info, purpose));
  CRIA_ASSIGN_OR_RETURN(CheckpointFolder folder,
                        CheckpointFolder::Open(options.cache, client.endpoint().host, name,
                                               info.commit, events.waiting));
  DownloadedCheckpoint checkpoint(std::move(folder));
  Session session(client, name, info, checkpoint.folder_, options, events);
  CRIA_RETURN_IF_ERROR(session.FetchAll(files));
  if (!files.empty() && (files.back().path == kIndexFile || files.back().path == kTorchIndexFile)) {
    CRIA_ASSIGN_OR_RETURN(const std::vector<RemoteFile> shards,
                          ChooseShards(name, info, checkpoint.folder() / files.back().path));
    CRIA_RETURN_IF_ERROR(session.FetchAll(shards));
  }
  checkpoint.folder_.Share();
  if (!name.file.empty()) checkpoint.path_ /= files.front().path;
  checkpoint.commit_ = info.commit;
  checkpoint.licence_ = info.licence;
  return checkpoint;
}

}  // namespace cria::hub
