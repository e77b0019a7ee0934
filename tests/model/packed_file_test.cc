#include "model/packed_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/temporary_file.h"
#include "model/file_layout.h"
#include "model/test_model_file.h"
#include "packed_generated.h"

namespace cria {
namespace {

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();
// The offset of packed weights after the rest of a model.
constexpr uint64_t kModelBytes = 5 * kSectionAlignment;

const PackedIdentity kIdentity = {
    .model_name = "a model",
    .processor = "a processor",
    .model_digest = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
    .layout_fingerprint = 0x0123456789abcdef,
    .layer_schemes = 5};

// Packed weights of three matrices with random bytes, behind `offset` bytes of something else.
std::vector<std::byte> MakeFile(uint64_t offset = 0, std::vector<uint64_t> sizes = {320, 64, 7}) {
  PackedFilePlan plan(kIdentity, sizes, offset);
  std::vector<std::byte> file(plan.file_bytes());
  std::mt19937 random(1);
  for (PackedMatrix& matrix : plan.matrices()) {
    const std::span<std::byte> bytes =
        std::span(file).subspan(matrix.range.offset, matrix.range.bytes);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    matrix.checksum = ChecksumOf(bytes);
  }
  std::ranges::fill_n(file.begin(), static_cast<ptrdiff_t>(offset), std::byte{0xee});
  std::ranges::copy(plan.Head(), file.begin() + static_cast<ptrdiff_t>(offset));
  return file;
}

size_t HeadBytes(const std::vector<std::byte>& file) {
  return sizeof(FilePreamble) + PreambleOf(file).metadata_bytes;
}

void ExpectPackedFileRefused(const std::vector<std::byte>& bytes, const std::string& words,
                             ErrorCode code = ErrorCode::kInvalidFile, uint64_t offset = 0) {
  const TemporaryFile temporary(bytes);
  const auto file = PackedFile::Open(temporary.path(), offset);
  ASSERT_FALSE(file) << "opened, instead of: " << words;
  EXPECT_EQ(file.error().code(), code) << file.error().message();
  EXPECT_EQ(file.error().remedy().kind, RemedyKind::kPack);
  for (const std::string& part : {words, temporary.path()}) {
    EXPECT_NE(file.error().message().find(part), std::string::npos) << file.error().message();
  }
}

TEST(PackedFileTest, TellsWhatThePlanSaid) {
  for (const uint64_t offset : {uint64_t{0}, kModelBytes}) {
    for (const std::vector<uint64_t>& sizes : {std::vector<uint64_t>{1},
                                               {64},
                                               {320, 64, 7},
                                               {0, 5, 0},
                                               std::vector<uint64_t>(500, 65)}) {
      const std::vector<std::byte> bytes = MakeFile(offset, sizes);
      const TemporaryFile temporary(bytes);
      const auto file = PackedFile::Open(temporary.path(), offset);
      ASSERT_TRUE(file) << file.error().message();
      EXPECT_EQ(file->path(), temporary.path());
      EXPECT_EQ(file->size_bytes(), bytes.size());
      EXPECT_EQ(file->identity().model_name, kIdentity.model_name);
      EXPECT_EQ(file->identity().processor, kIdentity.processor);
      EXPECT_EQ(file->identity().layer_schemes, kIdentity.layer_schemes);
      EXPECT_EQ(file->identity().model_digest, kIdentity.model_digest);
      EXPECT_EQ(file->identity().layout_fingerprint, kIdentity.layout_fingerprint);
      ASSERT_EQ(file->matrices().size(), sizes.size());
      EXPECT_EQ(file->matrices()[0].range.offset % kSectionAlignment, 0u);
      for (size_t i = 0; i < sizes.size(); ++i) {
        const PackedMatrix& matrix = file->matrices()[i];
        EXPECT_EQ(matrix.range.bytes, sizes[i]);
        EXPECT_EQ(matrix.range.offset % kTensorAlignment, 0u);
        EXPECT_EQ(matrix.checksum,
                  ChecksumOf(std::span(bytes).subspan(matrix.range.offset, matrix.range.bytes)));
      }
      const FileRange weights = file->weights();
      EXPECT_EQ(weights.offset, file->matrices()[0].range.offset);
      EXPECT_LE(weights.offset + weights.bytes, bytes.size());
      const auto mapping = file->Map(weights);
      ASSERT_TRUE(mapping) << mapping.error().message();
      EXPECT_TRUE(std::ranges::equal(mapping->bytes(),
                                     std::span(bytes).subspan(weights.offset, weights.bytes)));
      EXPECT_TRUE(file->VerifyPayload());
    }
  }
}

TEST(PackedFileTest, MatricesMayBeginSections) {
  const std::vector<uint64_t> sizes = {100, 40000, 7, 20000};
  PackedFilePlan plan(kIdentity, sizes, 0, {false, true, false, true});
  std::vector<std::byte> bytes(plan.file_bytes());
  std::ranges::copy(plan.Head(), bytes.begin());
  const TemporaryFile temporary(bytes);
  const auto file = PackedFile::Open(temporary.path());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->matrices()[1].range.offset % kSectionAlignment, 0u);
  EXPECT_NE(file->matrices()[2].range.offset % kSectionAlignment, 0u);
  EXPECT_EQ(file->matrices()[3].range.offset % kSectionAlignment, 0u);
}

TEST(PackedFileTest, HeadsOfOnePlanAreAlikeAndDoNotGrow) {
  const std::vector<uint64_t> sizes = {100, 200};
  PackedFilePlan plan(kIdentity, sizes, 0);
  const std::vector<std::byte> before = plan.Head();
  EXPECT_EQ(plan.Head(), before);
  for (PackedMatrix& matrix : plan.matrices()) matrix.checksum = kMaxNumber;
  EXPECT_EQ(plan.Head().size(), before.size());
  EXPECT_NE(plan.Head(), before);
  PackedIdentity empty;
  EXPECT_FALSE(PackedFilePlan(empty, sizes, 0).Head().empty());
}

TEST(PackedFileTest, EveryFlippedByteOfTheWeightsIsFound) {
  std::vector<std::byte> bytes = MakeFile();
  const TemporaryFile temporary(bytes);
  const auto file = PackedFile::Open(temporary.path());
  ASSERT_TRUE(file);
  const std::vector<PackedMatrix> matrices(file->matrices().begin(), file->matrices().end());
  for (size_t i = 0; i < matrices.size(); ++i) {
    for (uint64_t at = 0; at < matrices[i].range.bytes; ++at) {
      std::byte& byte = bytes[matrices[i].range.offset + at];
      byte ^= static_cast<std::byte>(1u << (at % 8));
      const TemporaryFile damaged(bytes);
      byte ^= static_cast<std::byte>(1u << (at % 8));
      const auto opened = PackedFile::Open(damaged.path());
      ASSERT_TRUE(opened);
      const Status sound = opened->VerifyPayload();
      ASSERT_FALSE(sound) << i << " at " << at;
      EXPECT_EQ(sound.error().code(), ErrorCode::kInvalidFile);
      EXPECT_NE(sound.error().message().find("packed matrix " + std::to_string(i)),
                std::string::npos);
    }
  }
}

// --- Accidents ---------------------------------------------------------------------------------

TEST(DamagedPackedFileTest, CutShortAnywhereIsAnError) {
  for (const uint64_t offset : {uint64_t{0}, kModelBytes}) {
    const std::vector<std::byte> bytes = MakeFile(offset, {3000, 64, 700});
    const size_t head = HeadBytes({bytes.begin() + static_cast<ptrdiff_t>(offset), bytes.end()});
    std::vector<size_t> places;
    for (size_t i = 0; i < 100; ++i) places.push_back(offset + i * head / 100);
    for (size_t i = 0; i < 100; ++i) {
      places.push_back(offset + head + i * (bytes.size() - offset - head) / 100);
    }
    places.insert(places.end(),
                  {0, static_cast<size_t>(offset / 2), bytes.size() - 1, bytes.size() - 64});
    for (const size_t size : places) {
      const TemporaryFile temporary(
          std::vector(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)));
      const auto file = PackedFile::Open(temporary.path(), offset);
      ASSERT_FALSE(file) << size;
      ASSERT_EQ(file.error().code(), ErrorCode::kInvalidFile) << file.error().message();
    }
  }
}

