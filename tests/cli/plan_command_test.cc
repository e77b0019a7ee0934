// `cria plan` and `cria-convert plan`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/emulation.h"
#include "support/run_program.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::ContainsRegex;
using testing::HasSubstr;

class PlanCommand : public testing::Test {
 protected:
  PlanCommand() {
    support::CheckpointSpec spec = support::SpecGqa();
    spec.config.max_position_embeddings = 4096;
    support::WriteHuggingFaceDirectory(support::MakeModel(spec), Checkpoint(), {});
    const RunResult converted =
        RunProgram({CRIA_MODEL_CONVERTER, Checkpoint(), "-o", Model(), "--no-verify"});
    EXPECT_EQ(converted.exit_code, 0) << converted.error;
  }

  std::string Checkpoint() const { return folder_.path() / "checkpoint"; }
  std::string Model() const { return folder_.path() / "model.cria"; }
  RunResult Plan(std::vector<std::string> more) const {
    more.insert(more.begin(), {CRIA_PROGRAM, "plan", "-m", Model()});
    return RunProgram(more);
  }

  support::TemporaryDirectory folder_;
};

TEST_F(PlanCommand, PrintsTheSameEachTimeBeforeAndAfterConversion) {
  const RunResult first = Plan({"-t", "2"});
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(Plan({"-t", "2"}).output, first.output);
  const RunResult before = RunProgram({CRIA_CONVERT_PROGRAM, "plan", Checkpoint(), "-t", "2"});
  EXPECT_EQ(before.output, first.output) << before.error;
}

// Of a small model, the program's own share is most of the memory.
TEST_F(PlanCommand, ThePlannedProgramIsTheRealOne) {
  if (support::IsEmulated() || support::kHeapIsSanitized) {
    GTEST_SKIP() << "the emulator's or the sanitizer's memory would be measured";
  }
#if !defined(__x86_64__)
  GTEST_SKIP() << "the figures of other processors are computed";
#endif
  const auto plan = nlohmann::json::parse(Plan({"-t", "2", "--json"}).output);
  const auto measured = nlohmann::json::parse(
      RunProgram({CRIA_PROGRAM, "bench", "-m", Model(), "--memory", "--json", "-t", "2"}).output);
  const auto& last = measured["measured"].back();
  EXPECT_NEAR(plan["private_bytes"].get<double>(), last["private_bytes"].get<double>(), 256 << 10);
  EXPECT_GE(plan["peak_bytes"].get<double>() + (256 << 10),
            last["peak_resident_bytes"].get<double>());
  EXPECT_GE(plan["address_space_bytes"], last["peak_virtual_bytes"]);
}

TEST_F(PlanCommand, AServerHasLinesOfItsOwn) {
  const auto bytes = [&](const std::vector<std::string>& options, const std::string& name) {
    std::vector<std::string> all = {"--json", "-t", "2"};
    all.insert(all.end(), options.begin(), options.end());
    const auto plan = nlohmann::json::parse(Plan(all).output);
    for (const auto& line : plan["lines"]) {
      if (line["name"] == name) return line["bytes"].get<uint64_t>();
    }
    return uint64_t{0};
  };
  EXPECT_EQ(bytes({}, "server: connections"), 0u);
  const uint64_t connections = bytes({"--serve"}, "server: connections");
  EXPECT_GT(connections, 0u);
  EXPECT_EQ(bytes({"--serve", "--max-connections", "128"}, "server: connections"), 2 * connections);
  EXPECT_GT(bytes({"--serve", "--max-queue", "1000"}, "server: requests"),
            bytes({"--serve"}, "server: requests"));
  // It answers four requests at once, unless something else is said, before or after.
  const uint64_t four = bytes({"--serve"}, "server: answers");
  EXPECT_EQ(bytes({"--serve", "-np", "4"}, "server: answers"), four);
  EXPECT_GT(bytes({"--serve", "-np", "8"}, "server: answers"), four);
  EXPECT_EQ(bytes({"-np", "8", "--serve"}, "server: answers"),
            bytes({"--serve", "-np", "8"}, "server: answers"));
}

TEST_F(PlanCommand, ABoardHasItsOwnProgramAndItsVerdictIsTheExitCode) {
  const RunResult fits = Plan({"--board", "pi-zero-2w"});
  EXPECT_EQ(fits.exit_code, 0) << fits.error;
  EXPECT_THAT(fits.output, HasSubstr("it fits"));
  EXPECT_THAT(fits.output, ContainsRegex("program +524288 "));
  const RunResult too_large =
      Plan({"--board", "pi-zero-2w", "-c", "4096", "-np", "256", "-b", "4096"});
  if (too_large.output.contains("it does not fit")) {
    EXPECT_EQ(too_large.exit_code, 1);
    EXPECT_THAT(too_large.error, HasSubstr("does not fit the memory of Raspberry Pi Zero 2 W"));
  }
}

TEST_F(PlanCommand, ALimitIsCompared) {
  EXPECT_EQ(Plan({"--memory-limit", "1G"}).exit_code, 0);
  const RunResult limited = Plan({"--memory-limit", "2M"});
  EXPECT_EQ(limited.exit_code, 1);
  EXPECT_THAT(limited.output, HasSubstr("= resident, peak"));
  EXPECT_THAT(limited.error, HasSubstr("more than the 2.0 MB of --memory-limit"));
  const RunResult as_json = Plan({"--memory-limit", "2M", "--json"});
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_TRUE(nlohmann::json::accept(as_json.output));
  EXPECT_EQ(
      RunProgram({CRIA_CONVERT_PROGRAM, "plan", Checkpoint(), "--memory-limit", "2M"}).exit_code,
      1);
}

TEST_F(PlanCommand, AContextOfZeroIsTheModelsOwn) {
  EXPECT_THAT(Plan({"-c", "0"}).output, HasSubstr("-c 4096 "));
  EXPECT_THAT(Plan({}).output, HasSubstr("-c 2048 "));
  const RunResult refused = RunProgram({CRIA_PROGRAM, "run", "-m", Model(), "-p", "a", "-n", "1",
                                        "-c", "0", "--memory-limit", "8M"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("with a context of 4096 tokens"));
}

}  // namespace
}  // namespace cria
