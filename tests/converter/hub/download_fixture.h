#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "converter/hub/download.h"
#include "converter/hub/fake_hub.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::hub {

// Downloads a model of a few files, whose contents do not matter here, from a hub of its own.
class DownloadTest : public testing::Test {
 protected:
  DownloadTest() {
    hub_.files = {{"config.json", "{}"},
                  {"tokenizer.json", "{\"a tokenizer\": 1}"},
                  {"README.md", "not needed"},
                  {"model.safetensors", std::string(300'000, 'w')}};
    // Parts of the content differ, so that one in the wrong place is noticed.
    std::string& weights = hub_.files["model.safetensors"];
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<char>(i * i >> 7);
  }

  DownloadOptions Options() {
    return {.endpoint = hub_.url(),
            .cache = cache_,
            .user_agent = "cria-convert/1.2.3",
            .retries = {.max_tries = 3, .first_pause = std::chrono::milliseconds(1)}};
  }

  Result<DownloadedCheckpoint> Fetch(const DownloadOptions& options,
                                     const std::string& name = "hf:tiny-org/tiny-llama",
                                     Purpose purpose = Purpose::kConversion) {
    return Download(Unwrap(ParseCheckpointName(name)), purpose, options, {});
  }
  Result<DownloadedCheckpoint> Fetch() { return Fetch(Options()); }

  // The sentence of a download that must fail.
  std::string FailureOf(const DownloadOptions& options,
                        const std::string& name = "hf:tiny-org/tiny-llama") {
    const auto result = Fetch(options, name);
    EXPECT_FALSE(result);
    return result ? "" : result.error().message();
  }
  std::string FailureOf() { return FailureOf(Options()); }

  void ExpectAllFiles() const {
    EXPECT_THAT(support::FileNames(files_),
                testing::ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
    for (const std::string& name : support::FileNames(files_)) {
      EXPECT_EQ(support::ReadFile(files_ / name), hub_.files.at(name)) << name;
    }
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path cache_ = folder_ / "cache";
  std::filesystem::path files_ =
      cache_ / "127.0.0.1" / "tiny-org" / FakeHub::kCommit / "tiny-llama";
  FakeHub hub_;
};

}  // namespace cria::hub
