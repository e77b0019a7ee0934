#include "converter/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/utf8.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using support::GgufWriter;
using support::StorageType;
using ::testing::HasSubstr;

class GgufFileTest : public ::testing::Test {
 protected:
  Result<GgufFile> Read(const std::string& bytes) {
    support::WriteFile(path_, bytes);
    return ReadGgufFile(path_);
  }
  void ExpectRefused(const std::string& bytes, std::string_view reason) {
    const auto read = Read(bytes);
    ASSERT_FALSE(read) << reason;
    EXPECT_THAT(read.error().message(), HasSubstr(reason));
    EXPECT_THAT(read.error().message(), HasSubstr(path_.string()));
    EXPECT_FALSE(read.error().message().contains('\n'));
    EXPECT_EQ(ValidUtf8Prefix(read.error().message()), read.error().message().size());
  }
  static std::string Number(uint64_t value) { return GgufWriter::Bytes(value); }
  static GgufWriter Small() {
    GgufWriter writer;
    writer.Add("general.name", "x");
    writer.AddTensor("a", {2, 3}, StorageType::kBf16, {1, 2, 3, 4, 5, 6});
    writer.AddTensor("b", {2}, StorageType::kF32, {7, 8});
    return writer;
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path path_ = folder_.path() / "model.gguf";
};

TEST_F(GgufFileTest, ErrorsQuoteNamesThatAreNoTextAsText) {
  GgufWriter keys = Small();
  keys.Add("a\xFF\n", 1u);
  keys.Add("a\xFF\n", 2u);
  ExpectRefused(keys.File(), R"(a\xFF\x0A appears twice)");
  GgufWriter tensors = Small();
  tensors.AddTensor("\xC3", {1}, StorageType::kF32, {1});
  tensors.AddTensor("\xC3", {1}, StorageType::kF32, {1});
  ExpectRefused(tensors.File(), R"(tensor "\xC3" appears twice)");
}

TEST_F(GgufFileTest, TellsKeysAndTensors) {
  GgufWriter writer = Small();
  writer.version = 2;
  writer.Add("an.integer", 7u);
  writer.Add("a.number", 1.5f);
  writer.Add("a.flag", true);
  writer.Add("some.words", std::vector<std::string>{"one", "", "three"});
  writer.Add("some.integers", std::vector<int32_t>{-1, 2});
  const auto file = Read(writer.File());
  ASSERT_TRUE(file) << file.error().message();
  const GgufMetadata& metadata = file->metadata;
  EXPECT_EQ(metadata.String("general.name").value(), "x");
  EXPECT_EQ(metadata.Integer("an.integer").value(), 7u);
  EXPECT_EQ(metadata.Number("a.number").value(), 1.5f);
  EXPECT_EQ(metadata.Bool("a.flag", false).value(), true);
  EXPECT_EQ(metadata.Integer("absent", 3).value(), 3u);
  EXPECT_FALSE(metadata.Integer("absent"));
  EXPECT_FALSE(metadata.Integer("general.name", 3));
  const StringList& words = **metadata.Array<StringList>("some.words");
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[0], "one");
  EXPECT_EQ(words[1], "");
  EXPECT_EQ(words[2], "three");
  EXPECT_EQ(**metadata.Array<std::vector<int64_t>>("some.integers"), (std::vector<int64_t>{-1, 2}));
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].shape, (std::vector<uint64_t>{2, 3}));
  std::vector<float> values(6);
  ASSERT_TRUE(TensorReader().Read(file->tensors[0], 0, values));
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(GgufFileTest, RefusesOtherFiles) {
  ExpectRefused("GGML" + std::string(100, '\0'), "is not a GGUF file");
  GgufWriter writer = Small();
  writer.version = 1;
  ExpectRefused(writer.File(), "GGUF version 1");
  writer.version = 0x03000000;
  ExpectRefused(writer.File(), "big-endian");
}

TEST_F(GgufFileTest, EveryTruncationIsAnError) {
  const std::string whole = Small().File();
  for (size_t bytes = 0; bytes < whole.size() - 24; ++bytes) {
    EXPECT_FALSE(Read(whole.substr(0, bytes))) << bytes;
  }
}

TEST_F(GgufFileTest, RefusesCountsThatCannotBe) {
  GgufWriter writer = Small();
  writer.extra_tensors = uint64_t{1} << 60;
  ExpectRefused(writer.File(), "claims 1152921504606846978 tensors");
  writer.extra_tensors = 1;
  EXPECT_FALSE(Read(writer.File()));
  writer.extra_tensors = 0;
  writer.extra_keys = uint64_t{1} << 60;
  ExpectRefused(writer.File(), "keys");
  writer.extra_keys = 1;
  EXPECT_FALSE(Read(writer.File()));
}

