#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "converter/convert.h"
#include "support/files.h"

namespace cria {

// The model file that a checkpoint becomes, which is written to `output`; empty after a failure of
// the test.
inline std::string ConvertToBytes(const std::filesystem::path& checkpoint,
                                  const std::filesystem::path& output,
                                  const ConvertOptions& options) {
  const auto report = Convert(checkpoint, output, options);
  if (!report) {
    ADD_FAILURE() << report.error().message();
    return "";
  }
  return support::ReadFile(output);
}

}  // namespace cria
