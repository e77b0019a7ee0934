#include "converter/hub/checkpoint_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/unwrap.h"

namespace cria::hub {
namespace {

using testing::HasSubstr;

TEST(CheckpointName, HasAnOrganizationANameAFileAndARevision) {
  const CheckpointName plain = Unwrap(ParseCheckpointName("hf:meta-llama/Llama-3.2-1B"));
  EXPECT_EQ(plain.repository(), "meta-llama/Llama-3.2-1B");
  EXPECT_EQ(plain.file, "");
  EXPECT_EQ(plain.revision, "main");
  EXPECT_EQ(Unwrap(ParseCheckpointName("hf:a/b@refs/pr/1")).revision, "refs/pr/1");
  const CheckpointName file = Unwrap(ParseCheckpointName("hf:a/b/Q4/model.gguf@v1.0"));
  EXPECT_EQ(file.repository(), "a/b");
  EXPECT_EQ(file.file, "Q4/model.gguf");
  EXPECT_EQ(file.revision, "v1.0");
  const CheckpointName colon = Unwrap(ParseCheckpointName("hf:a/b:Q4/model.gguf@v1.0"));
  EXPECT_EQ(colon.repository(), "a/b");
  EXPECT_EQ(colon.file, "Q4/model.gguf");
}

TEST(CheckpointName, OnlyTextsWithThePrefixAreNames) {
  EXPECT_TRUE(IsCheckpointName("hf:a/b"));
  EXPECT_FALSE(IsCheckpointName("a/b"));
  EXPECT_FALSE(IsCheckpointName("./hf:a/b"));
}

TEST(CheckpointName, WrongOnesAreRefusedWithTheForm) {
  for (const char* text :
       {"hf:", "hf:a", "hf:a/", "hf:/b", "hf:a/b@", "hf:a/..", "hf:../b", "hf:a/b c", "hf:a/b\n",
        "hf:a/b?x", "hf:a/b%2e", "hf:-a/b", "hf:a/b/config.json", "hf:a/b/../c.gguf",
        "hf:a/b//c.gguf", "hf:a/b/", "hf:a/b@..", "hf:a/b@x\x01y"}) {
    const auto name = ParseCheckpointName(text);
    ASSERT_FALSE(name) << text;
    EXPECT_EQ(name.error().code(), ErrorCode::kUsage) << text;
    EXPECT_THAT(name.error().message(), HasSubstr("hf:ORG/NAME@REVISION")) << text;
  }
  EXPECT_FALSE(ParseCheckpointName("hf:a/" + std::string(97, 'b')));
  EXPECT_FALSE(ParseCheckpointName("hf:a/b@" + std::string(251, 'b')));
}

TEST(CheckpointName, PathsThatLeadOutOfAFolderAreNotSafe) {
  for (const char* path : {"config.json", "a/b/c.gguf", ".gitattributes", "a..b", "ä.txt"}) {
    EXPECT_TRUE(IsSafePath(path)) << path;
  }
  for (const char* path : {"", "/etc/passwd", "..", "../a", "a/../b", "a//b", "a/", "./a", "a/.",
                           "a\\b", "C:a", "a\nb", "a\x7f"}) {
    EXPECT_FALSE(IsSafePath(path)) << path;
  }
  EXPECT_FALSE(IsSafePath(std::string("a\0b", 3)));
  EXPECT_FALSE(IsSafePath(std::string(241, 'a')));
  EXPECT_TRUE(IsSafePath(std::string(240, 'a')));
}

}  // namespace
}  // namespace cria::hub
