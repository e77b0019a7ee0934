#include "converter/hub/model_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/unwrap.h"

namespace cria::hub {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kCommit(40, 'c');

json Info(json siblings) { return {{"sha", kCommit}, {"siblings", std::move(siblings)}}; }

ModelInfo Parse(const json& info) { return Unwrap(ParseModelInfo(info.dump(), "hf:a/b")); }

void ExpectBad(const json& info, const std::string& words) {
  const auto parsed = ParseModelInfo(info.dump(), "hf:a/b");
  ASSERT_FALSE(parsed) << info;
  EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalidFile);
  EXPECT_THAT(parsed.error().message(), testing::StartsWith("hf:a/b: "));
  EXPECT_THAT(parsed.error().message(), HasSubstr(words));
}

TEST(ModelInfo, FilesHaveTheSizesAndHashesThatTheHubGives) {
  const std::string sha256(64, 'a');
  const std::string git(40, 'b');
  const ModelInfo info =
      Parse(Info({{{"rfilename", "small"}, {"size", 5}, {"blobId", git}},
                  {{"rfilename", "large"},
                   {"size", 134},
                   {"blobId", git},
                   {"lfs", {{"sha256", sha256}, {"size", 7'000'000'000}, {"pointerSize", 134}}}},
                  {{"rfilename", "large2"}, {"lfs", {{"oid", sha256}, {"size", 8}}}},
                  {{"rfilename", "unknown"}},
                  {{"rfilename", "odd"}, {"size", -1}, {"blobId", "no hash"}, {"lfs", nullptr}}}));
  EXPECT_EQ(info.commit, kCommit);
  EXPECT_EQ(info.Find("small")->size_bytes, 5u);
  EXPECT_EQ(info.Find("small")->hash->kind, ExpectedHash::Kind::kGitBlob);
  EXPECT_EQ(info.Find("small")->hash->digits, git);
  EXPECT_EQ(info.Find("large")->size_bytes, 7'000'000'000u);
  EXPECT_EQ(info.Find("large")->hash->kind, ExpectedHash::Kind::kSha256);
  EXPECT_EQ(info.Find("large")->hash->digits, sha256);
  EXPECT_EQ(info.Find("large2")->size_bytes, 8u);
  EXPECT_EQ(info.Find("large2")->hash->digits, sha256);
  for (const char* name : {"unknown", "odd"}) {
    EXPECT_FALSE(info.Find(name)->size_bytes) << name;
    EXPECT_FALSE(info.Find(name)->hash) << name;
  }
  EXPECT_EQ(info.Find("other"), nullptr);
}

TEST(ModelInfo, KnowsTheLicenceAndWhetherTheModelIsGated) {
  json info = Info(json::array());
  EXPECT_EQ(Parse(info).licence, "");
  EXPECT_FALSE(Parse(info).is_gated);
  info["gated"] = false;
  EXPECT_FALSE(Parse(info).is_gated);
  for (const char* gated : {"auto", "manual"}) {
    info["gated"] = gated;
    EXPECT_TRUE(Parse(info).is_gated);
  }
  info["cardData"] = {{"license", "mit"}};
  EXPECT_EQ(Parse(info).licence, "mit");
  info["cardData"] = {{"license", "other"}, {"license_name", "llama3.2"}};
  EXPECT_EQ(Parse(info).licence, "llama3.2");
  info["cardData"] = {{"license", {"mit", "apache-2.0"}}};
  EXPECT_EQ(Parse(info).licence, "mit, apache-2.0");
  info["cardData"] = {{"license", "a\nb"}};
  EXPECT_EQ(Parse(info).licence, "a\\x0Ab");
  info["cardData"] = {{"license", 5}};
  EXPECT_EQ(Parse(info).licence, "");
}

TEST(ModelInfo, RefusesNamesThatLeadOutOfTheFolder) {
  for (const char* path : {"/etc/passwd", "../a", "a/../../b", "a\\b", "a//b", "", "a\nb"}) {
    ExpectBad(Info({{{"rfilename", "fine"}}, {{"rfilename", path}}}), "could lead out of");
  }
}

TEST(ModelInfo, RefusesAnswersThatAreNotUsable) {
  ExpectBad({{"siblings", json::array()}}, "names no commit");
  ExpectBad({{"sha", "../x"}, {"siblings", json::array()}}, "names no commit");
  ExpectBad({{"sha", kCommit}}, "has no list of files");
  ExpectBad(Info({"a"}), "a file without a name");
  ExpectBad(Info({{{"rfilename", 1}}}), "a file without a name");
  ExpectBad(Info({{{"rfilename", "a"}}, {{"rfilename", "a"}}}), "lists the file \"a\" twice");
  json many = json::array();
  for (int i = 0; i < 50'001; ++i) many.push_back({{"rfilename", std::to_string(i)}});
  ExpectBad(Info(many), "lists 50001 files");
  EXPECT_FALSE(ParseModelInfo("<html>", "hf:a/b"));
  EXPECT_FALSE(ParseModelInfo("", "hf:a/b"));
}

}  // namespace
}  // namespace cria::hub
