#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "core/platform.h"
#include "core/temporary_file.h"
#include "support/permissions.h"

namespace cria::platform {
namespace {

// Three pages of 16 KiB and a bit, none like another.
std::vector<std::byte> RandomBytes() {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(3 * 16384 + 77);
  for (std::byte& value : bytes) value = static_cast<std::byte>(random());
  return bytes;
}

void ExpectNames(const Error& error, ErrorCode code, const std::string& path) {
  EXPECT_EQ(error.code(), code) << error.message();
  EXPECT_NE(error.message().find(path), std::string::npos) << error.message();
}

class FileTest : public testing::Test {
 protected:
  FileTest() : contents_(RandomBytes()), temporary_(contents_) {}

  File Open() {
    auto file = File::Open(temporary_.path());
    EXPECT_TRUE(file) << file.error().message();
    return std::move(*file);
  }

  const std::vector<std::byte> contents_;
  const TemporaryFile temporary_;
};

TEST_F(FileTest, KnowsItsPathAndSize) {
  const File file = Open();
  EXPECT_EQ(file.path(), temporary_.path());
  EXPECT_EQ(file.size_bytes(), contents_.size());
}

TEST_F(FileTest, ReadsAtAnyOffset) {
  const File file = Open();
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{16383}, contents_.size() - 5}) {
    std::vector<std::byte> bytes(5);
    ASSERT_TRUE(file.ReadAt(offset, bytes));
    EXPECT_TRUE(std::ranges::equal(bytes, std::span(contents_).subspan(offset, 5)));
  }
  std::vector<std::byte> all(contents_.size());
  ASSERT_TRUE(file.ReadAt(0, all));
  EXPECT_EQ(all, contents_);
}

TEST_F(FileTest, ReadingNothingSucceedsAnywhere) {
  const File file = Open();
  EXPECT_TRUE(file.ReadAt(0, {}));
  EXPECT_TRUE(file.ReadAt(contents_.size(), {}));
}

TEST_F(FileTest, ReadingPastTheEndIsAnErrorThatNamesTheFile) {
  const File file = Open();
  std::vector<std::byte> bytes(5);
  for (const uint64_t offset : {uint64_t{contents_.size() - 4}, uint64_t{contents_.size()},
                                uint64_t{1} << 40, ~uint64_t{0}}) {
    const Status status = file.ReadAt(offset, bytes);
    ASSERT_FALSE(status) << offset;
    ExpectNames(status.error(), ErrorCode::kIo, temporary_.path());
  }
}

TEST_F(FileTest, ReadingAFileThatWasCutShortIsAnError) {
  const File file = Open();
  temporary_.Truncate(100);
  std::vector<std::byte> bytes(5);
  EXPECT_TRUE(file.ReadAt(95, bytes));
  const Status status = file.ReadAt(96, bytes);
  ASSERT_FALSE(status);
  ExpectNames(status.error(), ErrorCode::kIo, temporary_.path());
}

TEST_F(FileTest, MapsAtOddOffsets) {
  const File file = Open();
  for (const size_t offset : {0, 1, 63, 4095, 4096, 4097, 16384, 20001, 49152}) {
    for (const size_t bytes : {1, 64, 4096, 77}) {
      if (offset + bytes > contents_.size()) continue;
      const auto mapping = file.Map(offset, bytes);
      ASSERT_TRUE(mapping) << mapping.error().message();
      EXPECT_TRUE(std::ranges::equal(mapping->bytes(), std::span(contents_).subspan(offset, bytes)))
          << offset << " + " << bytes;
    }
  }
}

TEST_F(FileTest, AMappingOutlivesItsFile) {
  FileMapping mapping;
  {
    const File file = Open();
    auto mapped = file.Map(5, contents_.size() - 5);
    ASSERT_TRUE(mapped);
    mapping = std::move(*mapped);
    EXPECT_TRUE(mapped->bytes().empty());
  }
  EXPECT_TRUE(std::ranges::equal(mapping.bytes(), std::span(contents_).subspan(5)));
  EXPECT_TRUE(std::ranges::equal(mapping.bytes(), std::span(contents_).subspan(5)));
}

TEST_F(FileTest, AnEmptyMappingIsEmpty) {
  const File file = Open();
  const auto mapping = file.Map(contents_.size(), 0);
  ASSERT_TRUE(mapping);
  EXPECT_TRUE(mapping->bytes().empty());
}

TEST_F(FileTest, MappingPastTheEndIsAnError) {
  const File file = Open();
  const uint64_t size = contents_.size();
  for (const auto& [offset, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, size + 1}, {size, 1}, {size + 1, 0}, {10, ~uint64_t{0}}, {~uint64_t{0}, 10}}) {
    const auto mapping = file.Map(offset, bytes);
    ASSERT_FALSE(mapping) << offset << " + " << bytes;
    ExpectNames(mapping.error(), ErrorCode::kInvalidFile, temporary_.path());
  }
}

TEST_F(FileTest, MovedFilesStayOpenAndCloseOnce) {
  File file = Open();
  File other = std::move(file);
  file = Open();
  other = std::move(file);
  std::vector<std::byte> bytes(4);
  EXPECT_TRUE(other.ReadAt(0, bytes));
}

// A part of the file, opened through a descriptor that is closed again.
class FilePartTest : public FileTest {
 protected:
  Result<File> OpenPart(uint64_t offset, std::optional<uint64_t> bytes) {
    const int descriptor = open(temporary_.path().c_str(), O_RDONLY);
    auto part = File::OfDescriptor(descriptor, offset, bytes);
    EXPECT_EQ(close(descriptor), 0);
    return part;
  }
};

