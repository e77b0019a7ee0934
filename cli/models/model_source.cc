#include "cli/models/model_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

#include "core/format.h"
#include "model/checksum.h"
#include "model/path_contents.h"

namespace cria::cli {
namespace {

namespace fs = std::filesystem;

// Size and time of a file; empty if it cannot be examined.
std::string FileState(const fs::path& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  return Format("{} {} {}.{:09}\n", path.filename().string(), static_cast<uint64_t>(status.st_size),
                static_cast<int64_t>(status.st_mtim.tv_sec),
                static_cast<int64_t>(status.st_mtim.tv_nsec));
}

std::string CheckpointState(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return FileState(path);
  std::vector<std::string> files;
  for (fs::directory_iterator file(path, error); !error && file != fs::directory_iterator();
       file.increment(error)) {
    files.push_back(FileState(file->path()));
  }
  std::ranges::sort(files);
  std::string state;
  for (const std::string& file : files) state += file;
  return state;
}

// Whether cria-convert can be given what is there. Of a folder with several GGUF files, a user has
// to choose one.
bool IsConvertible(const PathContents& contents) {
  if (contents.checkpoint.empty()) return false;
  return contents.kind != ContentKind::kGgufFolder || contents.names.size() == 1;
}

}  // namespace

std::string ModelSource::Id() const {
  // The version says which options of cria-convert are used; it changes with them.
  const std::string key = Format("version 1\n{}\n{}", checkpoint, state);
  return DigestText(Digest128(std::as_bytes(std::span(key))));
}

std::optional<ModelSource> FindCheckpoint(const std::string& path_or_name) {
  const PathContents contents = InspectPath(path_or_name);
  if (!IsConvertible(contents)) return std::nullopt;
  ModelSource source = {.checkpoint = contents.checkpoint};
  if (contents.kind == ContentKind::kHubName) {
    // hf:ORG/NAME:FILE and hf:ORG/NAME/FILE name the same file.
    std::replace(source.checkpoint.begin() + 3, source.checkpoint.end(), ':', '/');
    return source;
  }
  std::error_code error;
  const fs::path canonical = fs::canonical(contents.checkpoint, error);
  if (error) return std::nullopt;
  source.checkpoint = canonical.string();
  source.state = CheckpointState(canonical);
  return source;
}

}  // namespace cria::cli
