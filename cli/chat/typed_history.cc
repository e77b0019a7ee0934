#include "cli/chat/typed_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/format.h"

namespace cria::cli {
namespace {

constexpr int kMaxEntries = 1000;
// Twice the entries, of 8 KiB on average: libedit reads the whole file into memory.
constexpr off_t kMaxHistoryBytes = off_t{16} << 20;

int OpenToAppend(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe waits for a reader.
  return open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
}

}  // namespace

TypedHistory::TypedHistory() : history_(history_winit()) {
  history_w(history_, &event_, H_SETSIZE, kMaxEntries);
  history_w(history_, &event_, H_SETUNIQUE, 1);
}

TypedHistory::~TypedHistory() { history_wend(history_); }

Status TypedHistory::KeepIn(const std::string& path) {
  const int descriptor = OpenToAppend(path);
  if (descriptor < 0) {
    return Fail(ErrorCode::kIo, Format("{}: cannot write: {}", path, std::strerror(errno)));
  }
  struct stat status = {};
  const bool is_file = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  close(descriptor);
  if (is_file && status.st_size > kMaxHistoryBytes) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: has more than the {} bytes that a history may have; remove it to begin "
                       "a new one",
                       path, kMaxHistoryBytes));
  }
  const int entries = is_file ? history_w(history_, &event_, H_LOAD, path.c_str()) : -1;
  if (entries < 0 && (!is_file || status.st_size > 0)) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: is not a history of chats", path));
  }
  path_ = path;
  if (entries <= 2 * kMaxEntries) return {};
  // Leaves out the entries that are too old.
  const std::string shorter = path + ".new";
  if (history_w(history_, &event_, H_SAVE, shorter.c_str()) >= 0) {
    std::rename(shorter.c_str(), path.c_str());
  }
  return {};
}

void TypedHistory::Add(const std::wstring& entry) {
  history_w(history_, &event_, H_ENTER, entry.c_str());
  if (path_.empty()) return;
  // Entries are appended one by one, so that those of two chats are both kept.
  const int descriptor = OpenToAppend(path_);
  std::FILE* const file = descriptor < 0 ? nullptr : fdopen(descriptor, "a");
  if (file == nullptr) return;
  std::fseek(file, 0, SEEK_END);
  // libedit's H_NSAVE_FP also saves the entry before the newest ones: the new entry is saved from a
  // history that has no other.
  HistoryW* const newest = history_winit();
  history_w(newest, &event_, H_SETSIZE, 1);
  history_w(newest, &event_, H_ENTER, entry.c_str());
  history_w(newest, &event_, H_SAVE_FP, file);
  history_wend(newest);
  std::fclose(file);
}

}  // namespace cria::cli
