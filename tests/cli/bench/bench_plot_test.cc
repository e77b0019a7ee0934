// `cria bench --plot`: the numbers of the picture are those of the rows that are printed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "budget/generated_model.h"
#include "support/files.h"
#include "support/run_program.h"
#include "support/svg_reader.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

TEST(BenchPlot, DrawsTheRowsThatArePrinted) {
  const budget::GeneratedModel model({"--shape", "stories15m"}, {"--weights", "int8"});
  const support::TemporaryDirectory folder;
  const std::string path = folder.path() / "bench.svg";
  const auto run = model.Run("bench", {"-p", "16", "-n", "4", "-d", "0,32", "-r", "2", "-t", "1",
                                       "-o", "json", "--plot", path});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  std::multiset<std::pair<double, double>> printed, drawn;
  for (const auto& row : nlohmann::json::parse(run.output)) {
    printed.emplace(row["n_depth"].get<double>(), row["avg_ts"].get<double>());
  }
  const support::SvgNumbers picture = support::ReadSvg(support::ReadFile(path));
  EXPECT_EQ(picture.series.size(), 2u) << "prompts and generating";
  for (const auto& series : picture.series) {
    for (const auto& point : series.points) drawn.emplace(point.x, point.y);
  }
  EXPECT_EQ(printed.size(), 4u);
  EXPECT_EQ(drawn, printed);

  // Before anything is measured.
  const std::string none = folder.path() / "none.svg";
  const auto refused = model.Run("bench", {"-p", "16", "-n", "0", "--plot", none});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, testing::HasSubstr("-d 0,1024,2048"));
  EXPECT_EQ(refused.output, "");
  EXPECT_FALSE(std::filesystem::exists(none));
}

}  // namespace
}  // namespace cria
