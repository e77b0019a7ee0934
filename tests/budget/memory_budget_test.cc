// Sizes that may only change on purpose. A change that makes one larger says so by changing a
// number here.

#include <gtest/gtest.h>

#include "decode/decoder_memory.h"
#include "support/llama_config.h"
#include "support/mebibyte.h"

namespace cria {
namespace {

using support::kMebibyte;
using support::Llama32Of1B;

size_t KvBytes(const DecoderMemory& memory) {
  const ArenaLayout& layout = memory.layout;
  return layout.bytes(memory.kv.keys) + layout.bytes(memory.kv.values) +
         layout.bytes(memory.kv.key_scales) + layout.bytes(memory.kv.value_scales);
}

TEST(MemoryBudget, KvCacheIsWhatItsTypeSays) {
  const size_t values = 2 * 16 * 8 * 64 * size_t{2048};
  EXPECT_EQ(KvBytes(PlanDecoderMemory(Llama32Of1B(), {.kv_type = KvType::kF32}, 4)), values * 4);
  EXPECT_EQ(KvBytes(PlanDecoderMemory(Llama32Of1B(), {.kv_type = KvType::kF16}, 4)), values * 2);
  EXPECT_EQ(KvBytes(PlanDecoderMemory(Llama32Of1B(), {.kv_type = KvType::kInt8}, 4)),
            values + values / 64 * 4);
}

TEST(MemoryBudget, WorkingMemoryOfTheOneBillionShape) {
  const DecoderMemory memory = PlanDecoderMemory(Llama32Of1B(), {.kv_type = KvType::kInt8}, 4);
  EXPECT_LE(memory.layout.total_bytes() - KvBytes(memory), 18 * kMebibyte);
}

}  // namespace
}  // namespace cria
