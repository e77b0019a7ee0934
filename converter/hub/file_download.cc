#include "converter/hub/file_download.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "converter/hub/content_hash.h"
#include "converter/hub/hub_errors.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "core/quotable.h"

namespace cria::hub {
namespace {

constexpr int kPartialContent = 206;
constexpr int kRangeNotSatisfiable = 416;

// The first byte that an answer of a part has: "bytes 100-199/200".
std::optional<uint64_t> FirstByteOf(const HttpAnswer& answer) {
  constexpr std::string_view kUnit = "bytes ";
  std::string_view range = answer.header("content-range");
  if (!range.starts_with(kUnit)) return std::nullopt;
  range.remove_prefix(kUnit.size());
  uint64_t first = 0;
  const auto parsed = std::from_chars(range.data(), range.data() + range.size(), first);
  if (parsed.ec != std::errc()) return std::nullopt;
  return first;
}

class Downloader {
 public:
  Downloader(HubClient& client, const CheckpointName& name, const ModelInfo& info,
             const RemoteFile& file, const CheckpointFolder& folder, PartialFile partial,
             const FileProgress& progress)
      : client_(client),
        name_(name),
        info_(info),
        file_(file),
        folder_(folder),
        partial_(std::move(partial)),
        progress_(progress) {}

  Status Run() {
    if (file_.size_bytes && partial_.size_bytes() > *file_.size_bytes) {
      CRIA_RETURN_IF_ERROR(partial_.Empty());
    }
    CRIA_RETURN_IF_ERROR(StartHash());
    uint64_t most_bytes = partial_.size_bytes();
    for (int failures = 0; !HasAll();) {
      CRIA_ASSIGN_OR_RETURN(const HttpAnswer answer, TryOnce());
      if (HasAll()) break;
      if (IsWholeButShort(answer)) return FailAsShort();
      if (!IsToBeTriedAgain(answer)) return FailureOf(answer, client_, name_, file_.path, &info_);
      failures = partial_.size_bytes() > most_bytes ? 1 : failures + 1;
      most_bytes = std::max(most_bytes, partial_.size_bytes());
      if (failures >= client_.retries().max_tries) return FailAfterTries(answer);
      PauseBeforeRetry(client_.retries(), failures - 1, answer);
    }
    CRIA_RETURN_IF_ERROR(CheckHash());
    return folder_.Finish(file_.path);
  }

 private:
  bool HasAll() const {
    return file_.size_bytes ? partial_.size_bytes() == *file_.size_bytes : came_to_end_;
  }

  std::string Where() const { return Format("hf:{}/{}", name_.repository(), Quotable(file_.path)); }

  // Hashes what was downloaded earlier. Without a known size, the hash is computed at the end.
  Status StartHash() {
    hash_.reset();
    if (!file_.hash || !file_.size_bytes) return {};
    hash_.emplace(file_.hash->kind, *file_.size_bytes);
    return partial_.ReadAll([this](std::span<const std::byte> bytes) { hash_->Add(bytes); });
  }

  Result<HttpAnswer> TryOnce() {
    came_to_end_ = false;
    bool is_first = true;
    const uint64_t first_byte = partial_.size_bytes();
    const auto take = [&](const HttpAnswer& answer, std::span<const std::byte> bytes) -> Status {
      if (std::exchange(is_first, false)) CRIA_RETURN_IF_ERROR(Begin(answer, first_byte));
      return Take(bytes);
    };
    CRIA_ASSIGN_OR_RETURN(
        HubAnswer answer,
        client_.Get(FilePathOnHub(name_, info_.commit, file_.path), first_byte, take));
    came_to_end_ = answer.answer.is_success() && !answer.answer.breakdown;
    if (came_to_end_ && !file_.hash) file_.hash = HashOfDigits(answer.file_hash_digits);
    if (answer.answer.status == kRangeNotSatisfiable && first_byte != 0) {
      CRIA_RETURN_IF_ERROR(partial_.Empty());
      CRIA_RETURN_IF_ERROR(StartHash());
    }
    return std::move(answer.answer);
  }

