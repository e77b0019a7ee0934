#include "server/prompts/prompt_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/permissions.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::server {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

PromptIndex::Name SomeName(int32_t token) {
  return PromptIndex::NameOf(std::vector<int32_t>{token});
}

class PromptFolderTest : public testing::Test {
 protected:
  std::string ErrorOfOpen() const {
    const auto opened = PromptFolder::Open(path_);
    return opened ? "" : opened.error().message();
  }

  support::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "prompts";
};

TEST_F(PromptFolderTest, IsItsOwnersAlone) {
  const mode_t before = umask(0);
  Unwrap(PromptFolder::Open(path_));
  umask(before);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_all);
  Unwrap(PromptFolder::Open(path_));
  for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(path_, fs::perms::owner_all | others);
    EXPECT_THAT(ErrorOfOpen(), HasSubstr("others may write into this folder"));
  }
}

TEST_F(PromptFolderTest, BelongsToOneServer) {
  const PromptFolder first = Unwrap(PromptFolder::Open(path_));
  EXPECT_THAT(ErrorOfOpen(), HasSubstr("another server has its prompts there"));
}

TEST_F(PromptFolderTest, MustBeAFolderThatCanBeWrittenTo) {
  support::WriteFile(path_, "a file");
  EXPECT_THAT(ErrorOfOpen(), HasSubstr("Not a directory"));
  EXPECT_FALSE(PromptFolder::Open(folder_ / "missing" / "prompts"));
  fs::remove(path_);
  fs::create_directory(path_);
  fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_exec);
  const support::PermissionsHold hold;
  EXPECT_THAT(ErrorOfOpen(), HasSubstr("choose a folder that you may write to"));
}

TEST_F(PromptFolderTest, ListsItsFilesByTheirLastUse) {
  const PromptFolder folder = Unwrap(PromptFolder::Open(path_));
  const auto now = fs::file_time_type::clock::now();
  for (int32_t i = 0; i < 3; ++i) {
    support::WriteFile(folder.PathOf(SomeName(i)), "text");
    fs::last_write_time(folder.PathOf(SomeName(i)), now - std::chrono::hours(10 - i));
  }
  folder.NoteUse(SomeName(0));
  fs::create_symlink(folder.PathOf(SomeName(0)), folder.PathOf(SomeName(4)));
  fs::create_directory(folder.PathOf(SomeName(5)));
  std::vector<PromptIndex::Name> names;
  size_t num_others = 0;
  for (const PromptFolder::File& file : folder.List()) {
    file.is_regular ? names.push_back(file.name) : void(++num_others);
    EXPECT_EQ(file.is_regular, folder.IsRegular(file.name));
  }
  EXPECT_EQ(names, (std::vector{SomeName(1), SomeName(2), SomeName(0)}));
  EXPECT_EQ(num_others, 2u);
  // A link is removed and not what it names; a folder stays.
  folder.Remove(SomeName(4));
  folder.Remove(SomeName(5));
  EXPECT_TRUE(fs::exists(folder.PathOf(SomeName(0))));
  EXPECT_TRUE(fs::exists(folder.PathOf(SomeName(5))));
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder.PathOf(SomeName(4)))));
}

TEST_F(PromptFolderTest, OnlyItsOwnNamesAreNames) {
  const PromptFolder folder = Unwrap(PromptFolder::Open(path_));
  const std::string name = fs::path(folder.PathOf(SomeName(1))).filename();
  EXPECT_EQ(PromptFolder::NameOf(name), SomeName(1));
  std::string capital = name;
  capital[capital.find_first_of("abcdef")] -= 'a' - 'A';
  for (const std::string& other :
       {std::string(), name + "x", "x" + name, name.substr(1), capital, "." + name,
        std::string(32, 'g') + ".prompt", std::string(32, '-') + ".prompt", std::string(39, '0')}) {
    EXPECT_EQ(PromptFolder::NameOf(other), std::nullopt) << other;
  }
}

TEST_F(PromptFolderTest, RemovesOnlyWhatAKilledServerHasLeft) {
  const PromptFolder folder = Unwrap(PromptFolder::Open(path_));
  const std::string name = fs::path(folder.PathOf(SomeName(1))).filename();
  for (const std::string& file : {"." + name + ".tmp-12-0", std::string("notes.txt"),
                                  std::string(".x.prompt.tmp-12-0"), "." + name}) {
    support::WriteFile(path_ + "/" + file, "half");
  }
  EXPECT_TRUE(folder.List().empty());
  EXPECT_FALSE(fs::exists(path_ + "/." + name + ".tmp-12-0"));
  EXPECT_TRUE(fs::exists(path_ + "/notes.txt"));
  EXPECT_TRUE(fs::exists(path_ + "/.x.prompt.tmp-12-0"));
  EXPECT_TRUE(fs::exists(path_ + "/." + name));
}

}  // namespace
}  // namespace cria::server