TEST_F(FilePartTest, ReadsAndMapsWithinThePart) {
  for (const uint64_t begin : {0, 1, 4, 64, 4096, 5000, 16448}) {
    SCOPED_TRACE(begin);
    const uint64_t size = 20'000;
    const auto part = OpenPart(begin, size);
    ASSERT_TRUE(part) << part.error().message();
    EXPECT_EQ(part->size_bytes(), size);
    EXPECT_EQ(part->is_mappable(), begin % 64 == 0);
    for (const uint64_t offset : {0, 1, 64, 4096, 19'000}) {
      const auto expected = std::span(contents_).subspan(begin + offset, 900);
      std::vector<std::byte> bytes(900);
      ASSERT_TRUE(part->ReadAt(offset, bytes));
      EXPECT_TRUE(std::ranges::equal(bytes, expected));
      const auto mapping = part->Map(offset, 900);
      ASSERT_TRUE(mapping) << mapping.error().message();
      EXPECT_TRUE(std::ranges::equal(mapping->bytes(), expected));
      // What is aligned in the part is aligned in memory.
      EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->bytes().data()) % 64, offset % 64);
    }
  }
}

TEST_F(FilePartTest, EndsWhereThePartEnds) {
  for (const uint64_t begin : {64, 100}) {
    const auto part = OpenPart(begin, 1000);
    ASSERT_TRUE(part);
    std::vector<std::byte> bytes(10);
    EXPECT_TRUE(part->ReadAt(990, bytes));
    for (const uint64_t offset : {uint64_t{991}, uint64_t{1000}, ~uint64_t{0}}) {
      const Status read = part->ReadAt(offset, bytes);
      ASSERT_FALSE(read) << offset;
      ExpectNames(read.error(), ErrorCode::kIo, "descriptor");
      EXPECT_FALSE(part->Map(offset, 10));
    }
  }
}

TEST_F(FilePartTest, GoesToTheEndOfTheFileUnlessTold) {
  const auto rest = OpenPart(1000, std::nullopt);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->size_bytes(), contents_.size() - 1000);
  EXPECT_EQ(OpenPart(contents_.size(), std::nullopt)->size_bytes(), 0u);
  for (const auto& [offset, bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{contents_.size() + 1, 0},
                                                  {1, contents_.size()},
                                                  {~uint64_t{0}, 1},
                                                  {1, ~uint64_t{0}}}) {
    const auto outside = OpenPart(offset, bytes);
    ASSERT_FALSE(outside) << offset << " + " << bytes;
    ExpectNames(outside.error(), ErrorCode::kInvalidFile, "descriptor");
  }
}

TEST_F(FilePartTest, ADuplicateIsTheSamePartWithoutTheFirst) {
  auto part = OpenPart(100, 500);
  ASSERT_TRUE(part);
  auto duplicate = part->Duplicate();
  ASSERT_TRUE(duplicate) << duplicate.error().message();
  part = Fail(ErrorCode::kInternal, "closed");
  EXPECT_EQ(duplicate->size_bytes(), 500u);
  std::vector<std::byte> bytes(500);
  ASSERT_TRUE(duplicate->ReadAt(0, bytes));
  EXPECT_TRUE(std::ranges::equal(bytes, std::span(contents_).subspan(100, 500)));
}

TEST_F(FilePartTest, ACopyOfAFileThatWasCutShortIsAnError) {
  const auto part = OpenPart(1, 20'000);
  ASSERT_TRUE(part);
  temporary_.Truncate(10'000);
  EXPECT_TRUE(part->Map(0, 9'000));
  const auto mapping = part->Map(0, 12'000);
  ASSERT_FALSE(mapping);
  ExpectNames(mapping.error(), ErrorCode::kIo, "descriptor");
}

TEST(FileOpenTest, ADescriptorOfNothingIsAnError) {
  for (const int descriptor : {-1, 1 << 20}) {
    const auto file = File::OfDescriptor(descriptor, 0, std::nullopt);
    ASSERT_FALSE(file);
    ExpectNames(file.error(), ErrorCode::kIo, "descriptor");
  }
}

TEST(FileOpenTest, AMissingFileIsNotFound) {
  const auto file = File::Open("/no/such/model.cria");
  ASSERT_FALSE(file);
  ExpectNames(file.error(), ErrorCode::kNotFound, "/no/such/model.cria");
}

TEST(FileOpenTest, AFolderIsNoFile) {
  const auto file = File::Open(testing::TempDir());
  ASSERT_FALSE(file);
  ExpectNames(file.error(), ErrorCode::kIo, testing::TempDir());
}

TEST(FileOpenTest, AFileThatMayNotBeReadIsAnError) {
  const support::PermissionsHold permissions_hold;
  const TemporaryFile temporary(std::string_view("secret"));
  ASSERT_EQ(chmod(temporary.path().c_str(), 0), 0);
  const auto file = File::Open(temporary.path());
  ASSERT_FALSE(file);
  ExpectNames(file.error(), ErrorCode::kIo, temporary.path());
}

TEST(FileOpenTest, AnEmptyFileIsEmpty) {
  const TemporaryFile temporary;
  const auto file = File::Open(temporary.path());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size_bytes(), 0u);
  EXPECT_TRUE(file->Map(0, 0));
}

TEST(DescriptorsTest, NoneIsFreeBeyondTheLimit) {
  EXPECT_TRUE(CanOpenAnotherFile());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // The lowest that is free, and so the number of those that are open.
  const int next = open("/dev/null", O_RDONLY);
  ASSERT_GE(next, 0);
  close(next);
  const rlimit none = {.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool can_open = CanOpenAnotherFile();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(can_open);
  EXPECT_TRUE(CanOpenAnotherFile());
}

}  // namespace
}  // namespace cria::platform