  // Called before the first bytes of an answer.
  Status Begin(const HttpAnswer& answer, uint64_t first_byte) {
    if (answer.status == kPartialContent) {
      if (FirstByteOf(answer) == first_byte) return {};
      folder_.RemovePartial(file_.path);
      return Fail(ErrorCode::kIo,
                  Format("{}: the hub sent another part of the file than the one that was "
                         "asked for; what was downloaded of it was deleted",
                         Where()));
    }
    // The whole file comes, because the server does not know ranges.
    if (first_byte == 0) return {};
    CRIA_RETURN_IF_ERROR(partial_.Empty());
    return StartHash();
  }

  Status Take(std::span<const std::byte> bytes) {
    if (file_.size_bytes && bytes.size() > *file_.size_bytes - partial_.size_bytes()) {
      folder_.RemovePartial(file_.path);
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: has more than the {} bytes that the hub gives as its size; what "
                         "was downloaded of it was deleted",
                         Where(), *file_.size_bytes));
    }
    CRIA_RETURN_IF_ERROR(partial_.Append(bytes));
    if (hash_) hash_->Add(bytes);
    if (progress_) progress_(partial_.size_bytes());
    return {};
  }

  // Whether the server sent all that it has, and this is less than the hub says.
  static bool IsWholeButShort(const HttpAnswer& answer) {
    return answer.is_success() && !answer.breakdown && answer.number_in_header("content-length");
  }

  Status FailAsShort() const {
    folder_.RemovePartial(file_.path);
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: has only {} bytes, but the hub gives {} as its size; it was "
                       "deleted, so run the same command again",
                       Where(), partial_.size_bytes(), file_.size_bytes.value_or(0)));
  }

  // An answer that does not say how long it is may have ended because the connection broke.
  bool IsToBeTriedAgain(const HttpAnswer& answer) const {
    return answer.is_success() || MayPassLater(answer) || answer.status == kRangeNotSatisfiable;
  }

  Status FailAfterTries(const HttpAnswer& answer) const {
    if (!answer.is_success() && !answer.breakdown) {
      return FailureOf(answer, client_, name_, file_.path, &info_);
    }
    const std::string why =
        answer.breakdown ? answer.breakdown->sentence : "the server ended the file too early";
    const std::string all =
        file_.size_bytes ? Format(" of {}", FormatBytes(*file_.size_bytes)) : "";
    return Fail(ErrorCode::kIo, Format("{}: {}{} were downloaded, and then {} again and again; "
                                       "run the same command later to continue",
                                       Where(), FormatBytes(partial_.size_bytes()), all, why));
  }

  Status CheckHash() {
    if (!file_.hash) return {};
    if (!hash_) {
      file_.size_bytes = partial_.size_bytes();
      CRIA_RETURN_IF_ERROR(StartHash());
    }
    const std::string digits = hash_->Finish();
    if (digits == file_.hash->digits) return {};
    folder_.RemovePartial(file_.path);
    return Fail(
        ErrorCode::kInvalidFile,
        Format("{}: the downloaded file has the {} {}, but the hub gives {}; it was "
               "deleted, so run the same command again",
               Where(), file_.hash->kind == ExpectedHash::Kind::kSha256 ? "SHA-256" : "git id",
               digits, file_.hash->digits));
  }

  HubClient& client_;
  const CheckpointName& name_;
  const ModelInfo& info_;
  RemoteFile file_;
  const CheckpointFolder& folder_;
  PartialFile partial_;
  const FileProgress& progress_;
  std::optional<ContentHash> hash_;
  bool came_to_end_ = false;  // Whether the last try came to the end.
};

}  // namespace

Status DownloadFile(HubClient& client, const CheckpointName& name, const ModelInfo& info,
                    const RemoteFile& file, const CheckpointFolder& folder,
                    const FileProgress& progress) {
  CRIA_ASSIGN_OR_RETURN(PartialFile partial, folder.OpenPartial(file.path));
  return Downloader(client, name, info, file, folder, std::move(partial), progress).Run();
}

}  // namespace cria::hub
