// `cria-mpi plan --ranks` and `pack --ranks`, which need no mpirun.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/converted_model.h"
#include "support/family_checkpoint.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;
using testing::Not;

class RankPlan : public testing::Test {
 protected:
  RunResult Plan(std::vector<std::string> more) const {
    more.insert(more.begin(), {support::kMpiProgram, "plan", "-m", model_.path(), "--ranks", "2"});
    return RunProgram(more);
  }
  nlohmann::json PlanJson(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const RunResult plan = Plan(more);
    EXPECT_EQ(plan.exit_code, 0) << plan.error;
    return nlohmann::json::parse(plan.output);
  }

  support::ConvertedModel model_;
};

double ReadingSeconds(const nlohmann::json& plan) {
  return plan["predicted"]["reading_seconds"].get<double>();
}

double WeightBytes(const nlohmann::json& plan, size_t rank) {
  return plan["ranks"][rank]["weight_bytes_per_token"].get<double>();
}

TEST_F(RankPlan, OneNameIsTheBoardOfAllRanks) {
  const nlohmann::json one = PlanJson({"--board", "pi-4-8gb"});
  EXPECT_EQ(PlanJson({"--board", "pi-4-8gb,pi-4-8gb"}), one);
  const RunResult text = Plan({"--board", "pi-4-8gb"});
  EXPECT_THAT(text.output, HasSubstr("Prediction for 2 of Raspberry Pi 4 Model B, 8 GB: "));
  EXPECT_THAT(text.output, HasSubstr("One board alone"));
  EXPECT_THAT(text.output, Not(HasSubstr("wait for rank")));
}

TEST_F(RankPlan, AllWaitForTheSlowestBoard) {
  const nlohmann::json mixed = PlanJson({"--board", "pi-5-8gb,pi-4-8gb"});
  const nlohmann::json slow = PlanJson({"--board", "pi-4-8gb"});
  const nlohmann::json fast = PlanJson({"--board", "pi-5-8gb"});
  const double bandwidth = WeightBytes(slow, 0) / ReadingSeconds(slow);
  EXPECT_DOUBLE_EQ(ReadingSeconds(mixed), WeightBytes(mixed, 1) / bandwidth);
  EXPECT_EQ(mixed["predicted"]["alone_tokens_per_second"],
            fast["predicted"]["alone_tokens_per_second"]);
  const RunResult text = Plan({"--board", "pi-5-8gb,pi-4-8gb"});
  EXPECT_THAT(text.output, HasSubstr("Prediction for 1 of Raspberry Pi 5, 8 GB and 1 of Raspberry "
                                     "Pi 4 Model B, 8 GB: "));
  EXPECT_THAT(text.output, HasSubstr("The fastest board alone"));
  EXPECT_THAT(text.output, HasSubstr("wait for rank 1, which reads for the longest time. "
                                     "--rank-weights 11.4,5.3 gives"));
  const nlohmann::json even =
      PlanJson({"--board", "pi-5-8gb,pi-4-8gb", "--rank-weights", "11.4,5.3"});
  EXPECT_LT(ReadingSeconds(even), ReadingSeconds(mixed));
  EXPECT_LT(WeightBytes(even, 1), WeightBytes(mixed, 1));
  EXPECT_THAT(Plan({"--board", "pi-5-8gb,pi-4-8gb", "--rank-weights", "11.4,5.3"}).output,
              Not(HasSubstr("wait for rank")));
}

TEST_F(RankPlan, RefusesBoardsThatDoNotFitTheRanks) {
  const RunResult more = Plan({"--board", "pi-5-8gb,pi-4-8gb,pi-4-8gb"});
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_THAT(more.error, HasSubstr("--board names 3 boards for 2 ranks"));
  for (const char* names : {"pi-9", "pi-5-8gb,", ",pi-5-8gb", "pi-5-8gb,,pi-5-8gb"}) {
    const RunResult unknown = Plan({"--board", names});
    EXPECT_EQ(unknown.exit_code, 2) << names;
    EXPECT_THAT(unknown.error, HasSubstr("the boards are pi-zero-2w, ")) << names;
  }
}

