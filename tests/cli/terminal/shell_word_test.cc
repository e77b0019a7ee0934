#include "cli/terminal/shell_word.h"

#include <gtest/gtest.h>

#include "cli/model_name.h"

namespace cria::cli {
namespace {

TEST(ShellWordTest, QuotesWhatTheShellWouldChange) {
  EXPECT_EQ(ShellWord("models/Llama-3.2_1B.gguf"), "models/Llama-3.2_1B.gguf");
  EXPECT_EQ(ShellWord("my models/x"), "'my models/x'");
  EXPECT_EQ(ShellWord("$HOME"), "'$HOME'");
  EXPECT_EQ(ShellWord("~/x"), "'~/x'");
  EXPECT_EQ(ShellWord("it's"), R"('it'\''s')");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(ShellWordTest, APathIsNeverAnOption) {
  EXPECT_EQ(ShellWord("-o"), "./-o");
  EXPECT_EQ(ShellWord("-a b"), "'./-a b'");
}

TEST(ModelNameTest, IsTheCheckpointsName) {
  EXPECT_EQ(ModelNameFor("models/x.gguf"), "x.cria");
  EXPECT_EQ(ModelNameFor("/"), ".cria");
  EXPECT_EQ(ModelNameFor("hf:Qwen/Qwen3-0.6B@main"), "Qwen3-0.6B.cria");
  EXPECT_EQ(ModelNameFor("hf:a/b/folder/c-0.5.gguf"), "c-0.5.cria");
  // A folder's name may have a dot.
  EXPECT_EQ(ModelNameFor("/proc/self/"), "self.cria");
}

}  // namespace
}  // namespace cria::cli
