#include "support/run_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "support/files.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"

namespace cria::support {
namespace {

RunResult Shell(const std::string& script, const RunOptions& options = {}) {
  return RunProgram({"sh", "-c", script}, options);
}

TEST(RunProgram, CapturesBothOutputsAndTheExitCode) {
  const RunResult result = Shell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.error, "err\n");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.timed_out);
  EXPECT_GT(result.peak_resident_bytes, 0u);
}

TEST(RunProgram, PassesArgumentsUnchanged) {
  EXPECT_EQ(RunProgram({"printf", "%s|", "a b", "", "$HOME", "*"}).output, "a b||$HOME|*|");
}

TEST(RunProgram, FeedsMoreInputThanAPipeHolds) {
  RunOptions options;
  options.input.assign(1 << 20, 'x');
  EXPECT_EQ(RunProgram({"cat"}, options).output, options.input);
}

TEST(RunProgram, OutlivesAProgramThatReadsNoInput) {
  RunOptions options;
  options.input.assign(1 << 20, 'x');
  EXPECT_EQ(RunProgram({"true"}, options).exit_code, 0);
}

TEST(RunProgram, NoInputIsTheEndOfTheFile) { EXPECT_EQ(RunProgram({"cat"}).exit_code, 0); }

TEST(RunProgram, ReportsTheSignal) {
  const RunResult result = Shell("kill -TERM $$");
  EXPECT_EQ(result.signal, 15);
  EXPECT_EQ(result.exit_code, -1);
}

TEST(RunProgram, KillsAtTheTimeoutWithAllThatWasStarted) {
  RunOptions options;
  options.timeout_seconds = 0.2;
  const RunResult result = Shell("echo begun; sleep 100; echo ended", options);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, 9);
  EXPECT_EQ(result.output, "begun\n");
}

TEST(RunProgram, TimeoutHoldsWhereTheOutputsAreClosed) {
  RunOptions options;
  options.timeout_seconds = 0.2;
  EXPECT_TRUE(Shell("exec >&- 2>&-; sleep 100", options).timed_out);
}

TEST(RunProgram, SetsEnvironmentAndDirectory) {
  const TemporaryDirectory directory;
  RunOptions options;
  options.environment = {"CRIA_TEST_WORD=hello"};
  options.working_directory = directory.path().string();
  EXPECT_EQ(Shell("echo $CRIA_TEST_WORD; pwd -P", options).output,
            "hello\n" + std::filesystem::canonical(directory.path()).string() + "\n");
}

TEST(RunProgram, LimitsTheSizeOfFiles) {
  const TemporaryDirectory directory;
  RunOptions options;
  options.file_size_limit_bytes = 4096;
  const std::string file = (directory / "file").string();
  const RunResult result =
      RunProgram({"dd", "if=/dev/zero", "of=" + file, "bs=1024", "count=8"}, options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(std::filesystem::file_size(file), 4096u);
}

TEST(RunProgram, LimitsTheAddressSpace) {
  if (kHeapIsSanitized) GTEST_SKIP() << "a child would inherit the sanitizer's address space";
  // dd takes its block from the heap.
  const std::vector<std::string> arguments = {"dd", "if=/dev/zero", "of=/dev/null", "bs=64M",
                                              "count=1"};
  EXPECT_EQ(RunProgram(arguments).exit_code, 0);
  RunOptions options;
  options.address_space_limit_bytes = 48 << 20;
  EXPECT_NE(RunProgram(arguments, options).exit_code, 0);
}

TEST(RunProgram, ThrowsWhereThereIsNoSuchProgram) {
  EXPECT_THROW(RunProgram({"/nonexistent/program"}), std::runtime_error);
  EXPECT_THROW(RunProgram({}), std::runtime_error);
}

TEST(TemporaryDirectory, IsRemovedWithWhatItHolds) {
  std::filesystem::path path;
  {
    const TemporaryDirectory directory;
    path = directory.path();
    std::filesystem::create_directory(directory / "folder");
    WriteFile(directory / "folder" / "file", "text");
    std::filesystem::permissions(directory / "folder", std::filesystem::perms::owner_read);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Files, KeepEveryByte) {
  const TemporaryDirectory directory;
  const std::string bytes("a\0\r\n\xff", 5);
  WriteFile(directory / "file", "something longer that goes");
  WriteFile(directory / "file", bytes);
  EXPECT_EQ(ReadFile(directory / "file"), bytes);
  EXPECT_THROW(ReadFile(directory / "none"), std::runtime_error);
  EXPECT_THROW(WriteFile(directory / "none" / "file", ""), std::runtime_error);
}

}  // namespace
}  // namespace cria::support
