// Runs cria-convert with checkpoints on a hub, like a user: what it prints, its exit codes and what
// it leaves on disk.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/hub/fake_hub.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/sleeping_thread.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::HttpRequest;
using support::HttpResponse;
using support::RunOptions;
using support::RunProgram;
using support::RunResult;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ConvertFromHub : public testing::Test {
 protected:
  void SetUp() override {
    support::WriteRandomCheckpoint(support::SpecGqa(), folder_ / "tiny-llama");
    hub_.AddFolder(folder_ / "tiny-llama");
    std::filesystem::create_directory(folder_ / "out");
  }

  RunResult Run(std::vector<std::string> arguments, const std::string& token = "",
                const std::function<void(int)>& after_start = {}) {
    arguments.insert(arguments.begin(), support::kConvertProgram);
    RunOptions options;
    options.environment = {"HF_ENDPOINT=" + hub_.url(), "HF_TOKEN=" + token,
                           "XDG_CACHE_HOME=" + (folder_ / "cache").string()};
    options.working_directory = folder_ / "out";
    options.after_start = after_start;
    return RunProgram(arguments, options);
  }

  support::TemporaryDirectory folder_;
  const std::string name_ = std::string("hf:") + FakeHub::kRepository;
  const std::filesystem::path downloads_ = folder_ / "cache" / "cria" / "checkpoints";
  const std::filesystem::path files_ =
      downloads_ / "127.0.0.1" / "tiny-org" / FakeHub::kCommit / "tiny-llama";
  FakeHub hub_;
};

TEST_F(ConvertFromHub, MakesTheSameModelAsFromTheFolder) {
  const RunResult result = Run({name_});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              HasSubstr("hf:tiny-org/tiny-llama: licence apache-2.0, commit " +
                        std::string(FakeHub::kCommit) + ", files in " + files_.string() + "\n"));
  EXPECT_EQ(Run({folder_ / "tiny-llama", "-o", "local.cria"}).exit_code, 0);
  EXPECT_EQ(support::ReadFile(folder_ / "out" / "tiny-llama.cria"),
            support::ReadFile(folder_ / "out" / "local.cria"));
  const size_t requests = hub_.requests().size();
  EXPECT_EQ(Run({name_}).exit_code, 0);
  EXPECT_EQ(hub_.requests().size(), requests + 1) << "files were downloaded again";
}

TEST_F(ConvertFromHub, KeepsWhatItDownloadsWhereItIsTold) {
  EXPECT_EQ(Run({name_, "--download-cache", folder_ / "elsewhere"}).exit_code, 0);
  EXPECT_THAT(support::FileNames(folder_ / "elsewhere"), ElementsAre("127.0.0.1"));
  EXPECT_FALSE(std::filesystem::exists(downloads_));
  const RunResult removed = Run({name_, "--no-download-cache"});
  EXPECT_EQ(removed.exit_code, 0) << removed.error;
  EXPECT_THAT(support::FileNames(downloads_), IsEmpty());
  EXPECT_THAT(support::FileNames(folder_ / "out"), ElementsAre("tiny-llama.cria"));
}

TEST_F(ConvertFromHub, AVocabularyNeedsNoWeights) {
  EXPECT_EQ(Run({name_, "--vocab-only"}).exit_code, 0);
  EXPECT_EQ(hub_.NumRequests("safetensors"), 0u);
  EXPECT_THAT(support::FileNames(folder_ / "out"), ElementsAre("tiny-llama.cria"));
}

TEST_F(ConvertFromHub, APlanDownloadsOnlyTheConfigurationAndSaysWhatIsEstimated) {
  const RunResult plan = Run({"plan", name_});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_THAT(plan.output, AllOf(HasSubstr("packed weights"), HasSubstr("is an estimate")));
  EXPECT_EQ(hub_.NumRequests("/resolve/"), 1u);
  EXPECT_EQ(hub_.NumRequests("config.json"), 1u);
  const RunResult as_json = Run({"plan", name_, "--json"});
  EXPECT_THAT(as_json.output, HasSubstr("\"tokenizer_is_estimated\": true"));
  EXPECT_THAT(Run({"plan", folder_ / "tiny-llama"}).output, Not(HasSubstr("estimate")));
}

