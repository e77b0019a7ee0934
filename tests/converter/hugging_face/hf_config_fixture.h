#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "converter/hugging_face/hf_config.h"
#include "converter/test_checkpoint.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {

// Reads variants of a small checkpoint's config.json.
class HfConfigFixture : public ::testing::Test {
 protected:
  Result<ModelConfig> Read(const nlohmann::json& config) {
    support::WriteFile(path_, config.dump());
    return ReadHfModel(path_).transform([](const HfModel& model) { return model.config; });
  }
  // What must be read without an error.
  HfModel ReadModel(const nlohmann::json& config) {
    support::WriteFile(path_, config.dump());
    auto read = ReadHfModel(path_);
    EXPECT_TRUE(read) << read.error().message();
    return read.value_or(HfModel{});
  }
  Result<ModelConfig> ReadWith(const std::string& field, const nlohmann::json& value) {
    nlohmann::json config = support::TinyConfig();
    config[field] = value;
    return Read(config);
  }
  // A configuration of another architecture than Llama.
  Result<ModelConfig> ReadAs(const char* architecture, const nlohmann::json& fields) {
    nlohmann::json config = support::TinyConfig();
    config["architectures"] = {architecture};
    config.update(fields.is_null() ? nlohmann::json::object() : fields);
    return Read(config);
  }
  static nlohmann::json With(nlohmann::json fields, const nlohmann::json& more) {
    fields.update(more);
    return fields;
  }
  void ExpectRefusedAs(const char* architecture, const nlohmann::json& fields,
                       std::string_view reason) {
    const auto read = ReadAs(architecture, fields);
    ASSERT_FALSE(read) << fields;
    EXPECT_THAT(read.error().message(), ::testing::HasSubstr(reason)) << fields;
    EXPECT_THAT(read.error().message(), ::testing::HasSubstr(path_.string()));
  }
  void ExpectRefused(const std::string& field, const nlohmann::json& value,
                     std::string_view reason) {
    const auto read = ReadWith(field, value);
    ASSERT_FALSE(read) << field << " " << value;
    EXPECT_THAT(read.error().message(), ::testing::HasSubstr(reason));
    EXPECT_THAT(read.error().message(), ::testing::HasSubstr(path_.string()));
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path path_ = folder_.path() / "config.json";
};

}  // namespace cria
