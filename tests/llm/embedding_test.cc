#include "llm/embedding.h"

#include <gtest/gtest.h>

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

class EmbeddingReaderTest : public testing::TestWithParam<Table> {};

TEST_P(EmbeddingReaderTest, GivesEveryRowAsDefined) {
  const Table& table = GetParam();
  const TestModelFile written = MakeTestModelFile({.hidden_size = table.hidden_size,
                                                   .embedding = table.scheme,
                                                   .head = table.scheme,
                                                   .block_size = table.block_size});
  const TemporaryFile temporary(Serialize(written));
  const auto file = ModelFile::Open(temporary.path());
  ASSERT_TRUE(file) << file.error().message();
  std::vector<std::byte> row_buffer(std::max<size_t>(8 * size_t{table.hidden_size}, 64));
  const EmbeddingReader reader(*file, row_buffer);
  for (const int32_t id : {0, 7, 3, 7, 1, 2, 4, 5, 6}) {
    std::vector<float> row(table.hidden_size, 1e9f);
    ASSERT_TRUE(reader.Read(id, row.data()));
    EXPECT_EQ(row, NaiveRow(written, static_cast<size_t>(id))) << id;
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

TEST(EmbeddingReaderErrorTest, AFileThatWasCutShortSinceIsAnError) {
  const TestModelFile written = MakeTestModelFile();
  const TemporaryFile temporary(Serialize(written));
  const auto file = ModelFile::Open(temporary.path());
  ASSERT_TRUE(file);
  std::vector<std::byte> row_buffer(64);
  const EmbeddingReader reader(*file, row_buffer);
  temporary.Truncate(written.tensors.front().data.offset + 20);
  std::vector<float> row(8);
  const Status status = reader.Read(7, row.data());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace cria
