#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {

// Converts a small checkpoint.
class ConvertTest : public testing::Test {
 protected:
  void Make(const support::CheckpointSpec& spec) {
    support::WriteRandomCheckpoint(spec, checkpoint_);
  }

  Result<ConvertReport> Run(const ConvertOptions& options, const ProgressCallback& progress = {}) {
    return Convert(checkpoint_, output_, options, progress);
  }
  std::string RunToBytes(const ConvertOptions& options) {
    const auto report = Run(options);
    EXPECT_TRUE(report) << report.error().message();
    return support::ReadFile(output_);
  }
  void ExpectNothingWritten() {
    EXPECT_EQ(support::FileNames(folder_.path()), (std::vector<std::string>{"checkpoint"}));
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path checkpoint_ = folder_.path() / "checkpoint";
  std::filesystem::path output_ = folder_.path() / "model.cria";
};

}  // namespace cria
