// --max-temp: what is refused, and that the text stays the same. Whether this machine tells its
// temperature, and whether it is hot, decides nothing here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;

class MaxTempOptionOfCria : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory = new support::TemporaryDirectory;
    const std::string checkpoint = directory->path() / "checkpoint";
    support::WriteHuggingFaceDirectory(support::MakeModel(support::SpecGqa()), checkpoint, {});
    const RunResult converted =
        RunProgram({support::kModelConverter, "--fast", checkpoint, "-o", ModelPath()});
    ASSERT_EQ(converted.exit_code, 0) << converted.error;
  }
  static void TearDownTestSuite() { delete directory; }

  static std::string ModelPath() { return directory->path() / "model.cria"; }
  static RunResult Run(const std::string& command, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {support::kCriaProgram, command, "-m", ModelPath(),
                                          "--no-pack-cache"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments);
  }

  static inline support::TemporaryDirectory* directory = nullptr;
};

TEST_F(MaxTempOptionOfCria, WrongTemperaturesAreUsageErrors) {
  for (const char* wrong : {"hot", "", "29", "126", "-75", "nan", "inf", "75C", "1e9"}) {
    const RunResult result = Run("run", {"-p", "one", "-n", "1", "--max-temp", wrong});
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.error, HasSubstr("a temperature from 30 to 125 °C, or 0 for no limit"));
  }
}

TEST_F(MaxTempOptionOfCria, CommandsThatMeasureHaveNone) {
  EXPECT_EQ(Run("bench", {"--max-temp", "75"}).exit_code, 2);
}

TEST_F(MaxTempOptionOfCria, TheTextStaysTheSame) {
  const auto text = [](const char* limit) {
    const RunResult result = Run(
        "run", {"-p", "one two", "-n", "8", "-t", "2", "-s", "1", "--max-temp", limit, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    const auto object = nlohmann::json::parse(result.output);
    const bool has_sensor = !result.error.contains("has no effect");
    EXPECT_EQ(object.contains("paused_seconds"), has_sensor && std::string_view(limit) != "0");
    return object["text"].get<std::string>();
  };
  const std::string expected = text("0");
  EXPECT_EQ(text("125"), expected);
  EXPECT_EQ(text("30.5"), expected);
}

}  // namespace
}  // namespace cria
