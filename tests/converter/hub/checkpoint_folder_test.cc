#include "converter/hub/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::hub {
namespace {

const CheckpointName kModel = {.organization = "org", .name = "model"};

class CheckpointFolderTest : public testing::Test {
 protected:
  CheckpointFolder Open(const std::function<void()>& waiting = {}) {
    return Unwrap(CheckpointFolder::Open(cache_.path(), "host", kModel, "commit", waiting));
  }

  support::TemporaryDirectory cache_;
};

TEST_F(CheckpointFolderTest, OneProcessAtATimeMayDownload) {
  std::optional<CheckpointFolder> first = Open();
  std::atomic<int> waits = 0;
  std::atomic<bool> has_second = false;
  std::thread second([&] {
    const CheckpointFolder folder = Open([&] { ++waits; });
    has_second = true;
  });
  while (waits == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(has_second);
  first.reset();
  second.join();
  EXPECT_EQ(waits, 1);
}

TEST_F(CheckpointFolderTest, SeveralMayUseWhatIsDownloadedAndTheLastRemovesIt) {
  CheckpointFolder first = Open();
  Unwrap(first.OpenPartial("a"));
  first.Share();
  std::optional<CheckpointFolder> second = Open();
  first.Remove();
  EXPECT_TRUE(std::filesystem::exists(first.path() / "a.part"));
  second->Remove();
  EXPECT_FALSE(std::filesystem::exists(first.path()));
}

TEST_F(CheckpointFolderTest, OneThatWaitsKeepsTheFolder) {
  std::optional<CheckpointFolder> first = Open();
  std::atomic<bool> waits = false;
  std::thread second([&] {
    const CheckpointFolder folder = Open([&] { waits = true; });
    EXPECT_TRUE(std::filesystem::is_directory(folder.path()));
  });
  while (!waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  first->Remove();
  first.reset();
  second.join();
}

TEST_F(CheckpointFolderTest, APartIsContinuedAndFinished) {
  const CheckpointFolder folder = Open();
  EXPECT_EQ(Unwrap(folder.WholeBytes("sub/a")), std::nullopt);
  EXPECT_EQ(Unwrap(folder.PartialBytes("sub/a")), 0u);
  const std::string text = "text";
  for (const uint64_t bytes : {0, 4}) {
    PartialFile part = Unwrap(folder.OpenPartial("sub/a"));
    EXPECT_EQ(part.size_bytes(), bytes);
    Unwrap(part.Append(std::as_bytes(std::span(text))));
  }
  EXPECT_EQ(Unwrap(folder.PartialBytes("sub/a")), 8u);
  Unwrap(folder.Finish("sub/a"));
  EXPECT_EQ(Unwrap(folder.WholeBytes("sub/a")), 8u);
  EXPECT_EQ(support::ReadFile(folder.path() / "sub" / "a"), "texttext");
}

}  // namespace
}  // namespace cria::hub
