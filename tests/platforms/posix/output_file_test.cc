#include "core/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using support::FileNames;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class OutputFileTest : public testing::Test {
 protected:
  static Status Write(OutputFile& file, uint64_t offset, std::string_view text) {
    return file.WriteAt(offset, std::as_bytes(std::span(text)));
  }
  Status WriteAll(const std::filesystem::path& path, std::string_view text) {
    CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, text.size()));
    CRIA_RETURN_IF_ERROR(Write(file, 0, text));
    return file.Commit();
  }
  void ExpectRefused(const std::filesystem::path& path, ErrorCode code, std::string_view remedy,
                     uint64_t bytes = 1) {
    const auto file = OutputFile::Create(path, bytes);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code(), code) << path;
    EXPECT_THAT(file.error().message(), AllOf(HasSubstr(path.string()), HasSubstr(remedy)));
  }

  // As another process does, but slower. Tells whether the file was there to be removed.
  static bool RemoveAsAbandoned(const std::filesystem::path& path) {
    const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    bool removed = false;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      struct stat opened = {}, named = {};
      fstat(descriptor, &opened);
      usleep(50);
      removed = lstat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
                unlink(path.c_str()) == 0;
    }
    close(descriptor);
    return removed;
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path path_ = folder_.path() / "model";
};

TEST_F(OutputFileTest, AppearsWhenItIsWhole) {
  {
    auto file = OutputFile::Create(path_, 8);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_TRUE(Write(*file, 5, "xyz"));
    ASSERT_TRUE(Write(*file, 0, "ab"));
    EXPECT_FALSE(std::filesystem::exists(path_));
    ASSERT_TRUE(file->Commit());
  }
  EXPECT_EQ(support::ReadFile(path_), std::string("ab\0\0\0xyz", 8));
  EXPECT_THAT(FileNames(folder_.path()), ElementsAre("model"));
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  {
    auto file = OutputFile::Create(path_, 8);
    ASSERT_TRUE(file);
    OutputFile moved = std::move(*file);
    ASSERT_TRUE(Write(moved, 0, "ab"));
    EXPECT_THAT(FileNames(folder_.path()), SizeIs(1));
  }
  EXPECT_THAT(FileNames(folder_.path()), IsEmpty());
}

TEST_F(OutputFileTest, ReplacesAnOldFileAndKeepsALink) {
  support::WriteFile(path_, "an old and longer text");
  std::filesystem::create_symlink("model", folder_.path() / "link");
  ASSERT_TRUE(WriteAll(folder_.path() / "link", "new"));
  EXPECT_EQ(support::ReadFile(path_), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.path() / "link"));
}

TEST_F(OutputFileTest, ReplacesALinkItselfWhereThatIsWanted) {
  const auto link = folder_.path() / "link";
  support::WriteFile(path_, "kept");
  for (const char* target : {"model", "absent", "."}) {
    std::filesystem::remove(link);
    std::filesystem::create_symlink(target, link);
    auto file = OutputFile::Create(link, 3, LinkPolicy::kReplaceLink);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_TRUE(Write(*file, 0, "new") && file->Commit());
    EXPECT_FALSE(std::filesystem::is_symlink(link));
    EXPECT_EQ(support::ReadFile(link), "new");
    EXPECT_EQ(support::ReadFile(path_), "kept");
    EXPECT_THAT(FileNames(folder_.path()), ElementsAre("link", "model"));
  }
  EXPECT_FALSE(OutputFile::Create(folder_.path(), 1, LinkPolicy::kReplaceLink));
}

TEST_F(OutputFileTest, WithoutANameItExistsForAsLongAsItIsOpen) {
  support::WriteFile(path_, "kept");
  auto file = OutputFile::Create(path_, 8);
  ASSERT_TRUE(file && Write(*file, 5, "xyz"));
  const auto unnamed = file->TakeUnnamed();
  ASSERT_TRUE(unnamed) << unnamed.error().message();
  EXPECT_THAT(FileNames(folder_.path()), ElementsAre("model"));
  EXPECT_EQ(support::ReadFile(path_), "kept");
  ASSERT_EQ(unnamed->size_bytes(), 8u);
  const auto mapping = unnamed->Map(5, 3);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(std::memcmp(mapping->bytes().data(), "xyz", 3), 0);
}

