#include "converter/hugging_face/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "converter/test_checkpoint.h"
#include "core/format.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  Result<TensorSources> Read(std::string_view header, size_t data_bytes) {
    support::WriteSafetensors(path_, header, std::string(data_bytes, '\0'));
    return ReadSafetensors(path_);
  }
  void ExpectRefused(std::string_view header, size_t data_bytes, std::string_view reason) {
    const auto read = Read(header, data_bytes);
    ASSERT_FALSE(read) << header;
    EXPECT_THAT(read.error().message(), HasSubstr(reason));
    EXPECT_THAT(read.error().message(), HasSubstr(path_.string()));
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path path_ = folder_.path() / "model.safetensors";
};

TEST_F(SafetensorsTest, TellsWhereTensorsLie) {
  const std::string header =
      R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"x":"y"}})";
  const auto sources = Read(header, 20);
  ASSERT_TRUE(sources) << sources.error().message();
  ASSERT_EQ(sources->size(), 2u);
  EXPECT_EQ(sources->at("b").type, ElementType::kBf16);
  EXPECT_EQ(sources->at("b").shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(sources->at("b").offset, 8 + header.size() + 8);
  EXPECT_EQ(sources->at("a").offset, 8 + header.size());
}

// This took minutes when each tensor was searched for among the others.
TEST_F(SafetensorsTest, ReadsAHundredThousandTensors) {
  constexpr size_t kTensors = 100'000;
  std::string header = "{";
  for (size_t i = 0; i < kTensors; ++i) {
    header += Format(R"({}"layers.{}":{{"dtype":"F16","shape":[1],"data_offsets":[{},{}]}})",
                     i == 0 ? "" : ",", i, 2 * i, 2 * i + 2);
  }
  const auto sources = Read(header + "}", 2 * kTensors);
  ASSERT_TRUE(sources) << sources.error().message();
  EXPECT_EQ(sources->size(), kTensors);
  EXPECT_EQ(sources->at("layers.99999").offset - sources->at("layers.0").offset, 199'998u);
}

TEST_F(SafetensorsTest, RefusesBrokenLengths) {
  support::WriteFile(path_, "1234567");
  EXPECT_FALSE(ReadSafetensors(path_));
  for (const uint64_t length : {uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7, uint64_t{3}}) {
    support::WriteFile(path_, std::string(reinterpret_cast<const char*>(&length), 8) + "{}");
    const auto read = ReadSafetensors(path_);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), HasSubstr(Format("a header of {} bytes", length)));
  }
}

TEST_F(SafetensorsTest, RefusesBrokenHeaders) {
  ExpectRefused("{", 0, "is not JSON");
  ExpectRefused("[]", 0, "is not a JSON object");
  ExpectRefused(R"({"a":1})", 0, "\"a\" has no dtype, shape or data_offsets");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[1]}})", 4,
                "\"a\" has no dtype, shape or data_offsets");
  ExpectRefused(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, "dtype");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "shape");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
                "a shape with a value that is not a number");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4,
                "a shape with a value that is not a number");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "data_offsets");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "data_offsets");
}

TEST_F(SafetensorsTest, RefusesUnknownTypes) {
  ExpectRefused(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4, "F8_E4M3");
  ExpectRefused(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})", 4, "I8");
  ExpectRefused(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8, "I64");
}

TEST_F(SafetensorsTest, RefusesDuplicates) {
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                8, "\"a\" appears twice");
  ExpectRefused(R"({"a":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}})", 4,
                "\"dtype\" appears twice");
}

TEST_F(SafetensorsTest, RefusesRangesThatDoNotFit) {
  const auto one = [](int begin, int end) {
    return Format(R"({{"a":{{"dtype":"F32","shape":[2],"data_offsets":[{},{}]}}}})", begin, end);
  };
  ExpectRefused(one(0, 8), 7, "it may have been cut short");
  ExpectRefused(one(8, 0), 8, "data_offsets 8 to 0");
  ExpectRefused(one(0, 4), 4, "has 4 bytes, but its shape [2] and dtype need 8");
  ExpectRefused(one(4, 12), 12, "unused bytes before it");
  ExpectRefused(one(0, 8), 9, "1 bytes after its last tensor");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                12, "\"b\" overlaps");
}

TEST_F(SafetensorsTest, RefusesShapesThatOverflow) {
  // 2^32 * 2^32 is 0 modulo 2^64.
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                "impossibly large shape");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", 4,
                "impossibly large shape");
}

TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  support::WriteSafetensors(path_, support::TinyTensors(true));
  const std::string whole = support::ReadFile(path_);
  for (size_t bytes = 0; bytes < whole.size(); bytes += 41) {
    support::WriteFile(path_, whole.substr(0, bytes));
    EXPECT_FALSE(ReadSafetensors(path_)) << bytes;
  }
}

TEST_F(SafetensorsTest, MissingFileIsNotFound) {
  const auto read = ReadSafetensors(folder_.path() / "absent");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace cria
