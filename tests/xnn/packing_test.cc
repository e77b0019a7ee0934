#include "xnn/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/format.h"
#include "core/platform.h"
#include "core/temporary_file.h"
#include "core/thread_pool.h"
#include "model/file_layout.h"
#include "ops/quantized_blocks.h"
#include "support/run_program.h"
#include "xnn/linear.h"
#include "xnn/stored_weights.h"

namespace cria::xnn {
namespace {

// 0 where it fails.
uint64_t SizeOf(const TensorLayout& layout) {
  const auto bytes = PackedBytes(layout);
  EXPECT_TRUE(bytes) << bytes.error().message();
  return bytes.value_or(0);
}

platform::PageBlock Zeros(size_t bytes) {
  auto block = platform::PageBlock::Allocate(bytes);
  EXPECT_TRUE(block);
  return std::move(*block);
}

platform::PageBlock PackWhole(const LinearWeights& weights) {
  platform::PageBlock packed = Zeros(SizeOf(weights.layout));
  const Status status = Pack(weights, packed.bytes());
  EXPECT_TRUE(status) << status.error().message();
  return packed;
}

LinearWeights Rows(const LinearWeights& weights, size_t first, size_t count) {
  const TensorLayout& layout = weights.layout;
  LinearWeights rows = {
      layout, weights.data.subspan(first * layout.row_bytes(), count * layout.row_bytes()),
      weights.scales.subspan(first * layout.row_scale_bytes(), count * layout.row_scale_bytes())};
  rows.layout.output_channels = count;
  return rows;
}

std::string WithoutRows(const testing::TestParamInfo<Shape>& shape) { return NameOf(shape.param); }

// Inputs and block sizes; each test brings the rows.
class PackingTest : public testing::TestWithParam<Shape> {
 protected:
  static Shape WithRows(size_t rows) {
    Shape shape = GetParam();
    shape.outputs = rows;
    return shape;
  }
};

// XNNPACK itself says what it packs a whole matrix into: Pack accepts no other size.
TEST_P(PackingTest, SizesAreWhatXnnpackReserves) {
  std::vector<size_t> counts = {1, 2, 3, 5, 7, 129, 135, 300, 389, 520};
  for (size_t tile : {8, 16, 32, 64, 128}) {
    for (size_t rows = tile; rows < 700; rows += rows < 128 ? tile : 128) {
      counts.insert(counts.end(), {rows - 1, rows, rows + 1});
    }
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const size_t rows : counts) {
    const StoredWeights weights(WithRows(rows), 1);
    platform::PageBlock packed = Zeros(SizeOf(weights.layout()));
    const Status status = Pack(weights.view(), packed.bytes());
    ASSERT_TRUE(status) << rows << " rows: " << status.error().message();
    // All that is read of it is there.
    EXPECT_GE(packed.bytes().size(), weights.layout().data_bytes());
    // Slices that another may follow; the last may end anywhere.
    if (rows % 128 == 0) {
      EXPECT_EQ(packed.bytes().size() % kPackedAlignment, 0u) << rows << " rows";
    }
  }
}

TEST_P(PackingTest, SlicesMakeUpTheWholeMatrix) {
  for (const size_t rows : {1, 127, 128, 129, 255, 256, 257, 263, 384, 385, 511, 513, 700}) {
    const StoredWeights weights(WithRows(rows), 2);
    const platform::PageBlock whole = PackWhole(weights.view());
    const uint64_t row_bytes = weights.layout().row_bytes() + weights.layout().row_scale_bytes();
    for (const uint64_t max_bytes :
         {uint64_t{0}, 128 * row_bytes, 300 * row_bytes - 1, 600 * row_bytes, uint64_t{1} << 40}) {
      SCOPED_TRACE(Format("{} rows, slices of {} bytes", rows, max_bytes));
      platform::PageBlock sliced = Zeros(whole.bytes().size());
      std::span<std::byte> rest = sliced.bytes();
      size_t slices = 0;
      for (size_t first = 0, count = 0; first < rows; first += count, ++slices) {
        count = NextSliceRows(weights.layout(), rows - first, max_bytes);
        ASSERT_TRUE(count > 0 && first + count <= rows) << count;
        const LinearWeights slice = Rows(weights.view(), first, count);
        const uint64_t bytes = SizeOf(slice.layout);
        ASSERT_LE(bytes, rest.size());
        ASSERT_EQ(reinterpret_cast<uintptr_t>(rest.data()) % kPackedAlignment, 0u);
        ASSERT_TRUE(Pack(slice, rest.first(bytes)));
        rest = rest.subspan(bytes);
      }
      ASSERT_TRUE(rest.empty());
      ASSERT_TRUE(std::ranges::equal(whole.bytes(), sliced.bytes()));
      const uint64_t slice_rows = std::max<uint64_t>(max_bytes / row_bytes / 128, 1) * 128;
      EXPECT_EQ(slices > 1, rows >= slice_rows + 128);
    }
  }
}

TEST_P(PackingTest, EveryOtherSizeOfDestinationIsRefused) {
  const StoredWeights weights(WithRows(65), 3);
  const uint64_t bytes = SizeOf(weights.layout());
  platform::PageBlock block = Zeros(2 * bytes + 64);
  for (const uint64_t wrong :
       {uint64_t{0}, uint64_t{64}, bytes - 64, bytes - 1, bytes + 1, bytes + 64, 2 * bytes}) {
    const Status status = Pack(weights.view(), block.bytes().first(wrong));
    ASSERT_FALSE(status) << wrong;
    EXPECT_EQ(status.error().code(), ErrorCode::kInternal);
    EXPECT_NE(status.error().message().find(std::to_string(bytes)), std::string::npos)
        << status.error().message();
    EXPECT_TRUE(std::ranges::all_of(block.bytes(), [](std::byte b) { return b == std::byte{}; }));
  }
  EXPECT_TRUE(Pack(weights.view(), block.bytes().first(bytes)));
}

TEST_P(PackingTest, IsTheSameEveryTimeAndOnEveryThread) {
  const StoredWeights weights(WithRows(200), 4);
  const platform::PageBlock expected = PackWhole(weights.view());
  std::vector<std::thread> threads;
  std::vector<platform::PageBlock> packed(4);
  for (platform::PageBlock& block : packed) {
    threads.emplace_back([&] { block = PackWhole(weights.view()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const platform::PageBlock& block : packed) {
    EXPECT_TRUE(std::ranges::equal(block.bytes(), expected.bytes()));
  }
}

// Multiplies three rows of random activations.
std::vector<float> Multiply(const TensorLayout& layout, std::span<const std::byte> packed) {
  constexpr size_t kRows = 3;
  std::vector<float> input(kRows * layout.input_channels + kReadableSlackBytes);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (float& value : input) value = normal(random);
  const size_t quantized_stride = ops::QuantizedBlocks::Bytes(layout.padded_input_channels);
  std::vector<int8_t> quantized(kRows * quantized_stride + kReadableSlackBytes);
  std::vector<RowQuantization> quantizations(kRows + kExtraRowQuantizations);
  std::vector<float> output(kRows * layout.output_channels);
  const LinearBuffers buffers = {.input = input.data(),
                                 .input_stride = layout.input_channels,
                                 .quantized = {quantized.data(), quantizations.data()},
                                 .quantized_stride = quantized_stride,
                                 .output = output.data(),
                                 .output_stride = layout.output_channels};
  const auto pool = ThreadPool::Create(2);
  auto linear = Linear::Create(layout, buffers, 2);
  EXPECT_TRUE(pool && linear);
  for (size_t r = 0; r < kRows; ++r) {
    linear->Quantize(&input[r * layout.input_channels], buffers.quantized, r);
  }
  EXPECT_TRUE(linear->Run(packed, kRows, *pool));
  return output;
}

TEST_P(PackingTest, WeightsOfAReadOnlyFileMultiplyAsThoseInMemory) {
  for (const size_t rows : {1, 33, 200, 300}) {
    const StoredWeights weights(WithRows(rows), 6);
    const platform::PageBlock packed = PackWhole(weights.view());
    // Not at the beginning of a page, and nothing but the slack behind.
    const size_t packed_bytes = packed.bytes().size();
    std::vector<std::byte> bytes(kPackedAlignment + packed_bytes + kTrailingSlackBytes);
    std::memcpy(&bytes[kPackedAlignment], packed.bytes().data(), packed_bytes);
    const TemporaryFile temporary(bytes);
    const auto file = platform::File::Open(temporary.path());
    ASSERT_TRUE(file);
    const auto mapping = file->Map(kPackedAlignment, packed_bytes + kTrailingSlackBytes);
    ASSERT_TRUE(mapping);
    const std::vector<float> expected = Multiply(weights.layout(), packed.bytes());
    const std::vector<float> actual =
        Multiply(weights.layout(), mapping->bytes().first(packed_bytes));
    EXPECT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)), 0);
    EXPECT_TRUE(std::ranges::any_of(actual, [](float value) { return value != 0.0f; }));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, PackingTest,
    testing::Values(Shape{Scheme::kF32, 0, 1}, Shape{Scheme::kF32, 0, 17},
                    Shape{Scheme::kF32, 0, 172}, Shape{Scheme::kQc8w, 0, 1},
                    Shape{Scheme::kQc8w, 0, 17}, Shape{Scheme::kQc8w, 0, 173},
                    Shape{Scheme::kQc8w, 0, 256}, Shape{Scheme::kQb4w, 0, 6, 32},
                    Shape{Scheme::kQb4w, 0, 172, 32}, Shape{Scheme::kQb4w, 0, 192, 64},
                    Shape{Scheme::kQb4w, 0, 256, 128}, Shape{Scheme::kQb4w, 0, 512, 256},
                    Shape{Scheme::kQ4_0, 0, 96}, Shape{Scheme::kQ4K, 0, 512}),
    WithoutRows);

TEST(LayoutFingerprintTest, IsTheSameOnEveryThread) {
  const auto expected = LayoutFingerprint();
  ASSERT_TRUE(expected) << expected.error().message();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const auto again = LayoutFingerprint();
      EXPECT_TRUE(again && *again == *expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

constexpr const char* kTell = "CRIA_TELL_FINGERPRINT";

TEST(LayoutFingerprintTest, IsTheSameInEveryProcess) {
  const auto fingerprint = LayoutFingerprint();
  ASSERT_TRUE(fingerprint);
  const std::string words = Format("fingerprint={:016x};", *fingerprint);
  if (getenv(kTell) != nullptr) {
    std::printf("%s\n", words.c_str());
    return;
  }
  for (int i = 0; i < 2; ++i) {
    const auto told = support::RunProgram(
        {CRIA_THIS_PROGRAM, "--gtest_filter=LayoutFingerprintTest.IsTheSameInEveryProcess"},
        {.environment = {std::string(kTell) + "=1"}});
    EXPECT_NE(told.output.find(words), std::string::npos) << told.output << told.error;
  }
}

}  // namespace
}  // namespace cria::xnn
