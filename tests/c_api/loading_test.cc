// How weights are packed on the way, and what loading tells and refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "c_api/c_api_fixture.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria_test {
namespace {

using cria::support::FileNames;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

// The calls of the callbacks while a model is loaded.
struct Report {
  std::vector<uint64_t> done_bytes;
  uint64_t total_bytes = 0;
  std::vector<std::string> notices;
  std::thread::id thread = std::this_thread::get_id();
  bool stops = false;

  static int Progress(uint64_t done_bytes, uint64_t total_bytes, void* data) {
    auto* report = static_cast<Report*>(data);
    EXPECT_EQ(std::this_thread::get_id(), report->thread);
    report->done_bytes.push_back(done_bytes);
    report->total_bytes = total_bytes;
    return report->stops;
  }
  static void Notice(const char* sentence, void* data) {
    static_cast<Report*>(data)->notices.emplace_back(sentence);
  }
};

class LoadingTest : public testing::Test {
 protected:
  LoadingTest() {
    options_.pack_folder = folder_.c_str();
    options_.on_progress = Report::Progress;
    options_.on_notice = Report::Notice;
    options_.callback_data = &report_;
  }

  cria_status TryToLoad() {
    cria_model* model = nullptr;
    const cria_status status = cria_model_load(&options_, &model);
    EXPECT_EQ(model != nullptr, status == CRIA_OK);
    cria_model_free(model);
    return status;
  }

  cria::support::TemporaryDirectory directory_;
  const std::string folder_ = (directory_ / "packs").string();
  cria_model_options options_ = DemoOptions();
  Report report_;
};

TEST_F(LoadingTest, PacksOnFirstUseAndMapsAfterwards) {
  for (const uint32_t threads : {1u, 3u}) {
    std::filesystem::remove_all(folder_);
    report_ = {};
    options_.num_threads = threads;
    ASSERT_EQ(TryToLoad(), CRIA_OK) << cria_error_message();
    EXPECT_THAT(FileNames(folder_), ElementsAre(EndsWith(".packed")));
    ASSERT_FALSE(report_.done_bytes.empty());
    EXPECT_TRUE(std::ranges::is_sorted(report_.done_bytes));
    EXPECT_EQ(report_.done_bytes.back(), report_.total_bytes);
    EXPECT_THAT(report_.notices, ElementsAre(HasSubstr("packing the weights")));

    report_ = {};
    ASSERT_EQ(TryToLoad(), CRIA_OK) << cria_error_message();
    EXPECT_THAT(report_.done_bytes, IsEmpty());
    EXPECT_THAT(report_.notices, IsEmpty());
  }
}

TEST_F(LoadingTest, TheCallbackStopsThePacking) {
  report_.stops = true;
  ExpectFailure(TryToLoad(), CRIA_ERROR_CANCELLED, "stopped");
  EXPECT_THAT(FileNames(folder_), IsEmpty());
}

TEST_F(LoadingTest, DoesNotPackWhereItMayNot) {
  options_.packing = CRIA_PACK_NEVER;
  ExpectFailure(TryToLoad(), CRIA_ERROR_NOT_FOUND, "pack");
  EXPECT_FALSE(std::filesystem::exists(folder_));
  EXPECT_THAT(report_.done_bytes, IsEmpty());
  options_.pack_folder = nullptr;
  ExpectFailure(TryToLoad(), CRIA_ERROR_NOT_FOUND, "folder");

  options_.pack_folder = folder_.c_str();
  options_.packing = CRIA_PACK_ON_FIRST_USE;
  ASSERT_EQ(TryToLoad(), CRIA_OK) << cria_error_message();
  options_.packing = CRIA_PACK_NEVER;
  EXPECT_EQ(TryToLoad(), CRIA_OK) << cria_error_message();
}

TEST_F(LoadingTest, AFolderThatCannotBeMadeIsNoticedAndWeightsLieInMemory) {
  cria::support::WriteFile(directory_ / "file", "");
  const std::string impossible = (directory_ / "file").string() + "/packs";
  options_.pack_folder = impossible.c_str();
  EXPECT_EQ(TryToLoad(), CRIA_OK) << cria_error_message();
  EXPECT_THAT(report_.notices, testing::Contains(HasSubstr("into memory")));
}

TEST_F(LoadingTest, ALimitThatIsTooSmallIsRefusedUnlessItIsIgnored) {
  options_.memory_limit_bytes = 1'000'000;
  ExpectFailure(TryToLoad(), CRIA_ERROR_OUT_OF_MEMORY, "KV cache");
  EXPECT_FALSE(std::filesystem::exists(folder_));
  options_.ignore_memory_limits = 1;
  EXPECT_EQ(TryToLoad(), CRIA_OK) << cria_error_message();
}

TEST_F(LoadingTest, OptionsReachTheModel) {
  options_.context_tokens = 100;
  options_.num_threads = 2;
  options_.num_batch_threads = 1;
  options_.kv_type = CRIA_KV_F32;
  options_.chunk_tokens = 7;
  const ModelPtr model = LoadModel(options_);
  cria_model_info info = CRIA_MODEL_INFO_INIT;
  ASSERT_EQ(cria_model_get_info(model.get(), &info), CRIA_OK);
  EXPECT_EQ(info.context_tokens, 100u);
  EXPECT_EQ(info.num_threads, 2u);
  EXPECT_EQ(info.num_batch_threads, 1u);
  EXPECT_THAT(Send(MakeChat(model), "Hello! Who are you?").text, HasSubstr("Cria"));
}

TEST_F(LoadingTest, TheTemperatureMayHaveALimit) {
  options_.pack_folder = nullptr;
  options_.max_temperature_celsius = 90.0;
  EXPECT_EQ(TryToLoad(), CRIA_OK) << cria_error_message();
  options_.max_temperature_celsius = 10.0;
  EXPECT_EQ(TryToLoad(), CRIA_ERROR_USAGE);
  EXPECT_THAT(cria_error_message(), HasSubstr("10 °C"));
  // A program that was compiled before there was such a limit.
  options_.struct_size = offsetof(cria_model_options, max_temperature_celsius);
  EXPECT_EQ(TryToLoad(), CRIA_OK) << cria_error_message();
}

TEST_F(LoadingTest, AModelWithoutTheLayerThatGuessesRefusesToGuess) {
  options_.draft_mtp = 1;
  EXPECT_EQ(TryToLoad(), CRIA_ERROR_USAGE);
  EXPECT_THAT(cria_error_message(), HasSubstr("no layer that guesses tokens"));
  options_.draft_model_path = "other.cria";
  EXPECT_EQ(TryToLoad(), CRIA_ERROR_USAGE);
  EXPECT_THAT(cria_error_message(), HasSubstr("not from both"));
}

TEST_F(LoadingTest, SeveralModelsMayBeLoaded) {
  const ModelPtr one = LoadModel(options_);
  options_.kv_type = CRIA_KV_F16;
  const ModelPtr other = LoadModel(options_);
  const ChatPtr chat = MakeChat(one);
  const ChatPtr other_chat = MakeChat(other);
  EXPECT_THAT(Send(chat, "Hello! Who are you?").text, HasSubstr("Cria"));
  EXPECT_THAT(Send(other_chat, "Hello! Who are you?").text, HasSubstr("Cria"));
}

TEST(VersionTest, IsTheProjects) { EXPECT_STREQ(cria_version(), CRIA_PROJECT_VERSION); }

}  // namespace
}  // namespace cria_test
