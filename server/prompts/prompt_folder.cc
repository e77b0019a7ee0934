#include "server/prompts/prompt_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/format.h"

namespace cria::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".prompt";

std::unexpected<Error> FailFolder(const std::string& path, std::string_view what) {
  return Fail(ErrorCode::kIo, Format("{}: {}", path, what));
}

// Whether it is the temporary name of a file of a prompt (OutputFile).
bool IsUnfinished(std::string_view file_name) {
  const size_t end = file_name.find(".prompt.tmp-");
  return file_name.starts_with('.') && end != file_name.npos &&
         PromptFolder::NameOf(std::string(file_name.substr(1, end - 1)).append(kEnding));
}

}  // namespace

Result<PromptFolder> PromptFolder::Open(const std::string& path) {
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return FailFolder(path, Format("cannot make the folder of prompts: {}", std::strerror(errno)));
  }
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return FailFolder(path, Format("cannot open the folder of prompts: {}", std::strerror(errno)));
  }
  PromptFolder folder(path, descriptor);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return FailFolder(path, std::strerror(errno));
  if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return FailFolder(path,
                      "others may write into this folder, and so could change prompts: make it "
                      "your own, with chmod 700, or choose another one");
  }
  if (faccessat(descriptor, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    return FailFolder(path, Format("prompts cannot be written: {}; choose a folder that you may "
                                   "write to",
                                   std::strerror(errno)));
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return FailFolder(path, "another server has its prompts there: give each a folder of its own");
  }
  return folder;
}

PromptFolder::PromptFolder(PromptFolder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

PromptFolder::~PromptFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string PromptFolder::PathOf(const PromptIndex::Name& name) const {
  return Format("{}/{}{}", path_, DigestText(name), kEnding);
}

std::optional<PromptIndex::Name> PromptFolder::NameOf(std::string_view file_name) {
  PromptIndex::Name name = {};
  if (file_name.size() != 2 * name.size() + kEnding.size() || !file_name.ends_with(kEnding)) {
    return std::nullopt;
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const char* const digits = file_name.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, name[i], 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
  }
  // Not with capital letters.
  if (!file_name.starts_with(DigestText(name))) return std::nullopt;
  return name;
}

std::vector<PromptFolder::File> PromptFolder::List() const {
  struct Dated {
    fs::file_time_type time;
    File file;
  };
  std::vector<Dated> files;
  std::error_code error;
  fs::directory_iterator entries(path_, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string file_name = entries->path().filename().string();
    std::error_code unknown;
    const bool is_regular = entries->symlink_status(unknown).type() == fs::file_type::regular;
    if (IsUnfinished(file_name) && is_regular) fs::remove(entries->path(), unknown);
    const std::optional<PromptIndex::Name> name = NameOf(file_name);
    if (!name) continue;
    const auto time = is_regular ? entries->last_write_time(unknown) : fs::file_time_type::min();
    files.push_back({unknown ? fs::file_time_type::min() : time, {*name, is_regular}});
  }
  std::ranges::sort(files, {}, &Dated::time);
  std::vector<File> sorted;
  sorted.reserve(files.size());
  for (const Dated& dated : files) sorted.push_back(dated.file);
  return sorted;
}

void PromptFolder::NoteUse(const PromptIndex::Name& name) const {
  std::error_code ignored;
  fs::last_write_time(PathOf(name), fs::file_time_type::clock::now(), ignored);
}

bool PromptFolder::IsRegular(const PromptIndex::Name& name) const {
  std::error_code unknown;
  return fs::symlink_status(PathOf(name), unknown).type() == fs::file_type::regular;
}

void PromptFolder::Remove(const PromptIndex::Name& name) const { unlink(PathOf(name).c_str()); }

}  // namespace cria::server
