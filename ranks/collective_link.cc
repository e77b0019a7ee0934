#include "ranks/collective_link.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/arena.h"
#include "ranks/model_part.h"
#include "ranks/wire_format.h"

namespace cria::ranks {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();
constexpr size_t kForwardWords = 3;  // Before the tokens.
constexpr size_t kRunWords = 6;
constexpr size_t kMoveWords = sizeof(PageMove) / sizeof(uint32_t);
constexpr size_t kCopyWords = sizeof(StateCopy) / sizeof(uint32_t);
constexpr size_t kStateWords = sizeof(StateRun) / sizeof(uint32_t);
static_assert(sizeof(PageMove) == 8 * sizeof(uint32_t));
static_assert(sizeof(StateCopy) == 2 * sizeof(uint32_t));
static_assert(sizeof(StateRun) == 5 * sizeof(uint32_t));

// The words of structures that have nothing else.
template <typename T>
std::span<const uint32_t> WordsOf(std::span<const T> values) {
  return {reinterpret_cast<const uint32_t*>(values.data()), values.size_bytes() / sizeof(uint32_t)};
}

template <typename T>
std::span<const T> FromWords(std::span<const uint32_t> words) {
  return {reinterpret_cast<const T*>(words.data()), words.size_bytes() / sizeof(T)};
}

// As the sampler orders them.
bool IsMoreLikely(const LogitCandidate& a, const LogitCandidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token_id < b.token_id);
}

// The largest logits, in no order. Those that are no numbers are left out; if there are too few,
// the rest is impossible.
void FindCandidates(std::span<const float> logits, size_t first_id,
                    std::span<LogitCandidate> found) {
  size_t size = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const LogitCandidate candidate = {logits[i], static_cast<int32_t>(first_id + i)};
    if (std::isnan(candidate.logit)) continue;
    if (size < found.size()) {
      found[size++] = candidate;
      if (size == found.size()) std::ranges::make_heap(found, IsMoreLikely);
    } else if (IsMoreLikely(candidate, found.front())) {
      std::ranges::pop_heap(found, IsMoreLikely);
      found.back() = candidate;
      std::ranges::push_heap(found, IsMoreLikely);
    }
  }
  for (; size < found.size(); ++size) found[size] = {kImpossible, static_cast<int32_t>(first_id)};
}

}  // namespace

CollectiveLink::CollectiveLink(Collective& collective, LinkOptions options)
    : collective_(collective), options_(std::move(options)) {}

Status CollectiveLink::TakePart(ModelFile& model) {
  CRIA_ASSIGN_OR_RETURN(shares_, Divide(model.config(), ColumnBlocks::Of(model), options_.weights));
  return ModelPart::Take(shares_[collective_.rank()], collective_.rank(), model);
}

size_t CollectiveLink::MaxWords(const ModelConfig& config, const DecoderOptions& options) {
  const DecoderOptions effective = EffectiveOptions(options);
  const KvPages::Shape shape = ShapeOfKvPages(config, effective);
  const std::vector<KvPageGroup::Shape> groups = KvPages::Groups(shape);
  const size_t table_words = 1 + NumKvPages(shape.sequence_tokens);
  const size_t forward_words =
      kForwardWords + effective.chunk_tokens +
      effective.num_sequences * (kRunWords + kStateWords + groups.size() * table_words);
  size_t num_moves = 0;
  for (const KvPageGroup::Shape& group : groups) num_moves += KvPageGroup::MaxMoves(group);
  // One copy at most is left at a time.
  return std::max(forward_words, 1 + kCopyWords + num_moves * kMoveWords);
}

uint64_t CollectiveLink::MemoryBytes(const ModelConfig& config,
                                     const DecoderOptions& options) const {
  return SumBytes(config, options) + OwnBytes(config, options);
}

uint64_t CollectiveLink::OwnBytes(const ModelConfig& config, const DecoderOptions& options) const {
  return NumCandidates() * sizeof(LogitCandidate) + MaxWords(config, options) * sizeof(uint32_t) +
         (NumJointSums(config, options) + NumStateElements(config)) * sizeof(float) +
         KvBytes(config, options);
}

