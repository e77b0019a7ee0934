#include "converter/input/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "converter/test_checkpoint.h"
#include "core/thread_pool.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using ::testing::HasSubstr;

class TensorSourceTest : public ::testing::Test {
 protected:
  template <typename Bits>
  TensorSource Make(ElementType type, const std::vector<Bits>& elements,
                    std::vector<uint64_t> shape) {
    const auto path = folder_.path() / "data";
    // Three bytes come first, because tensors need not be aligned.
    support::WriteFile(path, "xyz" + std::string(reinterpret_cast<const char*>(elements.data()),
                                                 elements.size() * sizeof(Bits)));
    auto file = platform::File::Open(path.string());
    EXPECT_TRUE(file);
    return {.name = "a.weight",
            .type = type,
            .shape = std::move(shape),
            .file = std::make_shared<const platform::File>(std::move(*file)),
            .offset = 3};
  }

  support::TemporaryDirectory folder_;
};

// By the definition of IEEE binary16.
double HalfValue(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST_F(TensorSourceTest, ConvertsEveryFiniteHalfExactly) {
  std::vector<uint16_t> elements;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    if ((bits & 0x7c00) != 0x7c00) elements.push_back(static_cast<uint16_t>(bits));
  }
  const TensorSource source = Make(ElementType::kF16, elements, {elements.size()});
  std::vector<float> values(elements.size());
  ASSERT_TRUE(TensorReader().Read(source, 0, values));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], HalfValue(elements[i])) << elements[i];
    ASSERT_EQ(std::signbit(values[i]), (elements[i] & 0x8000) != 0);
  }
}

TEST_F(TensorSourceTest, KeepsSubnormalsWhereThreadsFlushThem) {
  const std::vector<uint16_t> halves = {0x0001, 0x8001, 0x03ff, 0x0200, 0x0400, 0x0000};
  const TensorSource f16 = Make(ElementType::kF16, halves, {halves.size()});
  std::vector<float> f16_values(halves.size());
  for (const size_t num_threads : {1, 2}) {
    const auto pool = ThreadPool::Create(num_threads);
    ASSERT_TRUE(pool);
    bool flushes = false;
    bool is_read = false;
    pool->ParallelFor(1, [&](size_t) {
      volatile float min = std::numeric_limits<float>::min();
      volatile float half = min * 0.5f;
      flushes = half == 0.0f;
      is_read = TensorReader().Read(f16, 0, f16_values).has_value();
    });
#if defined(__x86_64__) || defined(__aarch64__)
    EXPECT_TRUE(flushes) << "the test would show nothing";
#endif
    ASSERT_TRUE(is_read);
    for (size_t i = 0; i < halves.size(); ++i) EXPECT_EQ(f16_values[i], HalfValue(halves[i])) << i;
  }
  const std::vector<uint16_t> bf16s = {0x0001, 0x807f, 0x0080};
  const TensorSource bf16 = Make(ElementType::kBf16, bf16s, {bf16s.size()});
  std::vector<float> bf16_values(bf16s.size());
  const auto pool = ThreadPool::Create(2);
  ASSERT_TRUE(pool);
  pool->ParallelFor(1, [&](size_t) { EXPECT_TRUE(TensorReader().Read(bf16, 0, bf16_values)); });
  for (size_t i = 0; i < bf16s.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(bf16_values[i]), uint32_t{bf16s[i]} << 16);
  }
}

TEST_F(TensorSourceTest, ConvertsBf16AndF32) {
  const TensorSource bf16 = Make<uint16_t>(ElementType::kBf16, {0x3f80, 0xc049, 0x0001}, {3});
  std::vector<float> values(3);
  ASSERT_TRUE(TensorReader().Read(bf16, 0, values));
  EXPECT_EQ(values, (std::vector<float>{1.0f, -3.140625f, std::ldexp(1.0f, -133)}));

  const std::vector<float> originals = {0.1f, -0.0f, std::numeric_limits<float>::denorm_min(),
                                        std::numeric_limits<float>::max()};
  const TensorSource f32 = Make(ElementType::kF32, originals, {4});
  values.resize(2);
  ASSERT_TRUE(TensorReader().Read(f32, 2, values));
  EXPECT_EQ(values, (std::vector<float>{originals[2], originals[3]}));
}

TEST_F(TensorSourceTest, NamesTheElementThatIsNotFinite) {
  std::vector<float> values(6);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const TensorSource source = Make<float>(ElementType::kF32, {0, 1, 2, 3, 4, bad}, {2, 3});
    const Status read = TensorReader().Read(source, 0, values);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), HasSubstr("\"a.weight\""));
    EXPECT_THAT(read.error().message(), HasSubstr("at [1, 2]"));
  }
  for (const auto& [type, bad] :
       {std::pair(ElementType::kF16, 0x7c00), std::pair(ElementType::kF16, 0xfe01),
        std::pair(ElementType::kBf16, 0x7f80), std::pair(ElementType::kBf16, 0xffc0)}) {
    const TensorSource source = Make<uint16_t>(type, {0, 0, static_cast<uint16_t>(bad), 0}, {4});
    const Status read = TensorReader().Read(source, 1, std::span(values).first(3));
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), HasSubstr("at [2]"));
  }
}

TEST_F(TensorSourceTest, AFileThatWasCutShortIsAnError) {
  const TensorSource source = Make<float>(ElementType::kF32, {0, 1, 2, 3}, {4});
  std::filesystem::resize_file(folder_.path() / "data", 9);
  std::vector<float> values(4);
  EXPECT_FALSE(TensorReader().Read(source, 0, values));
}

}  // namespace
}  // namespace cria
