#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/collective.h"
#include "core/platform.h"
#include "decode/decoder.h"
#include "decode/rank_link.h"
#include "ranks/divide.h"
#include "ranks/joint_norm.h"
#include "ranks/kv_row_exchange.h"
#include "ranks/state_exchange.h"

namespace cria::ranks {

// A logit that may be among the largest of all ranks.
struct LogitCandidate {
  float logit;
  int32_t token_id;
};

// What all ranks must agree on.
struct LinkOptions {
  std::vector<double> weights;  // As Divide takes them.
  // How the sums after o_proj and down_proj are sent.
  WireType wire = WireType::kF32;
};

// Joins the decoders of all ranks of a Collective.
class CollectiveLink final : public RankLink {
 public:
  // `collective` must outlive the link.
  CollectiveLink(Collective& collective, LinkOptions options);

  // If fewer candidates are needed of a row of logits, the other ranks send so many instead of
  // their whole part.
  static constexpr size_t kMaxCandidates = 512;
  // Bytes of a command, unless a long context or chunk takes more.
  static constexpr size_t kCommandBytes = 1024;

  Status TakePart(ModelFile& model) override;
  uint64_t MemoryBytes(const ModelConfig& config, const DecoderOptions& options) const override;
  Status Prepare(const ModelConfig& config, const DecoderOptions& options) override;
  Status BeginForward(const Batch& batch, const KvPages& pages,
                      std::span<const StateRun> states) override;
  Status BeginMove(const StoreMoves& moves) override;
  Status BeginLogits(size_t first, size_t rows) override;
  size_t num_ranks() const override { return collective_.num_ranks(); }
  Status Sum(std::span<float> values) override;
  Status NormalizeJointly(std::span<float> qkv, const float* bias, const float* q_norm,
                          const float* k_norm) override;
  Status GatherLogits(std::span<float> logits, size_t rows) override;
  size_t NumKeyValueHeads(const ops::KvCacheView&) const override {
    return shares_.back().key_value_heads.end;
  }
  std::unique_lock<std::mutex> HoldKvRows() override { return std::unique_lock(kv_rows_mutex_); }
  Status ExchangeKvRows(const KvRows& rows, const ops::KvCacheView& cache,
                        KvDirection direction) override;
  KvParts KvRowsOf(const KvRows& rows, const ops::KvCacheView& cache, size_t head) override {
    return kv_exchange_.RowsOf(rows, cache, head);
  }
  size_t NumStateElements(const StateSize& size) const override {
    return state_exchange_.NumWholeElements(size);
  }
  Status ExchangeState(const KeptState& state, const StateSize& size, std::span<float> own,
                       KvDirection direction) override;
  std::span<float> StateOf(std::span<float>) override { return state_exchange_.Whole(); }

  // On other ranks than rank 0: computes what that begins, until it stops.
  Status Follow(Decoder& decoder);
  // On rank 0: Follow returns on the others.
  Status Stop();

  // After TakePart: those of all ranks.
  std::span<const RankShare> shares() const { return shares_; }

 private:
  enum class Command : uint32_t { kForward, kMove, kLogits, kExchangeKv, kExchangeState, kStop };
  // A command is a message of this size, and a second one with the words that do not fit in.
  static constexpr size_t kFirstWords = kCommandBytes / sizeof(uint32_t);
  static constexpr size_t kHeadWords = 2;

  bool IsFirst() const { return collective_.rank() == 0; }
  // The largest command, in words.
  static size_t MaxWords(const ModelConfig& config, const DecoderOptions& options);
  // The candidates of a row that may be here: all ranks' on rank 0, otherwise the rank's own.
  size_t NumCandidates() const {
    return (IsFirst() ? collective_.num_ranks() : 1) * kMaxCandidates;
  }
  static size_t NumJointSums(const ModelConfig& config, const DecoderOptions& options);
  // What the exchange of states needs.
  size_t NumStateElements(const ModelConfig& config) const;
  // Rows of one page, of all heads on rank 0, otherwise of its own.
  uint64_t KvBytes(const ModelConfig& config, const DecoderOptions& options) const;
  // What Prepare allocates here.
  uint64_t OwnBytes(const ModelConfig& config, const DecoderOptions& options) const;
  // The memory that the collective needs.
  uint64_t SumBytes(const ModelConfig& config, const DecoderOptions& options) const;
  // Starts a command, of which Put adds the words and Send sends all.
  void Start() { num_words_ = 0; }
  void Put(size_t value) { words_[num_words_++] = static_cast<uint32_t>(value); }
  void Put(std::span<const uint32_t> values);
  Status Send(Command command);
  Result<Command> Receive();
  Status FollowForward(Decoder& decoder);
  void FollowMove(const Decoder& decoder) const;
  Status FollowState(const Decoder& decoder);

  // How many candidates of a row a rank sends; 0: all its logits.
  size_t NumSent(size_t rank) const;
  Status GatherRow(std::span<float> row);
  Status SendRow(std::span<const float> row);

  Collective& collective_;
  const LinkOptions options_;
  std::vector<RankShare> shares_;
  size_t hidden_size_ = 0;
  platform::PageBlock memory_;
  // Views of the memory, of which joint_norm_ and the exchanges have other parts.
  std::span<uint32_t> words_;  // [MaxWords]
  // What this rank sends, or on rank 0 what each other rank sends, kMaxCandidates each.
  std::span<LogitCandidate> candidates_;
  JointNorm joint_norm_;
  KvRowExchange kv_exchange_;
  StateExchange state_exchange_;
  std::mutex kv_rows_mutex_;
  std::array<uint32_t, kFirstWords> first_ = {};
  size_t num_words_ = 0;
  size_t num_candidates_ = 0;  // The batch's; 0: all.
  // With capacity for the largest batch, and one for each rank.
  std::vector<BatchRun> runs_;
  std::vector<SequenceShift> shifts_;
  std::vector<ops::KvPageTable> tables_;
  std::vector<std::span<std::byte>> received_;
};

}  // namespace cria::ranks