TEST_F(OutputFileTest, RemovesWhatIsUnfinishedBeforeTheProcessEnds) {
  const pid_t writer = fork();
  if (writer == 0) {
    std::vector<OutputFile> files;
    for (const char* name : {"a", "b", "c", "model"}) {
      auto file = OutputFile::Create(folder_.path() / name, 1);
      if (!file) _exit(1);
      files.push_back(*std::move(file));
    }
    // Out of the list, from its middle and from its ends.
    if (!files[1].Commit()) _exit(2);
    files.erase(files.begin());
    if (!files.back().TakeUnnamed()) _exit(3);
    if (FileNames(folder_.path()).size() != 2) _exit(4);
    OutputFile::RemoveUnfinished();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_THAT(FileNames(folder_.path()), ElementsAre("b"));
}

TEST_F(OutputFileTest, HasThePermissionsOfAnOrdinaryFile) {
  const mode_t before = umask(027);
  EXPECT_TRUE(WriteAll(path_, "x"));
  umask(before);
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0640));
}

TEST_F(OutputFileTest, IsReadByItsOwnerAloneFromItsFirstByteOn) {
  support::WriteFile(path_, "which everybody may read");
  const mode_t before = umask(0);
  auto file = OutputFile::Create(path_, 1, LinkPolicy::kReplaceTarget, Readers::kNone);
  umask(before);
  ASSERT_TRUE(file) << file.error().message();
  for (const std::string& name : FileNames(folder_.path())) {
    if (name == "model") continue;
    EXPECT_EQ(std::filesystem::status(folder_.path() / name).permissions(),
              std::filesystem::perms(0600));
  }
  EXPECT_TRUE(Write(*file, 0, "x"));
  EXPECT_TRUE(file->Commit());
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
}

TEST_F(OutputFileTest, RemovesWhatAKilledProcessLeftBehind) {
  const pid_t writer = fork();
  if (writer == 0) {
    auto file = OutputFile::Create(path_, 1 << 20);
    if (!file || !Write(*file, 0, "half")) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(status));
  // Files with this process's own id are cleared away, too: ids come again.
  for (int i = 0; i < 3; ++i) {
    support::WriteFile(folder_.path() / Format(".model.tmp-{}-{}", getpid(), i), "stale");
  }
  ASSERT_THAT(FileNames(folder_.path()), SizeIs(4));
  {
    const auto file = OutputFile::Create(path_, 1);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_THAT(FileNames(folder_.path()), SizeIs(1));
  }
  EXPECT_THAT(FileNames(folder_.path()), IsEmpty());
}

TEST_F(OutputFileTest, RemovesNothingThatIsNotItsOwn) {
  const std::vector<std::string> others = {".model.tmp-",    ".model.tmp-1",   ".model.tmp-1-",
                                           ".model.tmp--1",  ".model.tmp-a-b", ".model.tmp-1-0.x",
                                           ".other.tmp-1-0", "model.tmp-1-0"};
  for (const std::string& name : others) support::WriteFile(folder_.path() / name, "kept");
  std::filesystem::create_symlink("model.tmp-1-0", folder_.path() / ".model.tmp-1-1");
  std::filesystem::create_directory(folder_.path() / ".model.tmp-1-2");
  ASSERT_TRUE(WriteAll(path_, "new"));
  EXPECT_THAT(FileNames(folder_.path()), SizeIs(others.size() + 3));
}

