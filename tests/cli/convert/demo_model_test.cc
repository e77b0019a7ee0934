// The model file of the repository, which a newcomer chats with first.

#include <gtest/gtest.h>

#include <string>

#include "support/emulation.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

TEST(DemoModel, IsWhatTheConverterMakesOfTheDemoCheckpoint) {
  if (support::IsEmulated()) GTEST_SKIP() << "calibrating takes minutes there";
  const support::TemporaryDirectory folder;
  const std::string made = folder.path() / "cria-demo.cria";
  const std::string demo = support::SourcePath("demo");
  const support::RunResult result =
      support::RunProgram({support::kConvertProgram, demo + "/cria-demo", "-o", made, "--weights",
                           "int4", "--calibrate", demo + "/conversations.jsonl", "--no-verify"},
                          {.timeout_seconds = 300.0});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(support::ReadFile(made) == support::ReadFile(demo + "/cria-demo.cria"))
      << "the command in demo/README.md makes the file anew";
}

}  // namespace
}  // namespace cria