TEST_F(GgufFileTest, RefusesValuesThatCannotBe) {
  const auto with = [](uint32_t type, const std::string& value) {
    GgufWriter writer;
    writer.AddRaw("a.key", type, value);
    return writer.File();
  };
  const uint64_t huge = uint64_t{1} << 60;
  ExpectRefused(with(GgufWriter::kString, Number(huge)), "a.key has 1152921504606846976 bytes");
  ExpectRefused(with(GgufWriter::kString, Number(1 << 20)), "only");
  GgufWriter broken_line;
  broken_line.AddRaw("a\nkey", GgufWriter::kString, Number(huge));
  ExpectRefused(broken_line.File(), "a\\x0Akey has 1152921504606846976 bytes");
  const auto array = [](uint32_t type, uint64_t size) {
    return GgufWriter::Bytes(type) + Number(size);
  };
  for (const uint32_t type :
       {GgufWriter::kUint8, GgufWriter::kFloat32, GgufWriter::kString, GgufWriter::kUint64}) {
    ExpectRefused(with(GgufWriter::kArray, array(type, huge)), "more than the file has bytes for");
    ExpectRefused(with(GgufWriter::kArray, array(type, ~uint64_t{0})), "more than the file has");
  }
  ExpectRefused(with(GgufWriter::kArray, array(GgufWriter::kArray, 1) + array(0, 1)),
                "an array of arrays");
  ExpectRefused(with(GgufWriter::kArray, array(99, 1)), "an array of type 99");
  ExpectRefused(with(99, ""), "a value of type 99");
  ExpectRefused(with(GgufWriter::kUint64, Number(~uint64_t{0})), "larger than 2^63");
  GgufWriter twice = Small();
  twice.Add("general.name", "y");
  ExpectRefused(twice.File(), "general.name appears twice");
  GgufWriter unaligned = Small();
  unaligned.Add("general.alignment", 0u);
  ExpectRefused(unaligned.File(), "general.alignment is 0");
}

TEST_F(GgufFileTest, SkipsLongArraysThatNobodyAsksFor) {
  GgufWriter writer;
  writer.Add("some.words", std::vector<std::string>(5000, "word"));
  writer.Add("some.numbers", std::vector<float>(5000, 1.0f));
  writer.Add("after", 1u);
  const auto file = Read(writer.File());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_FALSE(file->metadata.Array<StringList>("some.words"));
  EXPECT_EQ(file->metadata.Integer("after").value(), 1u);
}

TEST_F(GgufFileTest, RefusesTensorsThatCannotBe) {
  const auto with = [](const std::vector<size_t>& shape, uint32_t type, size_t bytes) {
    GgufWriter writer;
    writer.AddTensor("a", shape, type, std::string(bytes, '\0'));
    return writer.File();
  };
  ExpectRefused(with({}, 0, 4), "has 0 dimensions");
  ExpectRefused(with({1, 1, 1, 1, 1}, 0, 4), "has 5 dimensions");
  ExpectRefused(with({0, 4}, 0, 4), "an impossible shape");
  ExpectRefused(with({size_t{1} << 32, size_t{1} << 32}, 0, 4), "an impossible shape");
  ExpectRefused(with({size_t{1} << 40}, 0, 4), "is not inside the file");
  ExpectRefused(with({4, 33}, 2, 100), "not a multiple of the block size of Q4_0");
  ExpectRefused(with({32}, 16, 100), "has the type IQ2_XXS");
  ExpectRefused(with({32}, 77, 100), "has the type number 77");
  GgufWriter twice = Small();
  twice.AddTensor("a", {1}, StorageType::kF32, {1});
  ExpectRefused(twice.File(), "\"a\" appears twice");
  GgufWriter moved = Small();
  moved.moved_tensors = {{1, 0}};
  ExpectRefused(moved.File(), "overlaps another tensor");
  moved.moved_tensors = {{1, 33}};
  ExpectRefused(moved.File(), "is not aligned");
  moved.moved_tensors = {{1, uint64_t{1} << 60}};
  ExpectRefused(moved.File(), "is not inside the file");
  moved.moved_tensors = {{1, ~uint64_t{31}}};
  ExpectRefused(moved.File(), "is not inside the file");
}

}  // namespace
}  // namespace cria
