#include "converter/hub/download.h"

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "converter/hub/download_fixture.h"
#include "converter/hub/look_up.h"
#include "core/format.h"

namespace cria::hub {
namespace {

using support::HttpRequest;
using support::HttpResponse;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(DownloadTest, GetsTheNeededFilesOfOneCommit) {
  const DownloadedCheckpoint checkpoint = Unwrap(Fetch());
  EXPECT_EQ(checkpoint.path(), files_);
  EXPECT_EQ(checkpoint.commit(), FakeHub::kCommit);
  EXPECT_EQ(checkpoint.licence(), "apache-2.0");
  ExpectAllFiles();
  EXPECT_EQ(hub_.NumRequests("/revision/main?blobs=true"), 1u);
  EXPECT_EQ(hub_.NumRequests("README"), 0u);
  for (const HttpRequest& request : hub_.requests()) {
    EXPECT_EQ(request.header("user-agent"), "cria-convert/1.2.3");
    EXPECT_EQ(request.header("authorization"), "");
  }
}

TEST_F(DownloadTest, ASecondOneAsksOnlyForTheCommit) {
  Unwrap(Fetch());
  const size_t before = hub_.requests().size();
  Unwrap(Fetch());
  EXPECT_EQ(hub_.requests().size(), before + 1);
  ExpectAllFiles();
}

TEST_F(DownloadTest, AsksForTheRevisionAndRefusesAnotherCommit) {
  Unwrap(Fetch(Options(), "hf:tiny-org/tiny-llama@refs/pr/1"));
  EXPECT_EQ(hub_.NumRequests("/revision/refs%2Fpr%2F1?"), 1u);
  Unwrap(Fetch(Options(), std::string("hf:tiny-org/tiny-llama@") + FakeHub::kCommit));
  const std::string other(40, 'f');
  hub_.change_api = [&](const HttpRequest&, HttpResponse& response) {
    response = {.body = Format(R"({{"sha": "{}", "siblings": []}})", other)};
  };
  EXPECT_THAT(FailureOf(Options(), std::string("hf:tiny-org/tiny-llama@") + FakeHub::kCommit),
              HasSubstr("the hub answered with commit " + other));
}

TEST_F(DownloadTest, SizesAndHashesMayBeOnlyInTheHeadersOfFiles) {
  hub_.gives_sizes = false;
  Unwrap(Fetch());
  ExpectAllFiles();
  EXPECT_EQ(hub_.NumRequests("/storage/"), 1u) << "a question for the headers went further";
  const size_t before = hub_.requests().size();
  Unwrap(Fetch());
  EXPECT_EQ(hub_.requests().size(), before + 1);
}

TEST_F(DownloadTest, HashesInHeadersAreCheckedToo) {
  hub_.gives_sizes = false;
  hub_.change_file = [](const HttpRequest&, HttpResponse& response) {
    if (response.body.size() > 1000) response.body[5] ^= 1;
  };
  EXPECT_THAT(FailureOf(), HasSubstr("model.safetensors: the downloaded file has the SHA-256"));
}

TEST_F(DownloadTest, AFileWithAnotherContentIsDeletedAndNamed) {
  for (const std::string name : {"tokenizer.json", "model.safetensors"}) {
    hub_.change_file = [&](const HttpRequest& request, HttpResponse& response) {
      if (request.target.ends_with(name)) response.body[5] ^= 1;
    };
    EXPECT_THAT(FailureOf(),
                AllOf(HasSubstr("hf:tiny-org/tiny-llama/" + name), HasSubstr("deleted"),
                      HasSubstr(name == "tokenizer.json" ? "git id" : "SHA-256")));
    EXPECT_FALSE(std::filesystem::exists(files_ / name));
    EXPECT_FALSE(std::filesystem::exists(files_ / (name + ".part")));
    hub_.change_file = {};
  }
  Unwrap(Fetch());
  ExpectAllFiles();
}

TEST_F(DownloadTest, AFileThatIsTooLongIsDeletedAndNamed) {
  hub_.change_file = [](const HttpRequest& request, HttpResponse& response) {
    if (request.target.ends_with("tokenizer.json")) response.body += "more";
  };
  EXPECT_THAT(FailureOf(), HasSubstr("tokenizer.json: has more than the 18 bytes"));
  EXPECT_THAT(support::FileNames(files_), ElementsAre("config.json"));
}

TEST_F(DownloadTest, ChecksTheDiskBeforeItDownloads) {
  hub_.change_api = [](const HttpRequest&, HttpResponse& response) {
    auto info = nlohmann::json::parse(response.body);
    for (auto& sibling : info["siblings"]) {
      if (sibling.contains("lfs")) sibling["lfs"]["size"] = 7'000'000'000'000'000'000;
    }
    response.body = info.dump();
  };
  const auto result = Fetch();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(),
              testing::ContainsRegex("7000000000\\.00 GB are still to be downloaded, but only "
                                     "[0-9.]+ [kMG]?B are free"));
  EXPECT_EQ(result.error().remedy().kind, RemedyKind::kDownloadFolder);
  EXPECT_EQ(hub_.NumRequests("/resolve/"), 0u);
}

TEST_F(DownloadTest, TheTokenGoesToTheHubAlone) {
  std::vector<std::string> elsewhere;
  support::HttpServer storage([&](const HttpRequest& request) -> HttpResponse {
    elsewhere.push_back(request.header("authorization"));
    return {.body = hub_.files.at("model.safetensors")};
  });
  hub_.token = "hf_secret";
  DownloadOptions options = Options();
  options.token = "hf_secret";
  hub_.change_file = {};
  // The hub's own redirect is to another port.
  hub_.large_files = {};
  hub_.change_file = [&](const HttpRequest& request, HttpResponse& response) {
    if (!request.target.ends_with("model.safetensors")) return;
    response = {.status = 302, .headers = {{"Location", storage.url() + "/file"}}};
  };
  Unwrap(Fetch(options));
  ExpectAllFiles();
  EXPECT_THAT(elsewhere, ElementsAre(""));
  for (const HttpRequest& request : hub_.requests()) {
    EXPECT_EQ(request.header("authorization"), "Bearer hf_secret") << request.target;
  }
}

TEST_F(DownloadTest, AGatedModelsPageAndLicenceAreNamed) {
  hub_.token = "right";
  hub_.gated = "manual";
  hub_.card = {{"license", "llama3.2"}};
  const auto page_and_licence =
      AllOf(HasSubstr("is a gated model"), HasSubstr(hub_.url() + "/tiny-org/tiny-llama"),
            HasSubstr("licence: llama3.2"), HasSubstr("HF_TOKEN"));
  EXPECT_THAT(FailureOf(), page_and_licence);
  DownloadOptions wrong = Options();
  wrong.token = "wrong";
  hub_.refusal_status = 403;
  EXPECT_THAT(FailureOf(wrong), AllOf(page_and_licence, Not(HasSubstr("wrong"))));
  // Either of the two says that the model is gated.
  hub_.gated = false;
  EXPECT_THAT(FailureOf(), page_and_licence);
  hub_.gated = "auto";
  hub_.refusal = "";
  EXPECT_THAT(FailureOf(), page_and_licence);
  DownloadOptions right = Options();
  right.token = "right";
  Unwrap(Fetch(right));
  ExpectAllFiles();
}

TEST_F(DownloadTest, MissingModelsAndRevisionsMayBePrivate) {
  EXPECT_THAT(FailureOf(Options(), "hf:tiny-org/other"),
              AllOf(HasSubstr("hf:tiny-org/other: "), HasSubstr("does not exist"),
                    HasSubstr("private"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(FailureOf(Options(), "hf:tiny-org/tiny-llama@v9"),
              AllOf(HasSubstr("revision \"v9\" does not exist"), HasSubstr("private")));
  hub_.change_api = [](const HttpRequest&, HttpResponse& response) { response = {.status = 401}; };
  DownloadOptions options = Options();
  options.token = "expired";
  EXPECT_THAT(FailureOf(options), HasSubstr("does not accept the token in HF_TOKEN"));
}

TEST_F(DownloadTest, TheIndexLeadsToTheShards) {
  hub_.files.erase("model.safetensors");
  hub_.files["model.safetensors.index.json"] =
      R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})";
  hub_.files["model-1.safetensors"] = "first";
  hub_.files["model-2.safetensors"] = "second";
  hub_.files["model-3.safetensors"] = "not in the index";
  Unwrap(Fetch());
  EXPECT_THAT(support::FileNames(files_),
              ElementsAre("config.json", "model-1.safetensors", "model-2.safetensors",
                          "model.safetensors.index.json", "tokenizer.json"));
}

TEST_F(DownloadTest, AGgufFileMayBeInAFolder) {
  hub_.files["Q4/m-00001-of-00002.gguf"] = "first";
  hub_.files["Q4/m-00002-of-00002.gguf"] = "second";
  const DownloadedCheckpoint checkpoint =
      Unwrap(Fetch(Options(), "hf:tiny-org/tiny-llama/Q4/m-00002-of-00002.gguf"));
  EXPECT_EQ(checkpoint.path(), files_ / "Q4" / "m-00001-of-00002.gguf");
  EXPECT_EQ(support::ReadFile(checkpoint.path()), "first");
  EXPECT_THAT(support::FileNames(files_), ElementsAre("Q4"));
}

TEST_F(DownloadTest, WhatItWillBeIsKnownBefore) {
  const auto look_up = [&](const char* name) {
    return Unwrap(LookUp(Unwrap(ParseCheckpointName(name)), Options()));
  };
  const char* const name = "hf:tiny-org/tiny-llama";
  const RemoteCheckpoint whole = look_up(name);
  EXPECT_EQ(whole.commit, FakeHub::kCommit);
  EXPECT_EQ(whole.licence, "apache-2.0");
  EXPECT_EQ(whole.bytes, 300'000u + 2 + hub_.files.at("tokenizer.json").size());
  EXPECT_FALSE(std::filesystem::exists(cache_));
  EXPECT_EQ(hub_.NumRequests("/resolve/"), 0u);
  hub_.files["Q4.gguf"] = "four";
  EXPECT_EQ(look_up("hf:tiny-org/tiny-llama:Q4.gguf").bytes, 4u);
  // In several files: those that may be in the list, and the list.
  hub_.files.erase("model.safetensors");
  hub_.files["model.safetensors.index.json"] = "{}";
  hub_.files["model-00001-of-00002.safetensors"] = "first";
  hub_.files["model-00002-of-00002.safetensors"] = "other";
  hub_.files["original/model-00001-of-00002.safetensors"] = "not read";
  EXPECT_EQ(look_up(name).bytes, 2u + 2 + 5 + 5 + hub_.files.at("tokenizer.json").size());
  hub_.gives_sizes = false;
  EXPECT_EQ(look_up(name).bytes, std::nullopt);
}

TEST_F(DownloadTest, APlanNeedsOnlyTheConfiguration) {
  Unwrap(Fetch(Options(), "hf:tiny-org/tiny-llama", Purpose::kPlan));
  EXPECT_THAT(support::FileNames(files_), ElementsAre("config.json"));
}

TEST_F(DownloadTest, RemovesItsFilesUnlessAnotherUsesThem) {
  {
    const DownloadedCheckpoint checkpoint = Unwrap(Fetch());
    const DownloadedCheckpoint other = Unwrap(Fetch());
    checkpoint.Remove();
    ExpectAllFiles();
  }
  Unwrap(Fetch()).Remove();
  EXPECT_THAT(support::FileNames(cache_), IsEmpty());
}

TEST_F(DownloadTest, SeveralAtOnceDoNotDisturbEachOther) {
  const DownloadOptions options = Options();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto checkpoint = Fetch(options);
      EXPECT_TRUE(checkpoint);
      if (i == 3 && checkpoint) checkpoint->Remove();
    });
  }
  for (std::thread& thread : threads) thread.join();
  Unwrap(Fetch());
  ExpectAllFiles();
}