TEST_F(OutputFileTest, LeavesAloneWhatAnotherProcessIsWriting) {
  int made[2], go_on[2];
  ASSERT_TRUE(pipe(made) == 0 && pipe(go_on) == 0);
  const pid_t writer = fork();
  if (writer == 0) {
    char signal = 0;
    auto file = OutputFile::Create(path_, 5);
    if (!file || write(made[1], "x", 1) != 1 || read(go_on[0], &signal, 1) != 1) _exit(1);
    _exit(Write(*file, 0, "child") && file->Commit() ? 0 : 2);
  }
  char signal = 0;
  ASSERT_EQ(read(made[0], &signal, 1), 1);
  ASSERT_TRUE(WriteAll(path_, "parent"));
  EXPECT_THAT(FileNames(folder_.path()), SizeIs(2));
  ASSERT_EQ(write(go_on[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(support::ReadFile(path_), "child");
  EXPECT_THAT(FileNames(folder_.path()), ElementsAre("model"));
}

// A new file exists for a moment before it is locked. If another process removes it as abandoned at
// that moment, the writer must notice that. Here, writers look for abandoned files all the time.
TEST_F(OutputFileTest, SurvivesBeingTakenForAbandonedBeforeItIsLocked) {
  constexpr int kWriters = 2;
  constexpr int kRounds = 1500;
  const auto write_many = [&] {
    const std::string prefix = Format(".model.tmp-{}-", getpid());
    for (int round = 0; round < kRounds; ++round) {
      const auto file = OutputFile::Create(path_, 0);
      if (!file) return 1;
      const auto names = FileNames(folder_.path());
      const auto own = [&](const std::string& name) { return name.starts_with(prefix); };
      if (std::ranges::count_if(names, own) != 1) return 2;
    }
    return 0;
  };
  std::vector<pid_t> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(fork());
    if (writers.back() == 0) _exit(write_many());
  }
  size_t removed = 0;
  for (int running = kWriters; running > 0;) {
    for (const std::string& name : FileNames(folder_.path())) {
      removed += RemoveAsAbandoned(folder_.path() / name);
    }
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) <= 0) continue;
    --running;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  RecordProperty("removed", static_cast<int>(removed));
  EXPECT_THAT(FileNames(folder_.path()), IsEmpty());
}

// The signal that goes with it would end this process.
TEST_F(OutputFileTest, ALimitOnTheSizeOfFilesIsAFullDisk) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  ExpectRefused(path_, ErrorCode::kIo, "no room for its 4097 bytes", 4097);
  const bool fits = WriteAll(path_, std::string(4096, 'x')).has_value();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(fits);
  EXPECT_THAT(FileNames(folder_.path()), ElementsAre("model"));
}

TEST_F(OutputFileTest, TwoMayBeWrittenAtOnce) {
  auto first = OutputFile::Create(path_, 1);
  auto second = OutputFile::Create(path_, 1);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(Write(*first, 0, "1"));
  ASSERT_TRUE(Write(*second, 0, "2"));
  ASSERT_TRUE(first->Commit());
  ASSERT_TRUE(second->Commit());
  EXPECT_EQ(support::ReadFile(path_), "2");
}

TEST_F(OutputFileTest, TakesNamesOfEveryLengthThatTheDiskTakes) {
  const auto longest = folder_.path() / std::string(255, 'x');
  ASSERT_TRUE(WriteAll(longest, "new"));
  EXPECT_EQ(support::ReadFile(longest), "new");
}

TEST_F(OutputFileTest, SaysWhatToDo) {
  ExpectRefused(folder_.path(), ErrorCode::kIo, "give another output name");
  ExpectRefused("/dev/null", ErrorCode::kIo, "give another output name");
  ExpectRefused(folder_.path() / "absent" / "model", ErrorCode::kIo, "make its folder first");
  support::WriteFile(path_, "x");
  ExpectRefused(path_ / "model", ErrorCode::kIo, "make its folder first");
  ExpectRefused(folder_.path() / std::string(256, 'x'), ErrorCode::kIo, "choose a shorter");
  ExpectRefused("", ErrorCode::kUsage, "give one");
  EXPECT_THAT(FileNames(folder_.path()), ElementsAre("model"));
}

}  // namespace
}  // namespace cria
