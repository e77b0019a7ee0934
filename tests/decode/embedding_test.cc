#include "decode/embedding.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "core/temporary_file.h"
#include "model/test_model_file.h"

namespace cria {
namespace {

// Row `id` of a stored table by the definition of its scheme.
std::vector<float> NaiveRow(const TestModelFile& file, size_t id) {
  const StoredTensor& table = file.tensors.front();
  const TensorLayout& layout = table.layout;
  const auto bytes_at = [&](uint64_t offset) -> const std::byte* {
    for (const TestModelFile::Piece& piece : file.payload) {
      if (piece.offset == offset) return piece.bytes.data();
    }
    return nullptr;
  };
  const std::byte* const row = bytes_at(table.data.offset) + id * layout.row_bytes();
  std::vector<float> values(layout.input_channels);
  if (layout.scheme == Scheme::kF32) {
    std::memcpy(values.data(), row, values.size() * sizeof(float));
    return values;
  }
  const std::byte* const scales = bytes_at(table.scales.offset) + id * layout.row_scale_bytes();
  for (size_t i = 0; i < values.size(); ++i) {
    if (layout.scheme == Scheme::kQc8w) {
      float scale;
      std::memcpy(&scale, scales, sizeof scale);
      values[i] = scale * static_cast<float>(static_cast<int8_t>(row[i]));
    } else {
      uint16_t scale;
      std::memcpy(&scale, scales + i / layout.block_size * sizeof scale, sizeof scale);
      const int nibble = std::to_integer<int>(row[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 15;
      values[i] = Bf16ToFloat(scale) * static_cast<float>(nibble - 8);
    }
  }
  return values;
}

struct Table {
  Scheme scheme;
  uint32_t hidden_size;
  size_t block_size;
};

// Opens the model file after `lead` other bytes. If `lead` is 1, no part of the file can be mapped.
Result<ModelFile> OpenBehind(size_t lead, const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY);
  Result<platform::File> part = platform::File::OfDescriptor(descriptor, lead, std::nullopt);
  close(descriptor);
  if (!part) return std::unexpected(part.error());
  return ModelFile::Open(std::move(*part));
}

std::vector<std::byte> Behind(size_t lead, const std::vector<std::byte>& bytes) {
  std::vector<std::byte> result(lead);
  result.insert(result.end(), bytes.begin(), bytes.end());
  return result;
}

class EmbeddingReaderTest : public testing::TestWithParam<Table> {};

TEST_P(EmbeddingReaderTest, GivesEveryRowAsDefined) {
  const Table& table = GetParam();
  const TestModelFile written = MakeTestModelFile({.hidden_size = table.hidden_size,
                                                   .embedding = table.scheme,
                                                   .head = table.scheme,
                                                   .block_size = table.block_size});
  for (const size_t lead : {0, 1}) {
    const TemporaryFile temporary(Behind(lead, Serialize(written)));
    const auto file = OpenBehind(lead, temporary.path());
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->is_mappable(), lead == 0);
    std::vector<std::byte> row_buffer(std::max<size_t>(8 * size_t{table.hidden_size}, 64));
    const auto reader = EmbeddingReader::Create(*file, row_buffer);
    ASSERT_TRUE(reader);
    for (const int32_t id : {0, 7, 3, 7, 1, 2, 4, 5, 6}) {
      std::vector<float> row(table.hidden_size, 1e9f);
      ASSERT_TRUE(reader->Read(id, row.data()));
      EXPECT_EQ(row, NaiveRow(written, static_cast<size_t>(id))) << id;
    }
    // As if each token had two rows.
    std::vector<std::byte> rows_buffer(EmbeddingReader::BufferBytes(2, table.hidden_size));
    const auto of_two =
        EmbeddingReader::Create(*file, rows_buffer, TensorRole::kEmbedTokens, /*token_rows=*/2);
    ASSERT_TRUE(of_two);
    EXPECT_EQ(of_two->num_tokens(), reader->num_tokens() / 2);
    for (const int32_t id : {0, 3, 1}) {
      std::vector<float> rows(2 * size_t{table.hidden_size}, 1e9f);
      ASSERT_TRUE(of_two->Read(id, rows.data()));
      std::vector<float> expected = NaiveRow(written, 2 * static_cast<size_t>(id));
      const std::vector<float> second = NaiveRow(written, 2 * static_cast<size_t>(id) + 1);
      expected.insert(expected.end(), second.begin(), second.end());
      EXPECT_EQ(rows, expected) << id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, EmbeddingReaderTest,
                         testing::Values(Table{Scheme::kF32, 8, 32}, Table{Scheme::kF32, 576, 32},
                                         Table{Scheme::kQc8w, 8, 32}, Table{Scheme::kQc8w, 576, 32},
                                         Table{Scheme::kQb4w, 2, 32}, Table{Scheme::kQb4w, 6, 32},
                                         Table{Scheme::kQb4w, 576, 64},
                                         Table{Scheme::kQb4w, 172, 32},
                                         Table{Scheme::kQb4w, 512, 256}),
                         [](const testing::TestParamInfo<Table>& table) {
                           return std::string(SchemeName(table.param.scheme)) + "_" +
                                  std::to_string(table.param.hidden_size);
                         });

TEST(EmbeddingReaderMappingTest, OnlySmallTablesInMappableFilesAreMapped) {
  const TensorSpec table = {.role = TensorRole::kEmbedTokens,
                            .layer = kNoLayer,
                            .output_channels = 32000,
                            .input_channels = 288};
  const TensorLayout small = MakeTensorLayout(table, Scheme::kQc8w, 32);
  EXPECT_EQ(EmbeddingReader::MappedBytes(small, true), 32000 * (288 + sizeof(float)));
  EXPECT_EQ(EmbeddingReader::MappedBytes(small, false), 0);
  EXPECT_EQ(EmbeddingReader::MappedBytes(MakeTensorLayout(table, Scheme::kF32, 32), true), 0);
}

TEST(EmbeddingReaderErrorTest, AnUnmappedTableThatWasCutShortSinceIsAnError) {
  const TestModelFile written = MakeTestModelFile();
  const TemporaryFile temporary(Behind(1, Serialize(written)));
  const auto file = OpenBehind(1, temporary.path());
  ASSERT_TRUE(file);
  std::vector<std::byte> row_buffer(64);
  const auto reader = EmbeddingReader::Create(*file, row_buffer);
  ASSERT_TRUE(reader);
  temporary.Truncate(1 + written.tensors.front().data.offset + 20);
  std::vector<float> row(8);
  const Status status = reader->Read(7, row.data());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace cria