TEST(DamagedPackedFileTest, AnyFlippedBitOfTheHeadIsAnError) {
  std::vector<std::byte> bytes = MakeFile();
  for (size_t bit = 0; bit < 8 * HeadBytes(bytes); ++bit) {
    const auto mask = static_cast<std::byte>(1u << (bit % 8));
    bytes[bit / 8] ^= mask;
    const TemporaryFile temporary(bytes);
    bytes[bit / 8] ^= mask;
    const auto file = PackedFile::Open(temporary.path());
    ASSERT_FALSE(file) << "bit " << bit;
    ASSERT_EQ(file.error().code(), ErrorCode::kInvalidFile);
  }
}

TEST(DamagedPackedFileTest, OtherFilesAndOtherPlacesAreErrors) {
  ExpectPackedFileRefused({}, "too short");
  ExpectPackedFileRefused(std::vector<std::byte>(63), "too short");
  ExpectPackedFileRefused(std::vector<std::byte>(4096), "is not a file of packed weights");
  ExpectPackedFileRefused(Serialize(MakeTestModelFile()), "is not a file of packed weights");
  std::vector<std::byte> longer = MakeFile();
  longer.push_back({});
  ExpectPackedFileRefused(longer, "file_bytes");
  const std::vector<std::byte> file = MakeFile(kModelBytes);
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{1}, kModelBytes - 1, kModelBytes + 64, kModelBytes - 64}) {
    ExpectPackedFileRefused(file, "is not a file of packed weights", ErrorCode::kInvalidFile,
                            offset);
  }
  const uint64_t end = file.size();
  for (const uint64_t offset : {end - 63, end, end + 1, kMaxNumber, kMaxNumber - 63}) {
    ExpectPackedFileRefused(file, "too short", ErrorCode::kInvalidFile, offset);
  }
  const auto missing = PackedFile::Open("/no/such/file.packed");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(PackedFile::Open(testing::TempDir()));
}

