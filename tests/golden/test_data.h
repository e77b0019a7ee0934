#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cria {

// The folder of test data that is not part of the project, or nothing.
inline std::filesystem::path ExternalTestData() {
  const char* path = std::getenv("CRIA_TEST_DATA");
  return path == nullptr ? std::filesystem::path() : std::filesystem::path(path);
}

}  // namespace cria

// Skips the test with a message unless the external test data has `relative`.
#define CRIA_NEEDS_TEST_DATA(relative)                                       \
  do {                                                                       \
    if (::cria::ExternalTestData().empty() ||                                \
        !std::filesystem::exists(::cria::ExternalTestData() / (relative))) { \
      GTEST_SKIP() << "CRIA_TEST_DATA names no folder with " << (relative);  \
    }                                                                        \
  } while (false)