// These are refused when the ranks start, too.
TEST_F(RankPlan, DraftsAndMixturesNeedTheSameInstructions) {
  const RunResult drafts = Plan({"--board", "pi-5-8gb,pi-4-8gb", "--draft-ngram", "2"});
  EXPECT_EQ(drafts.exit_code, 1);
  EXPECT_THAT(drafts.error,
              HasSubstr("a Raspberry Pi 4 Model B, 8 GB has another instruction set"));
  EXPECT_EQ(Plan({"--board", "pi-4-8gb,pi-3", "--draft-ngram", "2"}).exit_code, 0);
  const support::ConvertedModel mixture(support::WideMixture(), {.weights = Scheme::kQc8w});
  const RunResult experts = RunProgram({support::kMpiProgram, "plan", "-m", mixture.path(),
                                        "--ranks", "2", "--board", "pi-5-8gb,pi-4-8gb"});
  EXPECT_EQ(experts.exit_code, 1);
  EXPECT_THAT(experts.error, HasSubstr("has another instruction set"));
}

TEST_F(RankPlan, SaysWhichRankExceedsALimit) {
  const nlohmann::json plan = PlanJson({});
  const auto peak = plan["ranks"][1]["peak_bytes"].get<uint64_t>();
  ASSERT_GE(plan["ranks"][0]["peak_bytes"].get<uint64_t>(), peak);
  const RunResult less = Plan({"--memory-limit", std::to_string(peak - 1)});
  EXPECT_EQ(less.exit_code, 1);
  EXPECT_THAT(less.error, HasSubstr("rank 0 needs "));
  EXPECT_THAT(less.error, HasSubstr("start more ranks"));
  EXPECT_EQ(Plan({"--memory-limit", "1G"}).exit_code, 0);
}

#ifdef __x86_64__
TEST_F(RankPlan, APartIsNotPackedByAnEmulator) {
  const support::TemporaryDirectory folder;
  const RunResult packed =
      RunProgram({support::kMpiProgram, "pack", "-m", model_.path(), "--ranks", "2", "--rank", "1",
                  "--for", "cortex-a72", "-o", folder.path() / "part.criapack"});
  EXPECT_EQ(packed.exit_code, 1);
  EXPECT_THAT(packed.error, HasSubstr("pack it on the board"));
}
#endif

class RankPack : public RankPlan {
 protected:
  RunResult Pack(std::vector<std::string> more) const {
    more.insert(more.begin(), {support::kMpiProgram, "pack", "-m", model_.path(), "--pack-cache",
                               folder_.path(), "--ranks", "2"});
    return RunProgram(more);
  }

  support::TemporaryDirectory folder_;
};

TEST_F(RankPack, EachPartHasAFileOfItsOwn) {
  for (const char* rank : {"0", "1"}) {
    const RunResult packed = Pack({"--rank", rank});
    EXPECT_EQ(packed.exit_code, 0) << packed.error;
  }
  const RunResult removed = Pack({"--rank", "1", "--remove"});
  EXPECT_EQ(removed.exit_code, 0) << removed.error;
  EXPECT_EQ(Pack({"--rank", "1", "--remove"}).exit_code, 1);
  EXPECT_EQ(Pack({"--rank", "0", "--remove"}).exit_code, 0);
}

TEST_F(RankPack, RefusesWhatIsNoPart) {
  const RunResult standalone =
      Pack({"--rank", "1", "--standalone", "-o", folder_.path() / "standalone.cria"});
  EXPECT_EQ(standalone.exit_code, 2);
  EXPECT_THAT(standalone.error, HasSubstr("not the part of a rank"));
  const RunResult all = Pack({});
  EXPECT_EQ(all.exit_code, 2);
  EXPECT_THAT(all.error, HasSubstr("say which with --rank"));
}

}  // namespace
}  // namespace cria