// --- Forgeries, sealed anew --------------------------------------------------------------------

TEST(ForgedPackedFileTest, EveryFieldOfThePreambleIsChecked) {
  const auto expect_refused = [](const std::function<void(FilePreamble&)>& change,
                                 const std::string& words,
                                 ErrorCode code = ErrorCode::kInvalidFile) {
    std::vector<std::byte> bytes = MakeFile();
    FilePreamble preamble = PreambleOf(bytes);
    change(preamble);
    SetPreamble(bytes, preamble);
    ExpectPackedFileRefused(bytes, words, code);
  };
  for (const uint32_t version : {0u, 2u, ~0u}) {
    expect_refused([&](FilePreamble& p) { p.format_version = version; },
                   "format_version is " + std::to_string(version), ErrorCode::kUnsupported);
  }
  // Only model files have packed_offset; it means that file_bytes is not the size of the file.
  for (const uint64_t offset : {uint64_t{1}, kSectionAlignment, kMaxNumber}) {
    expect_refused([&](FilePreamble& p) { p.packed_offset = offset; }, "packed_offset");
    expect_refused(
        [&](FilePreamble& p) {
          p.packed_offset = offset;
          p.file_bytes = kMaxNumber;
        },
        "packed_offset");
  }
  for (const uint64_t bytes :
       {uint64_t{1} << 20, kMaxMetadataBytes, kMaxMetadataBytes + 1, kMaxNumber, kMaxNumber - 63}) {
    expect_refused([&](FilePreamble& p) { p.metadata_bytes = bytes; }, "metadata_bytes");
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{64}, kMaxNumber}) {
    expect_refused([&](FilePreamble& p) { p.file_bytes = bytes; }, "file_bytes");
  }
  expect_refused([](FilePreamble& p) { p.metadata_digest[15] ^= 1; }, "metadata_digest");
}

// What the metadata may say.
struct Claims {
  std::vector<uint8_t> digest = std::vector<uint8_t>(16);
  std::vector<schema::PackedMatrix> matrices;
};

// A file of this size that says so.
std::vector<std::byte> Forge(const Claims& claims, uint64_t file_bytes) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::CreatePackedWeights(builder, builder.CreateString("name"),
                                             builder.CreateString("processor"),
                                             builder.CreateVector(claims.digest), 7,
                                             builder.CreateVectorOfStructs(claims.matrices)),
                 schema::PackedWeightsIdentifier());
  std::vector<std::byte> bytes(file_bytes);
  std::memcpy(bytes.data() + sizeof(FilePreamble), builder.GetBufferPointer(), builder.GetSize());
  SetPreamble(bytes, {.magic = kPackedMagic,
                      .format_version = kPackedFormatVersion,
                      .metadata_bytes = builder.GetSize(),
                      .file_bytes = file_bytes});
  Reseal(bytes);
  return bytes;
}

