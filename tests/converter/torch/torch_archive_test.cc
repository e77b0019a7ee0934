#include "converter/torch/torch_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/torch/torch_pickle.h"
#include "converter/torch/zip_directory.h"
#include "core/utf8.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/torch_writer.h"

namespace cria {
namespace {

using support::StorageType;
using support::ZipFile;
using ::testing::HasSubstr;

class TorchArchiveTest : public ::testing::Test {
 protected:
  void ExpectRefused(const std::string& bytes, std::string_view reason) {
    support::WriteFile(path_, bytes);
    const auto read = ReadTorchArchive(path_);
    ASSERT_FALSE(read) << reason;
    EXPECT_THAT(read.error().message(), HasSubstr(reason));
    EXPECT_THAT(read.error().message(), HasSubstr(path_.string()));
    EXPECT_FALSE(read.error().message().contains('\n'));
    EXPECT_EQ(ValidUtf8Prefix(read.error().message()), read.error().message().size());
  }
  // Makes an archive of this pickle and one storage of 16 bytes.
  static std::string Archive(const std::string& pickle) {
    return support::ZipArchive({{"a/data.pkl", pickle}, {"a/data/0", std::string(16, '\0')}});
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path path_ = folder_.path() / "x.pth";
};

TEST_F(TorchArchiveTest, TellsWhereTensorsLie) {
  for (const bool is_large : {false, true}) {
    support::WriteTorchArchive(
        {{"m", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"v", {300}, std::vector<float>(300, 7)}},
        StorageType::kF16, path_, is_large);
    const auto tensors = ReadTorchArchive(path_);
    ASSERT_TRUE(tensors) << tensors.error().message();
    ASSERT_EQ(tensors->size(), 2u);
    const TensorSource& matrix = tensors->at("m");
    EXPECT_EQ(matrix.shape, (std::vector<uint64_t>{2, 3}));
    EXPECT_EQ(matrix.type, ElementType::kF16);
    EXPECT_EQ(matrix.offset % 64, 0u);
    std::vector<float> values(6);
    ASSERT_TRUE(TensorReader().Read(matrix, 0, values));
    EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(tensors->at("v").shape, (std::vector<uint64_t>{300}));
  }
}

TEST_F(TorchArchiveTest, EveryTruncationIsAnError) {
  support::WriteTorchArchive({{"m", {2, 3}, {1, 2, 3, 4, 5, 6}}}, StorageType::kF32, path_, true);
  const std::string whole = support::ReadFile(path_);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    support::WriteFile(path_, whole.substr(0, bytes));
    EXPECT_FALSE(ReadTorchArchive(path_)) << bytes;
  }
}

TEST_F(TorchArchiveTest, RefusesArchivesThatCannotBeReadInPlace) {
  ExpectRefused("no zip at all", "is not a zip archive");
  ExpectRefused(support::ZipArchive({{"a/data.pkl", "x", 8}}), "\"a/data.pkl\" is compressed");
  ExpectRefused(support::ZipArchive({{"a/x", "1"}, {"a/x", "2"}}), "\"a/x\" appears twice");
  ExpectRefused(support::ZipArchive({{"a/\xE9", "1"}, {"a/\xE9", "2"}}),
                R"("a/\xE9" appears twice)");
  ExpectRefused(support::ZipArchive({{"a/x", "1"}}), "has no data.pkl");
  ExpectRefused(support::ZipArchive({{"a/data.pkl", "x"}, {"a/byteorder", "big"}}), "big-endian");
  // Two entries of the directory that share bytes, as zip bombs do.
  std::string bytes = support::ZipArchive({{"a/x", std::string(100, 'x')}, {"a/y", "y"}});
  const size_t directory = bytes.find("PK\1\2");
  const size_t second = bytes.find("PK\1\2", directory + 4);
  bytes.replace(second + 42, 4, bytes.substr(directory + 42, 4));
  ExpectRefused(bytes, "share byte");
  // A directory whose stated offset is wrong.
  bytes = support::ZipArchive({{"a/x", "1"}});
  bytes.replace(bytes.size() - 6, 4, "\xff\xff\xff\x7f");
  ExpectRefused(bytes, "directory of entries is damaged");
}

TEST_F(TorchArchiveTest, RefusesStoragesThatDoNotFit) {
  const std::string pickle = support::TorchPickle({{"m", {4}, {1, 2, 3, 4}}}, StorageType::kF32);
  support::WriteFile(path_, Archive(pickle));
  EXPECT_TRUE(ReadTorchArchive(path_));
  ExpectRefused(support::ZipArchive({{"a/data.pkl", pickle}}), "a/data/0, which is missing");
  ExpectRefused(support::ZipArchive({{"a/data.pkl", pickle}, {"a/data/0", std::string(15, 'x')}}),
                "which has 15 bytes for 4 elements");
}

TEST_F(TorchArchiveTest, RunsNothing) {
  const std::string begin = "\x80\x02";
  ExpectRefused(Archive(begin + "cos\nsystem\n(X\4" + std::string(3, '\0') + "true\x85R."),
                "names os.system");
  ExpectRefused(Archive(begin + "cbuiltins\neval\n"), "names builtins.eval");
  ExpectRefused(Archive(begin + "ctorch\nIntStorage\n"), "names torch.IntStorage");
  ExpectRefused(Archive(begin + "cposix\n" + std::string(100000, 'x') + "\n"), "names posix.xxx");
  for (const std::string opcode : {"i", "o", "\x81", "\x92", "\x93", "P", "\x82", "B", "I"}) {
    ExpectRefused(Archive(begin + opcode), "uses the pickle opcode 0x");
  }
  ExpectRefused(Archive("\x80\x04."), "protocol 4");
}

TEST_F(TorchArchiveTest, RefusesPicklesThatAreNoTable) {
  const std::string begin = "\x80\x02";
  for (const std::string rest : {"",      ".",        ")",          ").",
                                 "N.",    "R.",       "t.",         "s",
                                 "}s.",   "}(K\1u.",  "b.",         "q",
                                 "q\1.",  "h\7.",     "j\1\1\1\1.", "X\xff\xff\xff\xff.",
                                 "Q.",    ")Q.",      "cx",         "\x8a\xff.",
                                 "((((.", "}K\1K\2s."}) {
    support::WriteFile(path_, Archive(begin + rest));
    EXPECT_FALSE(ReadTorchArchive(path_)) << rest;
  }
  ExpectRefused(Archive(begin + "}X\1" + std::string(3, '\0') + "aK\1s."),
                "\"a\", which is not a tensor");
  const auto twice = support::TorchPickle({{"m", {1}, {1}}, {"m", {1}, {1}}}, StorageType::kF32);
  ExpectRefused(support::ZipArchive({{"a/data.pkl", twice}}), "has \"m\" twice");
}

// Deeply nested and large pickles fail soon with a sentence, without recursion.
TEST_F(TorchArchiveTest, RefusesBombs) {
  const std::string begin = "\x80\x02";
  ExpectRefused(Archive(begin + ")" + std::string(200000, '\x85') + "."), "is damaged");
  ExpectRefused(Archive(begin + std::string(1000000, '(') + "."), "creates more than");
  ExpectRefused(Archive(begin + ")" + std::string(5 << 20, '\x85')), "has 4194305 bytes, more");
  // Each tuple contains the previous one twice.
  std::string doubling = begin + ")";
  for (int i = 0; i < 1000; ++i) doubling += "q\1h\1\x86";
  ExpectRefused(Archive(doubling + "."), "is damaged");
}

TEST_F(TorchArchiveTest, RefusesTensorsThatDoNotFitTheirStorage) {
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string pickle = support::TorchPickle({{"m", {2, 2}, {1, 2, 3, 4}}}, StorageType::kF32);
    const size_t at = pickle.find(from);
    EXPECT_NE(at, std::string::npos);
    return Archive(pickle.replace(at, from.size(), to));
  };
  using namespace std::string_view_literals;
  ExpectRefused(changed("K\0K\2K\2\x86K\2K\1"sv, "K\1K\2K\2\x86K\2K\1"sv), "is damaged");
  ExpectRefused(changed("K\0K\2K\2\x86K\2K\1"sv, "K\0K\2K\2\x86K\1K\2"sv),
                "are not stored row by row");
  ExpectRefused(changed("K\0K\2K\2\x86K\2K\1"sv, "K\0K\2K\3\x86K\3K\1"sv), "is damaged");
  ExpectRefused(changed("K\0K\2K\2\x86K\2K\1"sv, "K\0K\0K\2\x86K\2K\1"sv), "is damaged");
  ExpectRefused(changed("K\0K\2K\2\x86K\2K\1"sv, "K\0J\xff\xff\xff\xffK\2\x86K\2K\1"sv),
                "is damaged");
  // Every tensor has a copy of its storage's key; torch writes short keys.
  const auto with_key_of = [&](char bytes) {
    return changed(
        "X\1\0\0\0"
        "0"sv,
        std::string("X") + bytes + std::string(3, '\0') + std::string(bytes, '0'));
  };
  ExpectRefused(with_key_of(64), "which is missing");
  ExpectRefused(with_key_of(65), "is damaged");
}

}  // namespace
}  // namespace cria
