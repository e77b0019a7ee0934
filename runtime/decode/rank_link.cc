#include "decode/rank_link.h"

namespace cria {
namespace {

class LoneRank final : public RankLink {
 public:
  size_t num_ranks() const override { return 1; }
  Status Sum(std::span<float>) override { return {}; }
  Status NormalizeJointly(std::span<float>, const float*, const float*, const float*) override {
    return {};
  }
  Status GatherLogits(std::span<float>, size_t) override { return {}; }

  Status BeginForward(const Batch&, const KvPages&, std::span<const StateRun>) override {
    return {};
  }
  Status BeginMove(const StoreMoves&) override { return {}; }
  Status BeginLogits(size_t, size_t) override { return {}; }

  Status TakePart(ModelFile&) override { return {}; }
  uint64_t MemoryBytes(const ModelConfig&, const DecoderOptions&) const override { return 0; }
  Status Prepare(const ModelConfig&, const DecoderOptions&) override { return {}; }

  size_t NumKeyValueHeads(const ops::KvCacheView& cache) const override {
    return cache.num_key_value_heads;
  }
  std::unique_lock<std::mutex> HoldKvRows() override { return {}; }
  Status ExchangeKvRows(const KvRows&, const ops::KvCacheView&, KvDirection) override { return {}; }
  KvParts KvRowsOf(const KvRows& rows, const ops::KvCacheView& cache, size_t head) override {
    return RowsInCache(rows, cache, head);
  }

  size_t NumStateElements(const StateSize& size) const override { return size.state_elements; }
  Status ExchangeState(const KeptState&, const StateSize&, std::span<float>, KvDirection) override {
    return {};
  }
  std::span<float> StateOf(std::span<float> own) override { return own; }
};

}  // namespace

RankLink& NoOtherRanks() {
  static LoneRank lone;
  return lone;
}

}  // namespace cria