TEST(ForgedPackedFileTest, MatricesMustLieOneBehindAnotherInsideTheFile) {
  constexpr uint64_t kBegin = kSectionAlignment;
  constexpr uint64_t kFileBytes = kBegin + 1024;
  const auto forge = [](std::vector<schema::PackedMatrix> matrices) {
    return Forge({.matrices = std::move(matrices)}, kFileBytes);
  };
  for (const std::vector<schema::PackedMatrix>& sound :
       {std::vector<schema::PackedMatrix>{{kBegin, 1024 - 128, 0}},
        {{kBegin, 64, 0}, {kBegin + 64, 65, 0}, {kBegin + 192, 0, 0}}}) {
    const TemporaryFile temporary(forge(sound));
    const auto file = PackedFile::Open(temporary.path());
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_TRUE(file->Map(file->weights()));
  }
  const auto first = [&](uint64_t offset, uint64_t bytes) {
    ExpectPackedFileRefused(forge({{offset, bytes, 0}}), "number 0 lies at bytes");
  };
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{64}, kBegin - 64, kBegin + 1, kBegin + 64, 2 * kBegin, kFileBytes,
        uint64_t{1} << 40, kMaxNumber - kBegin + 1, kMaxNumber - 63, kMaxNumber}) {
    first(offset, 64);
    first(offset, 0);
    first(offset, kMaxNumber - offset);
    first(offset, kMaxNumber);
  }
  for (const uint64_t bytes : {uint64_t{1024 - 127}, uint64_t{1024}, uint64_t{1} << 40,
                               kMaxNumber - kBegin, kMaxNumber - kBegin + 1, kMaxNumber}) {
    first(kBegin, bytes);
  }
  const auto second = [&](uint64_t offset, uint64_t bytes) {
    ExpectPackedFileRefused(forge({{kBegin, 100, 0}, {offset, bytes, 0}}),
                            "number 1 lies at bytes");
  };
  for (const uint64_t offset : {uint64_t{0}, kBegin, kBegin + 64, kBegin + 100, kBegin + 127,
                                kBegin + 129, kBegin + 192, kMaxNumber, kMaxNumber - 127}) {
    second(offset, 64);
  }
  second(kBegin + 128, 1024 - 128 - 127);
  second(kBegin + 128, kMaxNumber - kBegin - 127);
  ExpectPackedFileRefused(forge({}), "there are no matrices");
  // The file ends where the matrices would begin.
  ExpectPackedFileRefused(Forge({.matrices = {{kBegin, 0, 0}}}, 1024), "number 0 lies at bytes");
}

TEST(ForgedPackedFileTest, DigestsOfAnotherLengthAreErrors) {
  for (const size_t length : {0, 1, 15, 17, 64}) {
    const Claims claims = {.digest = std::vector<uint8_t>(length),
                           .matrices = {{kSectionAlignment, 64, 0}}};
    ExpectPackedFileRefused(Forge(claims, kSectionAlignment + 256), "model_digest");
  }
}

TEST(ForgedPackedFileTest, WhatIsNoFlatBufferIsAnError) {
  std::mt19937 random(3);
  const std::vector<std::byte> sound = MakeFile();
  const size_t head = HeadBytes(sound);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::byte> bytes = sound;
    for (size_t at = sizeof(FilePreamble); at < head; ++at) {
      bytes[at] = static_cast<std::byte>(random());
    }
    // Every other time past the identifier, which would be the first thing found wrong.
    if (round % 2 == 0) std::memcpy(&bytes[sizeof(FilePreamble) + 4], "CRIP", 4);
    if (round % 4 == 0) std::memset(&bytes[sizeof(FilePreamble) + 1], 0, 3);
    Reseal(bytes);
    ExpectPackedFileRefused(bytes, "FlatBuffer");
  }
  for (size_t size = 0; size + sizeof(FilePreamble) < head; ++size) {
    std::vector<std::byte> bytes = sound;
    FilePreamble preamble = PreambleOf(bytes);
    preamble.metadata_bytes = size;
    SetPreamble(bytes, preamble);
    Reseal(bytes);
    const TemporaryFile temporary(bytes);
    const auto file = PackedFile::Open(temporary.path());
    // Only the padding behind the last field can be missed.
    EXPECT_TRUE(!file || size + sizeof(FilePreamble) + 8 > head) << size;
  }
}

// Whatever a byte of sealed metadata says, opening either fails or gives a file whose every
// function works.
TEST(ForgedPackedFileTest, NoChangedByteCrashes) {
  const std::vector<std::byte> sound = MakeFile();
  size_t opened = 0;
  for (size_t at = sizeof(FilePreamble); at < HeadBytes(sound); ++at) {
    for (const unsigned mask : {0x01u, 0x02u, 0x10u, 0x80u, 0xffu}) {
      std::vector<std::byte> bytes = sound;
      bytes[at] ^= static_cast<std::byte>(mask);
      Reseal(bytes);
      const TemporaryFile temporary(bytes);
      const auto file = PackedFile::Open(temporary.path());
      if (!file) {
        ASSERT_FALSE(file.error().message().empty());
        continue;
      }
      ++opened;
      for (const PackedMatrix& matrix : file->matrices()) {
        ASSERT_LE(matrix.range.offset + matrix.range.bytes, bytes.size());
      }
      ASSERT_TRUE(file->Map(file->weights()));
      (void)file->VerifyPayload();
    }
  }
  // Names, digests, the fingerprint and checksums may change without being wrong.
  EXPECT_GT(opened, 100u);
}

}  // namespace
}  // namespace cria
