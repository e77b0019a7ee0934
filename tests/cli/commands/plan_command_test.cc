// `cria plan` and `cria-convert plan`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/emulation.h"
#include "support/family_checkpoint.h"
#include "support/paths.h"
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
using testing::Not;

class PlanCommand : public testing::Test {
 protected:
  PlanCommand() {
    support::CheckpointSpec spec = support::SpecGqa();
    spec.config.max_position_embeddings = 4096;
    support::WriteHuggingFaceDirectory(support::MakeModel(spec), Checkpoint(), {});
    const RunResult converted = RunProgram(
        {support::kModelConverter, "--fast", Checkpoint(), "-o", Model(), "--no-verify"});
    EXPECT_EQ(converted.exit_code, 0) << converted.error;
  }

  std::string Checkpoint() const { return folder_.path() / "checkpoint"; }
  std::string Model() const { return folder_.path() / "model.cria"; }
  RunResult Plan(std::vector<std::string> more) const {
    more.insert(more.begin(), {support::kCriaProgram, "plan", "-m", Model()});
    return RunProgram(more);
  }

  support::TemporaryDirectory folder_;
};

TEST_F(PlanCommand, PrintsTheSameEachTimeBeforeAndAfterConversion) {
  const RunResult first = Plan({"-t", "2"});
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(Plan({"-t", "2"}).output, first.output);
  const RunResult before =
      RunProgram({support::kConvertProgram, "plan", Checkpoint(), "--fast", "-t", "2"});
  EXPECT_EQ(before.output, first.output) << before.error;
}

// With a small model, the program's own share is most of the memory.
TEST_F(PlanCommand, ThePlannedProgramIsTheRealOne) {
  if (support::IsEmulated() || support::kHeapIsSanitized) {
    GTEST_SKIP() << "the emulator's or the sanitizer's memory would be measured";
  }
#if !defined(__x86_64__)
  GTEST_SKIP() << "the figures of other processors are computed";
#endif
  const auto plan = nlohmann::json::parse(Plan({"-t", "2", "--json"}).output);
  const auto measured = nlohmann::json::parse(
      RunProgram({support::kCriaProgram, "bench", "-m", Model(), "--memory", "--json", "-t", "2"})
          .output);
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
  EXPECT_EQ(RunProgram({support::kConvertProgram, "plan", Checkpoint(), "--memory-limit", "2M"})
                .exit_code,
            1);
}

TEST_F(PlanCommand, AContextOfZeroIsTheModelsOwn) {
  EXPECT_THAT(Plan({"-c", "0"}).output, HasSubstr("-c 4096 "));
  EXPECT_THAT(Plan({}).output, HasSubstr("-c 2048 "));
  const RunResult refused = RunProgram({support::kCriaProgram, "run", "-m", Model(), "-p", "a",
                                        "-n", "1", "-c", "0", "--memory-limit", "8M"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("with a context of 4096 tokens"));
}

// What a mixture needs is what one token reads; what else it has is said, and what a disk would
// make of it.
TEST(PlanCommandOfMixtures, SaysWhatATokenReadsFromTheDisk) {
  const support::TemporaryDirectory folder;
  const std::string checkpoint = folder.path() / "checkpoint";
  const std::string model = folder.path() / "model.cria";
  support::WriteFamilyDirectory(support::WideMixture(), checkpoint);
  const RunResult converted = RunProgram({support::kModelConverter, "--fast", checkpoint, "-o",
                                          model, "--weights", "f32", "--no-verify"});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  const auto plan = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {support::kCriaProgram, "plan", "-m", model, "-t", "2"});
    return RunProgram(more);
  };
  const RunResult all = plan({});
  ASSERT_EQ(all.exit_code, 0) << all.error;
  EXPECT_THAT(all.output, ContainsRegex("experts of one token +[0-9]+ .* mapped"));
  EXPECT_THAT(all.output, ContainsRegex("other experts +[0-9]+ .* on demand"));
  EXPECT_THAT(all.output, HasSubstr("read when a token chooses them; needs no memory"));
  EXPECT_EQ(
      RunProgram({support::kConvertProgram, "plan", checkpoint, "--weights", "f32", "-t", "2"})
          .output,
      all.output);
  const auto parts = nlohmann::json::parse(plan({"--json"}).output);
  const auto chosen = parts["token_expert_bytes"].get<uint64_t>();
  // 2 layers of 2 experts with 3 matrices of 256 x 256 floats, and what packing adds.
  EXPECT_GE(chosen, uint64_t{2} * 2 * 3 * 256 * 256 * 4);
  EXPECT_EQ(parts["on_demand_bytes"], 3 * chosen);
  const auto peak = parts["peak_bytes"].get<uint64_t>();
  const RunResult less = plan({"--memory-limit", std::to_string(peak)});
  EXPECT_EQ(less.exit_code, 0) << less.error;
  EXPECT_THAT(less.output, HasSubstr("of experts from the disk if tokens choose evenly: that "
                                     "allows at most "));
  const auto limited =
      nlohmann::json::parse(plan({"--memory-limit", std::to_string(peak), "--json"}).output);
  // The experts of one token are a quarter of all, and there is no room for others.
  EXPECT_NEAR(limited["disk_bytes_per_token"].get<double>(), 0.75 * static_cast<double>(chosen), 1);
  const RunResult enough = plan({"--memory-limit", std::to_string(peak + 3 * chosen)});
  EXPECT_THAT(enough.output, Not(HasSubstr("from the disk")));
  EXPECT_EQ(plan({"--memory-limit", std::to_string(peak - 1)}).exit_code, 1);
  const auto board = nlohmann::json::parse(plan({"--board", "pi-5-16gb", "--json"}).output);
  EXPECT_EQ(board["board"]["disk_bytes_per_token"], 0);
}

}  // namespace
}  // namespace cria