TEST_F(DownloadTest, LinksInTheCacheAreNotWrittenThrough) {
  const auto mine = folder_ / "mine";
  for (const char* name : {"config.json", "config.json.part"}) {
    std::filesystem::create_directories(files_);
    support::WriteFile(mine, "mine");
    std::filesystem::create_symlink(mine, files_ / name);
    EXPECT_THAT(FailureOf(), HasSubstr(std::string(name) + ": is a symbolic link"));
    EXPECT_EQ(support::ReadFile(mine), "mine");
    std::filesystem::remove_all(cache_);
  }
  // A second name of a file is someone else's, too.
  std::filesystem::create_directories(files_);
  std::filesystem::create_hard_link(mine, files_ / "config.json.part");
  Unwrap(Fetch());
  EXPECT_EQ(support::ReadFile(mine), "mine");
  ExpectAllFiles();
  std::filesystem::remove_all(cache_);

  const auto elsewhere = folder_ / "elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::filesystem::create_directories(files_.parent_path());
  std::filesystem::create_directory_symlink(elsewhere, files_);
  EXPECT_THAT(FailureOf(), HasSubstr("tiny-llama: is a symbolic link"));
  EXPECT_THAT(support::FileNames(elsewhere), IsEmpty());
}

TEST_F(DownloadTest, ACacheThatCannotBeCreatedIsNamed) {
  support::WriteFile(cache_, "a file");
  EXPECT_THAT(FailureOf(), HasSubstr(cache_.string() + ": is a symbolic link or of a wrong kind"));
}

}  // namespace
}  // namespace cria::hub