uint64_t CollectiveLink::KvBytes(const ModelConfig& config, const DecoderOptions& options) const {
  const size_t heads = IsFirst() ? shares_.back().key_value_heads.end : config.num_key_value_heads;
  return KvRowExchange::MemoryBytes(heads, config.head_dim, options.kv_type);
}

size_t CollectiveLink::NumStateElements(const ModelConfig& config) const {
  return StateExchange::NumElements(config, shares_, collective_.rank());
}

size_t CollectiveLink::NumJointSums(const ModelConfig& config, const DecoderOptions& options) {
  return config.joint_qk_norm ? JointNorm::NumSums(EffectiveOptions(options).chunk_tokens) : 0;
}

uint64_t CollectiveLink::SumBytes(const ModelConfig& config, const DecoderOptions& options) const {
  const size_t rows = EffectiveOptions(options).chunk_tokens;
  return std::max(collective_.MemoryBytes(rows * config.hidden_size, options_.wire),
                  collective_.MemoryBytes(NumJointSums(config, options), WireType::kF32));
}

Status CollectiveLink::Prepare(const ModelConfig& config, const DecoderOptions& options) {
  const DecoderOptions effective = EffectiveOptions(options);
  hidden_size_ = config.hidden_size;
  CRIA_RETURN_IF_ERROR(collective_.Reserve(SumBytes(config, options)));
  CRIA_ASSIGN_OR_RETURN(memory_, platform::PageBlock::Allocate(OwnBytes(config, options)));
  std::span<std::byte> rest = memory_.bytes();
  candidates_ = TakeArray<LogitCandidate>(rest, NumCandidates());
  words_ = TakeArray<uint32_t>(rest, MaxWords(config, options));
  joint_norm_ = JointNorm(config, shares_, collective_.rank(),
                          TakeArray<float>(rest, NumJointSums(config, options)));
  state_exchange_ =
      StateExchange(collective_, shares_, TakeArray<float>(rest, NumStateElements(config)));
  kv_exchange_ =
      KvRowExchange(collective_, shares_, TakeArray<std::byte>(rest, KvBytes(config, options)));
  runs_.reserve(effective.num_sequences);
  shifts_.reserve(effective.num_sequences);
  tables_.reserve(effective.num_sequences *
                  KvPages::Groups(ShapeOfKvPages(config, effective)).size());
  received_.resize(IsFirst() ? collective_.num_ranks() : 0);
  return {};
}

void CollectiveLink::Put(std::span<const uint32_t> values) {
  std::ranges::copy(values, words_.subspan(num_words_).begin());
  num_words_ += values.size();
}

Status CollectiveLink::Send(Command command) {
  first_[0] = static_cast<uint32_t>(command);
  first_[1] = static_cast<uint32_t>(num_words_);
  const size_t count = std::min(num_words_, kFirstWords - kHeadWords);
  std::copy_n(words_.begin(), count, first_.begin() + kHeadWords);
  CRIA_RETURN_IF_ERROR(collective_.Broadcast(std::as_writable_bytes(std::span(first_))));
  if (count == num_words_) return {};
  const std::span<uint32_t> rest = words_.first(num_words_).subspan(count);
  return collective_.Broadcast(std::as_writable_bytes(rest));
}

Result<CollectiveLink::Command> CollectiveLink::Receive() {
  collective_.Enter(RankPhase::kIdle);
  CRIA_RETURN_IF_ERROR(collective_.Broadcast(std::as_writable_bytes(std::span(first_))));
  collective_.Enter(RankPhase::kComputing);
  num_words_ = first_[1];
  if (num_words_ > words_.size()) {
    return Fail(ErrorCode::kInternal, "rank 0 sent a larger command than was reserved");
  }
  const size_t count = std::min(num_words_, kFirstWords - kHeadWords);
  std::copy_n(first_.begin() + kHeadWords, count, words_.begin());
  if (count < num_words_) {
    const std::span<uint32_t> rest = words_.first(num_words_).subspan(count);
    CRIA_RETURN_IF_ERROR(collective_.Broadcast(std::as_writable_bytes(rest)));
  }
  return static_cast<Command>(first_[0]);
}

