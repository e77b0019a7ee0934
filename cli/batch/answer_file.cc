#include "cli/batch/answer_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace cria::cli {
namespace {

std::unexpected<Error> FailOnAnswers(const std::string& path, std::string_view what) {
  return Fail(ErrorCode::kIo, Format("{}: cannot {}: {}", path, what,
                                     static_cast<const char*>(std::strerror(errno))));
}

}  // namespace

Result<AnswerFile> AnswerFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor < 0) return FailOnAnswers(path, "open the file");
  AnswerFile file(path, descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrorCode::kUsage, Format("{}: another process writes answers into it", path));
  }
  CRIA_RETURN_IF_ERROR(file.FindEnd());
  return file;
}

AnswerFile::AnswerFile(AnswerFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      num_written_(other.num_written_),
      waiting_(std::move(other.waiting_)) {}

AnswerFile::~AnswerFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status AnswerFile::FindEnd() {
  std::array<char, 65536> part;
  off_t end = 0;
  off_t offset = 0;
  bool begins_line = true;
  while (true) {
    const ssize_t count = pread(descriptor_, part.data(), part.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailOnAnswers(path_, "read the file");
    if (count == 0) break;
    for (ssize_t i = 0; i < count; ++i) {
      const char character = part[static_cast<size_t>(i)];
      // A file that is not one of answers stays as it is.
      if (begins_line && character != '{') {
        return Fail(ErrorCode::kUsage, Format("{}: has something else than answers; choose another "
                                              "file",
                                              path_));
      }
      begins_line = character == '\n';
      if (!begins_line) continue;
      ++num_written_;
      end = offset + i + 1;
    }
    offset += count;
  }
  if (end != offset && ftruncate(descriptor_, end) != 0) {
    return FailOnAnswers(path_, "cut off the line that is not complete");
  }
  if (lseek(descriptor_, end, SEEK_SET) < 0) return FailOnAnswers(path_, "append to the file");
  return {};
}

Status AnswerFile::Add(size_t index, std::string line) {
  waiting_.emplace(index, std::move(line));
  while (!waiting_.empty() && waiting_.begin()->first == num_written_) {
    CRIA_RETURN_IF_ERROR(Write(waiting_.begin()->second + "\n"));
    waiting_.erase(waiting_.begin());
    ++num_written_;
  }
  return {};
}

Status AnswerFile::Write(const std::string& text) {
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t count = write(descriptor_, left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailOnAnswers(path_, "write the answer");
    left.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace cria::cli
