// Files of prompts that are damaged, of something else or in the way are never used.

#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "llm/session_file_layout.h"
#include "model/file_layout.h"
#include "server/prompts/prompt_files_fixture.h"

namespace cria::server {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class PromptFilesRefusalTest : public PromptFilesTest {
 protected:
  void SetUp() override {
    const auto served = Start();
    expected_ = served->Answer(prompt_).tokens;
    served->WriteAll();
    file_ = FilePath();
    conversation_ = prompt_;
    conversation_.insert(conversation_.end(), expected_.begin(), expected_.end());
    expected_further_ = served->Answer(conversation_).tokens;
    bytes_ = support::ReadFile(file_);
  }

  // Starts with these bytes in the file's place.
  void ExpectUnused(const std::string& bytes, const std::string& why) {
    support::WriteFile(file_, bytes);
    const auto served = Start();
    EXPECT_EQ(served->files().figures().num_files, 0u);
    EXPECT_THAT(served->notices,
                AllOf(HasSubstr(file_ + ": was removed and is not used: "), HasSubstr(why)));
    EXPECT_FALSE(fs::exists(file_));
  }

  // What damages keys and values is found when they are read.
  void ExpectComputed(const std::string& bytes) {
    support::WriteFile(file_, bytes);
    const auto served = Start();
    const auto answered = served->Answer(conversation_);
    EXPECT_EQ(answered.computed, conversation_.size());
    EXPECT_EQ(answered.tokens, expected_further_);
    EXPECT_THAT(served->notices, HasSubstr("was removed and is not used"));
    EXPECT_EQ(served->files().figures().files_refused, 1u);
    EXPECT_FALSE(fs::exists(file_));
  }

  Tokens expected_;
  // It has all that the file has.
  Tokens conversation_;
  Tokens expected_further_;
  std::string file_;
  std::string bytes_;
};

TEST_F(PromptFilesRefusalTest, FilesThatAreCutShort) {
  for (size_t size = 0; size < bytes_.size(); size += 4096) {
    ExpectUnused(bytes_.substr(0, size), "");
    ASSERT_FALSE(HasFailure()) << size;
  }
  ExpectUnused(bytes_ + "x", "appended to");
}

TEST_F(PromptFilesRefusalTest, EveryByteOfTheHead) {
  for (size_t i = 0; i < sizeof(FilePreamble) + sizeof(SessionHead); ++i) {
    std::string changed = bytes_;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    ExpectUnused(changed, "");
    ASSERT_FALSE(HasFailure()) << i;
  }
}

TEST_F(PromptFilesRefusalTest, KeysAndValuesThatAreDamaged) {
  FilePreamble preamble;
  std::memcpy(&preamble, bytes_.data(), sizeof preamble);
  const size_t begin = sizeof preamble + preamble.metadata_bytes;
  for (size_t i = begin; i < bytes_.size(); i += (bytes_.size() - begin) / 10) {
    std::string changed = bytes_;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    ExpectComputed(changed);
    ASSERT_FALSE(HasFailure()) << i;
  }
}

TEST_F(PromptFilesRefusalTest, AFileThatIsChangedWhileTheServerRuns) {
  const auto served = Start();
  support::WriteFile(file_, bytes_.substr(0, bytes_.size() / 2));
  const auto answered = served->Answer(prompt_);
  EXPECT_EQ(answered.computed, prompt_.size());
  EXPECT_EQ(answered.tokens, expected_);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(PromptFilesRefusalTest, AFileThatIsRemovedWhileTheServerRuns) {
  const auto served = Start();
  fs::remove(file_);
  EXPECT_EQ(served->Answer(prompt_).tokens, expected_);
}

TEST_F(PromptFilesRefusalTest, FilesOfAnotherModelTypeOrContext) {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.config.rms_norm_eps *= 2;
  const TinyModelFile other(spec, 1024);
  {
    Served served(other, path_, {});
    EXPECT_THAT(served.notices, HasSubstr("is a session with another model"));
    EXPECT_FALSE(fs::exists(file_));
  }
  support::WriteFile(file_, bytes_);
  EXPECT_THAT(Start({.kv_type = KvType::kInt8})->notices,
              HasSubstr("its KV cache has the type f32"));
  EXPECT_FALSE(fs::exists(file_));
  support::WriteFile(file_, bytes_);
  EXPECT_THAT(Start({.context_tokens = 256})->notices, HasSubstr("do not fit the context"));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(PromptFilesRefusalTest, AFileUnderAnotherName) {
  const PromptIndex::Name name = PromptIndex::NameOf(SomeTokens(10, 1));
  const std::string other = path_ + "/" + DigestText(name) + ".prompt";
  fs::rename(file_, other);
  EXPECT_THAT(Start()->notices, HasSubstr("its metadata are not those of a prompt"));
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(PromptFilesRefusalTest, AFileLargerThanTheBound) {
  EXPECT_THAT(Start({.max_bytes = bytes_.size() - 1})->notices,
              HasSubstr("it is larger than the bound"));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(PromptFilesRefusalTest, LinksAndFoldersInTheWay) {
  const std::string target = folder_ / "target";
  fs::rename(file_, target);
  fs::create_symlink(target, file_);
  {
    const auto served = Start();
    EXPECT_THAT(served->notices, HasSubstr("is a link or no file, and is not used"));
    EXPECT_EQ(served->Answer(prompt_).computed, prompt_.size());
    // The link is replaced, and not what it names.
    served->WriteAll();
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file_)));
    EXPECT_EQ(support::ReadFile(target), bytes_);
  }
  fs::remove(file_);
  fs::create_directory(file_);
  const auto served = Start();
  EXPECT_THAT(served->notices, HasSubstr("is a link or no file, and is not used"));
  EXPECT_EQ(served->Answer(prompt_).tokens, expected_);
  served->WriteAll();
  EXPECT_THAT(served->notices, HasSubstr("a prompt was not kept: "));
  EXPECT_EQ(served->files().figures().num_files, 0u);
  EXPECT_TRUE(fs::is_directory(file_));
}

TEST_F(PromptFilesRefusalTest, AFullDisk) {
  fs::remove(file_);
  const auto served = Start();
  served->Answer(prompt_);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = bytes_.size() / 2;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Tokens other = SomeTokens(500, 2);
  served->Answer(other);
  served->Answer(prompt_);
  served->WriteAll();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  // It is said once.
  EXPECT_THAT(served->notices, HasSubstr("a prompt was not kept: "));
  EXPECT_EQ(served->notices.find("not kept"), served->notices.rfind("not kept"));
  EXPECT_THAT(support::FileNames(path_), IsEmpty());
  EXPECT_EQ(served->files().figures().num_files, 0u);
  EXPECT_EQ(served->files().figures().bytes, 0u);
  // With room, it goes on.
  served->Answer(other);
  served->Answer(prompt_);
  served->files().Flush();
  EXPECT_EQ(served->files().figures().num_files, 1u);
}

}  // namespace
}  // namespace cria::server
