// Downloads whose connections break, and what servers do wrong.

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/hub/download_fixture.h"

namespace cria::hub {
namespace {

using support::HttpRequest;
using support::HttpResponse;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class InterruptedDownload : public DownloadTest {
 protected:
  // Changes the first answers with the content of the weights.
  void ChangeFirst(int num_answers, std::function<void(const HttpRequest&, HttpResponse&)> change) {
    left_ = num_answers;
    hub_.change_file = [this, change = std::move(change)](const HttpRequest& request,
                                                          HttpResponse& response) {
      if (request.target == "/storage/model.safetensors" && left_-- > 0) change(request, response);
    };
  }

  // The ranges that were asked for of the weights.
  std::vector<std::string> Ranges() {
    std::vector<std::string> ranges;
    for (const HttpRequest& request : hub_.requests()) {
      if (request.target == "/storage/model.safetensors") ranges.push_back(request.header("range"));
    }
    return ranges;
  }

  std::atomic<int> left_ = 0;
  const std::filesystem::path part_ = files_ / "model.safetensors.part";
};

TEST_F(InterruptedDownload, GoesOnAfterTheLastByte) {
  ChangeFirst(
      2, [](const HttpRequest&, HttpResponse& response) { response.breaks_after_bytes = 100'000; });
  Unwrap(Fetch());
  ExpectAllFiles();
  EXPECT_THAT(Ranges(), ElementsAre("", "bytes=100000-", "bytes=200000-"));
}

TEST_F(InterruptedDownload, GoesOnInAnotherRunAndTriesAgainOnlySoOften) {
  ChangeFirst(1000, [](const HttpRequest& request, HttpResponse& response) {
    response.breaks_after_bytes = request.header("range").empty() ? 1000 : 0;
  });
  EXPECT_THAT(FailureOf(), AllOf(HasSubstr("model.safetensors: 1.0 kB of 300.0 kB"),
                                 HasSubstr("again and again"), HasSubstr("to continue")));
  EXPECT_EQ(Ranges().size(), 3u);
  EXPECT_EQ(support::ReadFile(part_).size(), 1000u);
  hub_.change_file = {};
  Unwrap(Fetch());
  ExpectAllFiles();
  EXPECT_EQ(Ranges().back(), "bytes=1000-");
}

TEST_F(InterruptedDownload, AServerWithoutRangesSendsTheWholeFile) {
  hub_.knows_ranges = false;
  ChangeFirst(
      1, [](const HttpRequest&, HttpResponse& response) { response.breaks_after_bytes = 100'000; });
  Unwrap(Fetch());
  ExpectAllFiles();
  EXPECT_THAT(Ranges(), ElementsAre("", "bytes=100000-"));
}

TEST_F(InterruptedDownload, AnotherRangeThanTheOneAskedForIsRefused) {
  std::filesystem::create_directories(files_);
  support::WriteFile(part_, hub_.files["model.safetensors"].substr(0, 1000));
  ChangeFirst(1, [](const HttpRequest&, HttpResponse& response) {
    response.headers = {{"Content-Range", "bytes 500-299999/300000"}};
  });
  EXPECT_THAT(FailureOf(), HasSubstr("the hub sent another part of the file"));
  EXPECT_FALSE(std::filesystem::exists(part_));
}

TEST_F(InterruptedDownload, WhatWasDownloadedWrongIsFoundAndDeleted) {
  std::filesystem::create_directories(files_);
  support::WriteFile(part_, std::string(1000, 'x'));
  EXPECT_THAT(FailureOf(), HasSubstr("model.safetensors: the downloaded file has the SHA-256"));
  EXPECT_FALSE(std::filesystem::exists(part_));
  // More than the file has is not continued at all.
  support::WriteFile(part_, std::string(400'000, 'x'));
  Unwrap(Fetch());
  ExpectAllFiles();
}

TEST_F(InterruptedDownload, APartThatIsTheWholeFileIsNotAskedForAgain) {
  std::filesystem::create_directories(files_);
  support::WriteFile(part_, hub_.files["model.safetensors"]);
  Unwrap(Fetch());
  ExpectAllFiles();
  EXPECT_THAT(Ranges(), ElementsAre());
}

TEST_F(InterruptedDownload, AFileThatIsShorterThanTheHubSaysIsDeletedAndNamed) {
  ChangeFirst(1, [](const HttpRequest&, HttpResponse& response) { response.body.resize(1000); });
  EXPECT_THAT(FailureOf(),
              HasSubstr("model.safetensors: has only 1000 bytes, but the hub gives 300000"));
  EXPECT_FALSE(std::filesystem::exists(part_));
  EXPECT_EQ(Ranges().size(), 1u);
}

TEST_F(InterruptedDownload, AnAnswerWithoutALengthThatEndsEarlyIsContinued) {
  ChangeFirst(1, [](const HttpRequest&, HttpResponse& response) {
    response.raw = "HTTP/1.1 200 OK\r\n\r\n" + response.body.substr(0, 1000);
  });
  Unwrap(Fetch());
  ExpectAllFiles();
  EXPECT_THAT(Ranges(), ElementsAre("", "bytes=1000-"));
}

TEST_F(InterruptedDownload, ARangeThatTheServerDoesNotHaveStartsAgain) {
  std::filesystem::create_directories(files_);
  support::WriteFile(part_, hub_.files["model.safetensors"].substr(0, 1000));
  ChangeFirst(1, [](const HttpRequest&, HttpResponse& response) { response = {.status = 416}; });
  Unwrap(Fetch());
  ExpectAllFiles();
  EXPECT_THAT(Ranges(), ElementsAre("bytes=1000-", ""));
}

TEST_F(InterruptedDownload, AContentLengthThatIsTooLargeIsABreak) {
  ChangeFirst(1, [](const HttpRequest&, HttpResponse& response) {
    response.body.resize(1000);
    response.claimed_bytes = 300'000;
  });
  Unwrap(Fetch());
  ExpectAllFiles();
}

TEST_F(InterruptedDownload, OverloadedServersAreAskedAgain) {
  for (const int status : {429, 500, 503}) {
    std::filesystem::remove_all(cache_);
    ChangeFirst(2, [&](const HttpRequest&, HttpResponse& response) {
      response = {.status = status, .body = "busy"};
    });
    Unwrap(Fetch());
    ExpectAllFiles();
    std::filesystem::remove_all(cache_);
    ChangeFirst(1000, [&](const HttpRequest&, HttpResponse& response) {
      response = {.status = status, .body = "busy"};
    });
    EXPECT_THAT(FailureOf(),
                HasSubstr(status == 429 ? "too many requests" : "answered with status 50"));
  }
}

TEST_F(InterruptedDownload, WaitsAsLongAsTheServerAsks) {
  ChangeFirst(1, [](const HttpRequest&, HttpResponse& response) {
    response = {.status = 429, .headers = {{"Retry-After", "1"}}};
  });
  const auto start = std::chrono::steady_clock::now();
  Unwrap(Fetch());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(900));
}

TEST_F(InterruptedDownload, TheListOfFilesIsAskedForAgain) {
  std::atomic<int> left = 2;
  hub_.change_api = [&](const HttpRequest&, HttpResponse& response) {
    if (left == 2) response.breaks_after_bytes = 20;
    if (left == 1) response = {.status = 500};
    --left;
  };
  Unwrap(Fetch());
  ExpectAllFiles();
}

TEST_F(InterruptedDownload, AnEmptyFileNeedsNoRequest) {
  hub_.files["added_tokens.json"] = "";
  Unwrap(Fetch());
  EXPECT_EQ(support::ReadFile(files_ / "added_tokens.json"), "");
}

}  // namespace
}  // namespace cria::hub
