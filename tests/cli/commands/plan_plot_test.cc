// `cria plan --plot`: the numbers of the picture are those of the plans.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/svg_reader.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using support::SvgNumbers;
using testing::HasSubstr;

class PlanPlot : public testing::Test {
 protected:
  PlanPlot() {
    support::CheckpointSpec spec = support::SpecGqa();
    spec.config.max_position_embeddings = 3000;
    support::WriteHuggingFaceDirectory(support::MakeModel(spec), Checkpoint(), {});
    const RunResult converted = RunProgram(
        {support::kModelConverter, "--fast", Checkpoint(), "-o", Model(), "--no-verify"});
    EXPECT_EQ(converted.exit_code, 0) << converted.error;
  }

  std::string Checkpoint() const { return folder_.path() / "checkpoint"; }
  std::string Model() const { return folder_.path() / "model.cria"; }
  std::string Picture() const { return folder_.path() / "plan.svg"; }
  RunResult Plan(std::vector<std::string> more) const {
    more.insert(more.begin(), {support::kCriaProgram, "plan", "-m", Model(), "-t", "2"});
    return RunProgram(more);
  }
  SvgNumbers Plot(std::vector<std::string> more) const {
    more.insert(more.end(), {"--plot", Picture()});
    const RunResult result = Plan(more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return support::ReadSvg(support::ReadFile(Picture()));
  }

  support::TemporaryDirectory folder_;
};

TEST_F(PlanPlot, ItsPartsAreThoseOfThePlanForEachContext) {
  const SvgNumbers picture = Plot({"-c", "1000"});
  ASSERT_EQ(picture.marks.size(), 1u);
  EXPECT_EQ(picture.marks[0].value, 1000);
  std::map<double, double> sums, kv_bytes;
  for (const SvgNumbers::Series& part : picture.series) {
    for (const SvgNumbers::Point& point : part.points) {
      if (!part.name.starts_with("peak")) sums[point.x] += point.y;
      if (part.name == "KV cache") kv_bytes[point.x] = point.y;
    }
  }
  EXPECT_GT(sums.size(), 12u);
  EXPECT_EQ(sums.begin()->first, 256);
  EXPECT_EQ(sums.rbegin()->first, 3000) << "the longest context";
  for (const double context : {256.0, 362.0, 1000.0, 2048.0, 3000.0}) {
    ASSERT_TRUE(sums.contains(context)) << context;
    const std::string tokens = std::to_string(static_cast<int>(context));
    const auto plan = nlohmann::json::parse(Plan({"-c", tokens, "--json"}).output);
    EXPECT_EQ(sums[context], plan["steady_bytes"].get<double>()) << context;
    for (const auto& line : plan["lines"]) {
      if (line["name"] != "KV cache") continue;
      EXPECT_EQ(kv_bytes[context], line["bytes"].get<double>());
    }
  }
}

TEST_F(PlanPlot, LinesAcrossAreWhatBoardsHave) {
  const auto usable = [&](const std::string& board) {
    const auto plan = nlohmann::json::parse(Plan({"--board", board, "--json"}).output);
    return plan["board"]["usable_bytes"].get<double>();
  };
  // Everything fits the smallest ones, so that no other is drawn.
  const SvgNumbers all = Plot({});
  ASSERT_EQ(all.levels.size(), 1u);
  EXPECT_EQ(all.levels[0].name, "pi-zero-2w, pi-3a");
  EXPECT_EQ(all.levels[0].value, usable("pi-zero-2w"));
  const SvgNumbers one = Plot({"--board", "pi-4-2gb"});
  ASSERT_EQ(one.levels.size(), 1u);
  EXPECT_EQ(one.levels[0].name, "pi-4-2gb");
  EXPECT_EQ(one.levels[0].value, usable("pi-4-2gb"));
}

TEST_F(PlanPlot, ThePlanIsPrintedAllTheSame) {
  const RunResult without = Plan({"-c", "512"});
  EXPECT_EQ(Plan({"-c", "512", "--plot", Picture()}).output, without.output);
  // A checkpoint has the same picture.
  const RunResult checkpoint = RunProgram({support::kConvertProgram, "plan", Checkpoint(), "--fast",
                                           "-t", "2", "-c", "512", "--plot", Picture() + "2"});
  EXPECT_EQ(checkpoint.exit_code, 0) << checkpoint.error;
  EXPECT_EQ(support::ReadFile(Picture() + "2"), support::ReadFile(Picture()));
}

TEST_F(PlanPlot, AFileThatCannotBeWrittenIsAnError) {
  const RunResult result = Plan({"--plot", folder_.path() / "none" / "plan.svg"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("plan.svg"));
}

}  // namespace
}  // namespace cria
