// What this machine's programs make against what the device's programs make of the same checkpoint,
// the latter under emulation.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/plant_channels.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::ReadFile;
using support::RunProgram;
using support::RunResult;
using support::TemporaryDirectory;

constexpr const char* kHostProgram = CRIA_HOST_BUILD "/cli/cria";
constexpr const char* kHostConvertProgram = CRIA_HOST_BUILD "/cli/cria-convert";

// Runs a program that must succeed; its output.
std::string Output(const std::vector<std::string>& arguments,
                   std::vector<std::string> environment = {}) {
  const RunResult result =
      RunProgram(arguments, {.environment = std::move(environment), .timeout_seconds = 600.0});
  EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.error;
  return result.output;
}

class HostAndDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (access(kHostProgram, X_OK) != 0 || access(kHostConvertProgram, X_OK) != 0) {
      GTEST_SKIP() << "there is no " << kHostProgram << " or " << kHostConvertProgram
                   << " to compare with: ./dev build makes them";
    }
  }

  // Converts with both; the host's file.
  std::string ExpectSame(const std::string& checkpoint, const std::vector<std::string>& options) {
    const std::string host = (directory_ / "host.cria").string();
    const std::string device = (directory_ / "device.cria").string();
    // What the model predicts is each processor's own.
    std::vector<std::string> arguments = {kHostConvertProgram, checkpoint, "-o", host,
                                          "--no-verify",       "--fast"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const std::string host_report = Output(arguments);
    arguments[0] = support::kConvertProgram;
    arguments[3] = device;
    std::string device_report = Output(arguments);

    const std::string expected = ReadFile(host);
    const std::string actual = ReadFile(device);
    EXPECT_GT(expected.size(), 0u);
    EXPECT_EQ(expected.size(), actual.size());
    const auto [at, other] = std::ranges::mismatch(expected, actual);
    EXPECT_TRUE(at == expected.end() && other == actual.end())
        << checkpoint << ": byte " << at - expected.begin() << " of " << expected.size()
        << " differs";
    // The errors of quantization that were found are the same sums.
    if (const size_t name = device_report.find(device); name != std::string::npos) {
      device_report.replace(name, device.size(), host);
    }
    EXPECT_EQ(host_report, device_report);
    return host;
  }

  TemporaryDirectory directory_;
};

class SameModelFile : public HostAndDevice, public testing::WithParamInterface<const char*> {};

TEST_P(SameModelFile, OfTheDemo) {
  ExpectSame(support::kDemoCheckpoint, {"--weights", GetParam()});
}

// Widths that are no multiples of a vector or a block, grouped heads, a head of its own, bf16.
TEST_P(SameModelFile, OfRandomWeights) {
  const std::string checkpoint = (directory_ / "checkpoint").string();
  Output({support::kMakeCheckpointProgram,
          "-o",
          checkpoint,
          "--hidden-size",
          "168",
          "--intermediate-size",
          "452",
          "--num-hidden-layers",
          "2",
          "--num-attention-heads",
          "6",
          "--num-key-value-heads",
          "2",
          "--head-dim",
          "28",
          "--vocab-size",
          "613",
          "--tie-word-embeddings",
          "false",
          "--dtype",
          "bf16",
          "--shards",
          "2"});
  ExpectSame(checkpoint, {"--weights", GetParam()});
}

// Both decide alike where to even them out.
TEST_P(SameModelFile, OfLargeChannels) {
  reference::ReferenceModel model = support::MakeModel(support::SpecGqa());
  support::PlantChannels(model, 1);
  const std::string checkpoint = (directory_ / "checkpoint").string();
  support::WriteHuggingFaceDirectory(model, checkpoint, {});
  ExpectSame(checkpoint, {"--weights", GetParam()});
}

// Returns the part of the squared errors of products that remained, as a calibrated conversion's
// report has it.
double RemainingError(const std::string& report) {
  constexpr std::string_view kBefore = "squared errors of products are ";
  const size_t at = report.find(kBefore);
  if (at == std::string::npos) {
    ADD_FAILURE() << report;
    return 0.0;
  }
  return std::stod(report.substr(at + kBefore.size()));
}

// Sums over the activations that a text causes choose the codes. Their order depends on the
// architecture, so that the host's file is as good, but has other bytes.
TEST_F(HostAndDevice, OfACalibratedModel) {
#ifdef __aarch64__
  constexpr const char* kAnotherCore = "QEMU_CPU=cortex-a53";
#else
  constexpr const char* kAnotherCore = "QEMU_CPU=cortex-a15";
#endif
  const reference::ReferenceModel model = support::MakeModel(support::SpecGqa());
  const std::string checkpoint = (directory_ / "checkpoint").string();
  support::WriteHuggingFaceDirectory(model, checkpoint, {});
  const std::string text = (directory_ / "text.txt").string();
  std::string sentences;
  for (int i = 0; i < 150; ++i) {
    sentences += "Bird " + std::to_string(i * 37) + " sings in tree " + std::to_string(i) + ".\n";
  }
  support::WriteFile(text, sentences);
  const auto convert = [&](const char* program, const char* file, std::vector<std::string> core) {
    return Output({program, checkpoint, "-o", (directory_ / file).string(), "--no-verify",
                   "--weights", "int4", "--calibrate", text, "--calibration-tokens", "1024"},
                  std::move(core));
  };
  const double on_device = RemainingError(convert(support::kConvertProgram, "device.cria", {}));
  convert(support::kConvertProgram, "another.cria", {kAnotherCore});
  EXPECT_EQ(ReadFile(directory_ / "device.cria"), ReadFile(directory_ / "another.cria"));

  const double on_host = RemainingError(convert(kHostConvertProgram, "host.cria", {}));
  EXPECT_LT(on_host, 0.6);
  EXPECT_NEAR(on_device, on_host, 0.1 * on_host);
}

INSTANTIATE_TEST_SUITE_P(Weights, SameModelFile, testing::Values("f32", "int8", "int4"));

// A trained model is used: with random weights, two tokens may be about equally likely.
TEST_F(HostAndDevice, GenerateTheSameTokens) {
  const std::string model = ExpectSame(support::kDemoCheckpoint, {"--weights", "f32"});
  for (const char* prompt : {"Hello! Who are you?", "The key", "What is a KV cache? It is"}) {
    std::vector<std::string> arguments = {
        kHostProgram, "run", "-m", model,          "-p",     prompt, "-n",
        "64",         "-t",  "2",  "--ignore-eos", "--temp", "0",    "--no-pack-cache"};
    const std::string expected = Output(arguments);
    EXPECT_GT(expected.size(), std::string_view(prompt).size() + 64);
    arguments[0] = support::kCriaProgram;
    EXPECT_EQ(expected, Output(arguments)) << prompt;
  }
}

}  // namespace
}  // namespace cria