Status CollectiveLink::BeginForward(const Batch& batch, const KvPages& pages,
                                    std::span<const StateRun> states) {
  if (!IsFirst()) return {};
  num_candidates_ = 0;
  bool needs_all = false;
  for (const BatchRun& run : batch.runs) {
    needs_all = needs_all || (run.num_logits > 0 && run.num_candidates == 0);
    num_candidates_ = std::max(num_candidates_, run.num_candidates);
  }
  if (needs_all || num_candidates_ > kMaxCandidates) num_candidates_ = 0;
  Start();
  Put(num_candidates_);
  Put(batch.tokens.size());
  Put(batch.runs.size());
  Put(WordsOf(batch.tokens));
  for (const BatchRun& run : batch.runs) {
    Put(run.sequence);
    Put(run.first_position);
    Put(run.num_tokens);
    Put(run.num_logits);
    const SequenceShift& shift = pages.shift(run.sequence);
    Put(shift.first);
    Put(shift.distance);
    for (size_t group = 0; group < pages.num_groups(); ++group) {
      const std::span<const uint32_t> table = pages.Table(run.sequence, group).pages;
      Put(table.size());
      Put(table);
    }
  }
  Put(WordsOf(states));
  return Send(Command::kForward);
}

Status CollectiveLink::FollowForward(Decoder& decoder) {
  std::span<uint32_t> rest = words_.first(num_words_);
  const auto take = [&rest](size_t count) {
    const std::span<uint32_t> taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
  };
  num_candidates_ = take(1).front();
  const size_t num_tokens = take(1).front();
  const size_t num_runs = take(1).front();
  const std::span<uint32_t> tokens = take(num_tokens);
  runs_.clear();
  shifts_.clear();
  tables_.clear();
  for (size_t i = 0; i < num_runs; ++i) {
    const std::span<uint32_t> run = take(kRunWords);
    runs_.push_back(
        {.sequence = run[0], .first_position = run[1], .num_tokens = run[2], .num_logits = run[3]});
    shifts_.push_back({.first = run[4], .distance = run[5]});
    for (size_t group = 0; group < decoder.sequences().pages().num_groups(); ++group) {
      tables_.push_back({take(take(1).front())});
    }
  }
  return decoder.ComputePlaced({FromWords<int32_t>(tokens), runs_}, shifts_, tables_,
                               FromWords<StateRun>(rest));
}

Status CollectiveLink::BeginMove(const StoreMoves& moves) {
  if (!IsFirst()) return {};
  Start();
  Put(moves.states.size());
  Put(WordsOf(moves.states));
  Put(WordsOf(moves.pages));
  return Send(Command::kMove);
}

void CollectiveLink::FollowMove(const Decoder& decoder) const {
  const std::span<const uint32_t> rest = words_.first(num_words_).subspan(1);
  const size_t copy_words = words_.front() * kCopyWords;
  decoder.CarryOut({.pages = FromWords<PageMove>(rest.subspan(copy_words)),
                    .states = FromWords<StateCopy>(rest.first(copy_words))});
}

Status CollectiveLink::BeginLogits(size_t first, size_t rows) {
  if (!IsFirst()) return {};
  Start();
  Put(first);
  Put(rows);
  return Send(Command::kLogits);
}

Status CollectiveLink::ExchangeKvRows(const KvRows& rows, const ops::KvCacheView& cache,
                                      KvDirection direction) {
  Start();
  Put(rows.layer);
  Put(rows.first_row);
  Put(rows.num_rows);
  Put(static_cast<size_t>(direction));
  CRIA_RETURN_IF_ERROR(Send(Command::kExchangeKv));
  return kv_exchange_.Exchange(rows, cache, direction);
}

Status CollectiveLink::ExchangeState(const KeptState& state, const StateSize& size,
                                     std::span<float> own, KvDirection direction) {
  Start();
  Put(state.layer);
  Put(state.place);
  Put(state.num_rows);
  Put(static_cast<size_t>(direction));
  CRIA_RETURN_IF_ERROR(Send(Command::kExchangeState));
  return state_exchange_.Exchange(size, own, direction);
}

Status CollectiveLink::FollowState(const Decoder& decoder) {
  const KeptState state = {.layer = words_[0], .place = words_[1], .num_rows = words_[2]};
  return state_exchange_.Exchange(decoder.states().layer(state.layer).size,
                                  decoder.StateAfter(state, state_exchange_.Scratch()),
                                  static_cast<KvDirection>(words_[3]));
}

