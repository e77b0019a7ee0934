// What cria-serve does not start with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/demo_model.h"
#include "cli/serve/server_program.h"
#include "support/http_server.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria::tests {
namespace {

using support::RunResult;
using testing::HasSubstr;

RunResult Start(std::vector<std::string> options) {
  options.insert(options.begin(), {support::kServeProgram, "-m", DemoModel(), "-t", "2"});
  return support::RunProgram(options);
}

TEST(ServeRefuses, OtherMachinesWithoutAKey) {
  for (const char* const host : {"0.0.0.0", "::"}) {
    const RunResult result = Start({"--host", host, "--port", "0"});
    if (result.error.contains("Address family not supported")) continue;
    EXPECT_EQ(result.exit_code, 2) << host;
    EXPECT_THAT(result.error, HasSubstr("--api-key-file")) << host;
    EXPECT_THAT(result.error, HasSubstr("--insecure")) << host;
  }
}

TEST(ServeRefuses, APortThatIsTaken) {
  const ServerProgram first({"--port", "0"});
  const RunResult result = Start({"--port", std::to_string(first.port())});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("another process listens there"));
}

TEST(ServeRefuses, WrongFlags) {
  EXPECT_EQ(support::RunProgram({support::kServeProgram}).exit_code, 2);
  EXPECT_EQ(Start({"--port", "65536"}).exit_code, 2);
  EXPECT_EQ(Start({"--port", "x"}).exit_code, 2);
  EXPECT_EQ(Start({"--max-connections", "0"}).exit_code, 2);
  EXPECT_EQ(Start({"--host", "no host"}).exit_code, 2);
  EXPECT_EQ(Start({"--no-such-flag"}).exit_code, 2);
}

TEST(ServeRefuses, MissingFiles) {
  const support::TemporaryDirectory folder;
  EXPECT_EQ(Start({"--port", "0", "--api-key-file", folder / "missing"}).exit_code, 1);
  std::ofstream(folder / "keys") << "# none\n";
  const RunResult no_key = Start({"--port", "0", "--api-key-file", folder / "keys"});
  EXPECT_EQ(no_key.exit_code, 2);
  EXPECT_THAT(no_key.error, HasSubstr("has no key"));
  EXPECT_EQ(support::RunProgram({support::kServeProgram, "-m", folder / "missing", "--port", "0"})
                .exit_code,
            1);
}

TEST(ServeRefuses, ToTakeMoreMemoryThanAllowed) {
  // The model alone would fit.
  const RunResult result =
      Start({"--port", "0", "--memory-limit", "40M", "--max-connections", "5000"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("server: connections"));
}

TEST(ServeRefuses, MoreConnectionsThanOpenFiles) {
  const RunResult result =
      support::RunProgram({"/bin/sh", "-c",
                           "ulimit -n 128; exec " + std::string(support::kServeProgram) + " -m " +
                               DemoModel() + " --port 0 --max-connections 100"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace cria::tests
