// The units of systemd, as far as they can be checked without it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria::tests {
namespace {

using testing::HasSubstr;

TEST(Units, NameFlagsThatTheServerHas) {
  const std::string unit =
      support::ReadFile(support::SourcePath("platforms/debian/systemd/cria-serve.service"));
  EXPECT_THAT(unit, HasSubstr("ExecStart=/usr/bin/cria-serve -m ${MODEL} $OPTIONS\n"));
  EXPECT_THAT(unit, HasSubstr("DynamicUser=yes\n"));
}

TEST(Units, SystemdAcceptsThem) {
  const char* const analyze = "/usr/bin/systemd-analyze";
  if (!std::filesystem::exists(analyze)) GTEST_SKIP() << "there is no systemd-analyze";
  const support::TemporaryDirectory folder;
  // The program is not installed where the unit says.
  std::string service =
      support::ReadFile(support::SourcePath("platforms/debian/systemd/cria-serve.service"));
  const std::string installed = "/usr/bin/cria-serve";
  service.replace(service.find(installed), installed.size(), support::kServeProgram);
  std::ofstream(folder / "cria-serve.service") << service;
  std::filesystem::copy_file(support::SourcePath("platforms/debian/systemd/cria-serve.socket"),
                             folder / "cria-serve.socket");
  const auto result = support::RunProgram(
      {analyze, "verify", "--man=no", folder / "cria-serve.service", folder / "cria-serve.socket"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
}

}  // namespace
}  // namespace cria::tests