Status CollectiveLink::Follow(Decoder& decoder) {
  while (true) {
    CRIA_ASSIGN_OR_RETURN(const Command command, Receive());
    switch (command) {
      case Command::kForward:
        CRIA_RETURN_IF_ERROR(FollowForward(decoder));
        break;
      case Command::kMove:
        FollowMove(decoder);
        break;
      case Command::kLogits:
        CRIA_RETURN_IF_ERROR(decoder.ComputeLogits(words_[0], words_[1]));
        break;
      case Command::kExchangeKv:
        CRIA_RETURN_IF_ERROR(kv_exchange_.Exchange({words_[0], words_[1], words_[2]},
                                                   decoder.cache().layer(words_[0]).view,
                                                   static_cast<KvDirection>(words_[3])));
        break;
      case Command::kExchangeState:
        CRIA_RETURN_IF_ERROR(FollowState(decoder));
        break;
      case Command::kStop:
        return {};
    }
  }
}

Status CollectiveLink::Stop() {
  Start();
  return Send(Command::kStop);
}

Status CollectiveLink::Sum(std::span<float> values) {
  if (options_.wire == WireType::kF32 || hidden_size_ % kWireBlockValues == 0) {
    return collective_.Sum(values, options_.wire);
  }
  // A block with numbers of two rows would be rounded differently from those of one.
  for (; !values.empty(); values = values.subspan(hidden_size_)) {
    CRIA_RETURN_IF_ERROR(collective_.Sum(values.first(hidden_size_), options_.wire));
  }
  return {};
}

Status CollectiveLink::NormalizeJointly(std::span<float> qkv, const float* bias,
                                        const float* q_norm, const float* k_norm) {
  return joint_norm_.Normalize(qkv, bias, q_norm, k_norm, collective_);
}

size_t CollectiveLink::NumSent(size_t rank) const {
  return std::min(num_candidates_, shares_[rank].vocabulary.size());
}

Status CollectiveLink::GatherLogits(std::span<float> logits, size_t rows) {
  const size_t own = shares_[collective_.rank()].vocabulary.size();
  if (!IsFirst()) {
    for (size_t row = 0; row < rows; ++row) {
      CRIA_RETURN_IF_ERROR(SendRow(logits.subspan(row * own, own)));
    }
    return {};
  }
  const size_t vocab_size = shares_.back().vocabulary.end;
  // From the last one on, because whole rows are longer.
  for (size_t row = rows; row-- > 1;) {
    std::memmove(&logits[row * vocab_size], &logits[row * own], own * sizeof(float));
  }
  for (size_t row = 0; row < rows; ++row) {
    CRIA_RETURN_IF_ERROR(GatherRow(logits.subspan(row * vocab_size, vocab_size)));
  }
  return {};
}

Status CollectiveLink::SendRow(std::span<const float> row) {
  if (num_candidates_ == 0) return collective_.Gather(std::as_bytes(row), {});
  const size_t rank = collective_.rank();
  const std::span<LogitCandidate> found = candidates_.first(NumSent(rank));
  FindCandidates(row, shares_[rank].vocabulary.begin, found);
  return collective_.Gather(std::as_bytes(found), {});
}

Status CollectiveLink::GatherRow(std::span<float> row) {
  const auto candidates_of = [this](size_t rank) {
    return candidates_.subspan(rank * kMaxCandidates, NumSent(rank));
  };
  for (size_t rank = 1; rank < shares_.size(); ++rank) {
    const Range& part = shares_[rank].vocabulary;
    received_[rank] = num_candidates_ == 0
                          ? std::as_writable_bytes(row.subspan(part.begin, part.size()))
                          : std::as_writable_bytes(candidates_of(rank));
  }
  CRIA_RETURN_IF_ERROR(collective_.Gather({}, received_));
  if (num_candidates_ == 0) return {};
  std::ranges::fill(row.subspan(shares_.front().vocabulary.end), kImpossible);
  for (size_t rank = 1; rank < shares_.size(); ++rank) {
    for (const LogitCandidate& candidate : candidates_of(rank)) {
      row[static_cast<size_t>(candidate.token_id)] = candidate.logit;
    }
  }
  return {};
}

}  // namespace cria::ranks
