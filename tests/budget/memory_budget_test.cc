// Sizes that may only change on purpose. A change that makes one larger says so by changing a
// number here.

#include <gtest/gtest.h>

#include "llm/decoder_memory.h"

namespace cria {
namespace {

ModelConfig Llama1B() {
  return {.architecture = "LlamaForCausalLM",
          .hidden_size = 2048,
          .intermediate_size = 8192,
          .num_hidden_layers = 16,
          .num_attention_heads = 32,
          .num_key_value_heads = 8,
          .head_dim = 64,
          .vocab_size = 128256,
          .max_position_embeddings = 131072,
          .rms_norm_eps = 1e-5f,
          .rope_theta = 500000.0f};
}

constexpr size_t kMebibyte = size_t{1} << 20;

size_t KvBytes(const DecoderMemory& memory) {
  const ArenaLayout& layout = memory.layout;
  return layout.bytes(memory.keys) + layout.bytes(memory.values) + layout.bytes(memory.key_scales) +
         layout.bytes(memory.value_scales);
}

TEST(MemoryBudget, KvCacheIsWhatItsTypeSays) {
  const size_t values = 2 * 16 * 8 * 64 * size_t{2048};
  EXPECT_EQ(KvBytes(PlanDecoderMemory(Llama1B(), {.kv_type = KvType::kF32}, 4)), values * 4);
  EXPECT_EQ(KvBytes(PlanDecoderMemory(Llama1B(), {.kv_type = KvType::kF16}, 4)), values * 2);
  EXPECT_EQ(KvBytes(PlanDecoderMemory(Llama1B(), {.kv_type = KvType::kInt8}, 4)),
            values + values / 64 * 4);
}

TEST(MemoryBudget, WorkingMemoryOfTheOneBillionShape) {
  const DecoderMemory memory = PlanDecoderMemory(Llama1B(), {.kv_type = KvType::kInt8}, 4);
  EXPECT_LE(memory.layout.total_bytes() - KvBytes(memory), 18 * kMebibyte);
}

}  // namespace
}  // namespace cria
