#include "cli/eval/progress_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <vector>

#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria::cli {
namespace {

constexpr Digest kOf = {1, 2, 3};

class ProgressFileTest : public testing::Test {
 protected:
  Result<ProgressFile> Open(const Digest& of = kOf, size_t bytes = sizeof(uint32_t)) const {
    return ProgressFile::Open(path_, of, bytes);
  }
  void Append(ProgressFile& file, std::vector<uint32_t> values) const {
    ASSERT_TRUE(file.Append(std::as_bytes(std::span(values))));
  }
  static std::vector<uint32_t> Read(ProgressFile& file, size_t count) {
    std::vector<uint32_t> values(count);
    EXPECT_TRUE(file.Read(std::as_writable_bytes(std::span(values))));
    return values;
  }

  support::TemporaryDirectory directory_;
  std::string path_ = directory_ / "progress";
};

TEST_F(ProgressFileTest, TheNextRunHasWhatTheLastOneAppended) {
  {
    auto file = Open();
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->num_results(), 0u);
    EXPECT_EQ(Read(*file, 0), std::vector<uint32_t>());
    Append(*file, {1, 2, 3});
    Append(*file, {4});
  }
  auto file = Open();
  ASSERT_TRUE(file);
  EXPECT_EQ(file->num_results(), 4u);
  // Results that are not wanted are written again.
  EXPECT_EQ(Read(*file, 3), (std::vector<uint32_t>{1, 2, 3}));
  Append(*file, {5, 6});
  auto again = Open();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->num_results(), 5u);
  EXPECT_EQ(Read(*again, 5), (std::vector<uint32_t>{1, 2, 3, 5, 6}));
}

TEST_F(ProgressFileTest, AResultThatWasCutOffDoesNotCount) {
  {
    auto file = Open();
    ASSERT_TRUE(file);
    Append(*file, {1, 2, 3});
  }
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  auto file = Open();
  ASSERT_TRUE(file);
  EXPECT_EQ(file->num_results(), 2u);
}

TEST_F(ProgressFileTest, AnotherEvaluationOrAnotherFileIsRefusedAndKept) {
  ASSERT_TRUE(Open());
  const auto other = Open({9});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::kUsage);
  EXPECT_FALSE(Open(kOf, 8));
  for (const std::string_view content :
       {std::string_view("CRIA"), std::string_view("a letter of forty bytes, not less than it")}) {
    support::WriteFile(path_, content);
    const auto file = Open();
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), ErrorCode::kInvalidFile);
    EXPECT_EQ(support::ReadFile(path_), content);
  }
  path_ = directory_.path();
  EXPECT_FALSE(Open());
}

}  // namespace
}  // namespace cria::cli
