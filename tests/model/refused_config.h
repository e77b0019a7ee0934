#pragma once

#include <gtest/gtest.h>

#include <string>

#include "model/config.h"

namespace cria {

// Expects that the configuration is refused in a sentence that has `words`, such as a field's name.
inline void ExpectRefused(const ModelConfig& config, const std::string& words,
                          ErrorCode code = ErrorCode::kInvalidFile) {
  const Status status = ValidateConfig(config);
  ASSERT_FALSE(status) << words;
  EXPECT_EQ(status.error().code(), code);
  EXPECT_NE(status.error().message().find(words), std::string::npos) << status.error().message();
}

}  // namespace cria
