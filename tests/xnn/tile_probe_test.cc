#include "xnn/tile_probe.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "core/platform.h"
#include "model/tensor_table.h"
#include "ops/products/tile_kernel.h"
#include "ops/products/tiled_product.h"

namespace cria::xnn {
namespace {

// So that LinearTest tests our own products, and no other version of XNNPACK makes them unused
// without notice. On x86-64, xnn_tests@avx2 (tests/CMakeLists.txt) does so for AVX2.
TEST(TileProbeTest, Int4IsPackedForTheKernelThatThereIs) {
  const ops::TileKernel* kernel = ops::FindQb4wKernel();
  const char* loaded_first = std::getenv("LD_PRELOAD");
  if (loaded_first != nullptr && std::string_view(loaded_first).contains("avx2_processor")) {
    EXPECT_EQ(kernel != nullptr, platform::InstructionSets().contains("avx2"));
  }
  if (kernel == nullptr) GTEST_SKIP() << "XNNPACK multiplies int4 on this processor";
  for (const size_t block_size : kBlockSizes) {
    const Result<bool> packs = PacksAs(ops::TilesOf(*kernel, block_size, block_size));
    ASSERT_TRUE(packs) << packs.error().message();
    EXPECT_TRUE(*packs) << "blocks of " << block_size;
  }
}

TEST(TileProbeTest, Int8IsPackedForTheKernelThatThereIs) {
  const ops::TileKernel* kernel = ops::FindQc8wKernel();
  if (kernel == nullptr) GTEST_SKIP() << "XNNPACK multiplies int8 on this processor";
  if (platform::InstructionSets().contains("amx")) {
    GTEST_SKIP() << "XNNPACK packs int8 for AMX and multiplies it";
  }
  const Result<bool> packs = PacksAs(ops::TilesOf(*kernel, 1, 0));
  ASSERT_TRUE(packs) << packs.error().message();
  EXPECT_TRUE(*packs);
}

TEST(TileProbeTest, AnotherLayoutIsNoticed) {
  for (const size_t block_size : {0, 32}) {
    const Result<bool> packs =
        PacksAs({.outputs = 24, .group_inputs = 8, .block_size = block_size});
    ASSERT_TRUE(packs) << packs.error().message();
    EXPECT_FALSE(*packs);
  }
}

}  // namespace
}  // namespace cria::xnn
