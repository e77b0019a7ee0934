// Weights that this machine's program packs for a device's processor.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;

constexpr const char* kHostProgram = CRIA_HOST_BUILD "/cli/cria";
constexpr const char* kHostConvertProgram = CRIA_HOST_BUILD "/cli/cria-convert";

std::vector<std::string> RunArguments(const std::string& program, const std::string& model) {
  return {program, "run", "-m", model, "-p", "Hello!", "-n", "8", "--temp", "0"};
}

TEST(PackForTest, RunsThereAndIsRefusedElsewhere) {
  const char* const core = std::getenv("QEMU_CPU");
  ASSERT_NE(core, nullptr) << "the tests are to run with QEMU_CPU set";
  if (access(kHostProgram, X_OK) != 0 || access(kHostConvertProgram, X_OK) != 0) {
    GTEST_SKIP() << "there is no " << kHostProgram << ": ./dev build makes it";
  }
  const support::TemporaryDirectory directory;
  const std::string model = directory.path() / "model.cria";
  const RunResult converted = RunProgram(
      {kHostConvertProgram, "--fast", support::kDemoCheckpoint, "-o", model, "--weights", "int4"});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;

  const std::string packed = directory.path() / "packed.cria";
  const RunResult packing =
      RunProgram({kHostProgram, "pack", "-m", model, "-o", packed, "--standalone", "--for", core},
                 {.environment = {"QEMU_CPU=", std::string("QEMU_LD_PREFIX=") + CRIA_SYSROOT,
                                  std::string("CRIA_AARCH64_PROGRAM=") + CRIA_DEVICE_PROGRAM},
                  .timeout_seconds = 600.0});
  ASSERT_EQ(packing.exit_code, 0) << packing.error;

  const RunResult expected = RunProgram(RunArguments(support::kCriaProgram, model));
  const RunResult there = RunProgram(RunArguments(support::kCriaProgram, packed));
  EXPECT_EQ(there.exit_code, 0) << there.error;
  EXPECT_EQ(there.output, expected.output);

  const std::string other = std::string(core) == "cortex-a76" ? "cortex-a53" : "cortex-a76";
  for (const RunResult& elsewhere : {RunProgram(RunArguments(kHostProgram, packed)),
                                     RunProgram(RunArguments(support::kCriaProgram, packed),
                                                {.environment = {"QEMU_CPU=" + other}})}) {
    EXPECT_EQ(elsewhere.exit_code, 1);
    EXPECT_EQ(
        elsewhere.error,
        "cria: error: " + packed + ": was packed for another processor (" + core +
            ") or another XNNPACK; run the model file that it was made from, or pack that file "
            "here with cria pack --standalone\n");
  }
}

}  // namespace
}  // namespace cria
