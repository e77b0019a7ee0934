#include "converter/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <format>
#include <span>
#include <string>
#include <utility>

#include "converter/test_checkpoint.h"
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
  void ExpectRefused(const std::filesystem::path& path, ErrorCode code, std::string_view remedy) {
    const auto file = OutputFile::Create(path, 1);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code(), code) << path;
    EXPECT_THAT(file.error().message(), AllOf(HasSubstr(path.string()), HasSubstr(remedy)));
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

TEST_F(OutputFileTest, HasThePermissionsOfAnOrdinaryFile) {
  const mode_t before = umask(027);
  EXPECT_TRUE(WriteAll(path_, "x"));
  umask(before);
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0640));
}

TEST_F(OutputFileTest, OldTemporaryFilesAreInNobodysWay) {
  for (int i = 0; i < 3; ++i) {
    support::WriteFile(folder_.path() / std::format(".model.tmp-{}-{}", getpid(), i), "stale");
  }
  ASSERT_TRUE(WriteAll(path_, "new"));
  EXPECT_EQ(support::ReadFile(path_), "new");
  EXPECT_THAT(FileNames(folder_.path()), SizeIs(4));
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
