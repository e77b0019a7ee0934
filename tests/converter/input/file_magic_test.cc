#include "converter/input/file_magic.h"

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

TEST(FileMagicTest, ComparesTheFirstBytes) {
  const support::TemporaryDirectory folder;
  const auto path = folder.path() / "file";
  support::WriteFile(path, "GGUF and more");
  EXPECT_TRUE(BeginsWith(path, "GGUF"));
  EXPECT_FALSE(BeginsWith(path, "GGML"));
  support::WriteFile(path, "GGUF");
  EXPECT_TRUE(BeginsWith(path, "GGUF"));
}

TEST(FileMagicTest, AFileThatIsShorterOrCannotBeReadDoesNotBeginWithIt) {
  const support::TemporaryDirectory folder;
  const auto path = folder.path() / "file";
  EXPECT_FALSE(BeginsWith(path, "GGUF"));
  for (const char* text : {"", "GGU"}) {
    support::WriteFile(path, text);
    EXPECT_FALSE(BeginsWith(path, "GGUF")) << text;
  }
  EXPECT_FALSE(BeginsWith(folder.path(), "GGUF"));
}

}  // namespace
}  // namespace cria