TEST_F(ConvertFromHub, TheCostIsKnownBeforeTheDownload) {
  const RunResult result = Run({"cost", name_, "-c", "64"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const auto cost = nlohmann::json::parse(result.output);
  EXPECT_EQ(cost["licence"], "apache-2.0");
  EXPECT_EQ(cost["commit"], FakeHub::kCommit);
  EXPECT_GT(cost["download_bytes"], hub_.files.at("model.safetensors").size());
  EXPECT_EQ(cost["context_tokens"], 64);
  EXPECT_GT(cost["convert_seconds"], 0.0);
  EXPECT_GT(cost["peak_bytes"], cost["model_file_bytes"]);
  EXPECT_EQ(hub_.NumRequests("safetensors"), 0u);
  // Everything is known of a checkpoint that is here, but nothing is downloaded.
  const auto local = nlohmann::json::parse(Run({"cost", folder_ / "tiny-llama"}).output);
  EXPECT_FALSE(local.contains("download_bytes"));
  EXPECT_EQ(local["convert_seconds"], cost["convert_seconds"]);
  // Nothing but the download is known of a GGUF file on the hub.
  hub_.files["own.gguf"] = "GGUF";
  const auto file = nlohmann::json::parse(Run({"cost", name_ + ":own.gguf"}).output);
  EXPECT_EQ(file["download_bytes"], 4);
  EXPECT_FALSE(file.contains("peak_bytes"));
}

TEST_F(ConvertFromHub, TheTokenIsNeverPrinted) {
  hub_.token = "hf_right";
  hub_.gated = "manual";
  const RunResult refused = Run({name_}, "hf_wrong");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error,
              AllOf(HasSubstr("cria-convert: error: hf:tiny-org/tiny-llama: is a gated"),
                    HasSubstr("/tiny-org/tiny-llama"), Not(HasSubstr("hf_wrong"))));
  EXPECT_THAT(refused.output, IsEmpty());
  EXPECT_EQ(Run({name_}, " hf_right\n").exit_code, 0);
}

TEST_F(ConvertFromHub, WrongNamesAreErrorsOfTheCommandLine) {
  const RunResult result = Run({"hf:tiny-org"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("hf:ORG/NAME"));
  for (const RunResult& forgotten :
       {Run({"tiny-org/tiny-llama"}), Run({"plan", "tiny-org/tiny-llama"})}) {
    EXPECT_EQ(forgotten.exit_code, 1);
    EXPECT_THAT(forgotten.error,
                HasSubstr("tiny-org/tiny-llama: does not exist; a model on the hub "
                          "is written hf:tiny-org/tiny-llama\n"));
  }
  EXPECT_THAT(hub_.requests(), IsEmpty());
}

TEST_F(ConvertFromHub, AFullDiskIsASentenceWithBothFigures) {
  hub_.change_api = [](const HttpRequest&, HttpResponse& response) {
    auto info = nlohmann::json::parse(response.body);
    for (auto& sibling : info["siblings"]) {
      if (sibling.contains("lfs")) sibling["lfs"]["size"] = 7'000'000'000'000'000'000;
    }
    response.body = info.dump();
  };
  const RunResult result = Run({name_});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("7000000000.00 GB are still to be downloaded, but only"),
                    HasSubstr("--download-cache")));
}

TEST_F(ConvertFromHub, StoppedItEndsAtOnceAndTheNextRunGoesOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove_all(downloads_);
    // The second half of the file is sent only after the program has ended.
    std::atomic<bool> has_ended = false;
    hub_.change_file = [&](const HttpRequest& request, HttpResponse& response) {
      if (!request.target.starts_with("/storage/")) return;
      response.part_bytes = response.body.size() / 2;
      response.after_part = [&] { support::Await([&] { return has_ended.load(); }); };
    };
    const auto part = files_ / "model.safetensors.part";
    const RunResult stopped = Run({name_}, "", [&](int process) {
      support::Await([&] {
        std::error_code absent;
        return std::filesystem::file_size(part, absent) > 0 && !absent;
      });
      kill(process, signal);
    });
    has_ended = true;
    EXPECT_EQ(stopped.signal, signal) << stopped.error;
    EXPECT_THAT(stopped.error, HasSubstr("downloading was stopped; the same command continues"));
    ASSERT_GT(std::filesystem::file_size(part), 0u);
    hub_.change_file = {};
    const size_t before = hub_.requests().size();
    EXPECT_EQ(Run({name_}).exit_code, 0);
    EXPECT_THAT(hub_.requests().at(before + 1).header("range"), HasSubstr("bytes="));
  }
}

TEST_F(ConvertFromHub, TwoAtOnceWriteTheSameModel) {
  std::string script = "for i in 1 2 3; do " + std::string(support::kConvertProgram) + " " + name_ +
                       " -o $i.cria >/dev/null & p=\"$p $!\"; done; s=0; "
                       "for i in $p; do wait $i || s=1; done; exit $s";
  RunOptions options;
  options.environment = {"HF_ENDPOINT=" + hub_.url(),
                         "XDG_CACHE_HOME=" + (folder_ / "cache").string()};
  options.working_directory = folder_ / "out";
  const RunResult result = RunProgram({"/bin/sh", "-c", script}, options);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const std::string first = support::ReadFile(folder_ / "out" / "1.cria");
  EXPECT_EQ(first, support::ReadFile(folder_ / "out" / "2.cria"));
  EXPECT_EQ(first, support::ReadFile(folder_ / "out" / "3.cria"));
  EXPECT_EQ(hub_.NumRequests("/storage/model.safetensors"), 1u);
}

}  // namespace
}  // namespace cria
