#include "llm/constraint.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

namespace cria {
namespace {

// The bytes of a token that is text.
std::string_view TextPiece(const void* vocabulary, int32_t token) {
  const auto& known = *static_cast<const Vocabulary*>(vocabulary);
  const auto id = static_cast<size_t>(token);
  if (id >= known.size()) return {};
  switch (known.piece_types[id]) {
    case PieceType::kNormal:
    case PieceType::kUserDefined:
    case PieceType::kByte:
      return known.piece(id);
    case PieceType::kUnknown:
    case PieceType::kControl:
    case PieceType::kUnused:
      break;
  }
  return {};
}

bool HasBit(std::span<const uint64_t> words, int32_t id) {
  const auto index = static_cast<size_t>(id);
  return index / 64 < words.size() && (words[index / 64] >> (index % 64) & 1) != 0;
}

// Takes one of what is left.
bool TakeOne(std::atomic<size_t>& num_left) {
  size_t left = num_left;
  while (left > 0) {
    if (num_left.compare_exchange_weak(left, left - 1)) return true;
  }
  return false;
}

}  // namespace

uint64_t ConstraintTokens::MemoryBytes(size_t vocab_size) {
  return grammar::TokenTable::MemoryBytes(vocab_size);
}

Result<std::unique_ptr<ConstraintTokens>> ConstraintTokens::Create(const Vocabulary& vocabulary,
                                                                   size_t vocab_size,
                                                                   size_t max_constraints) {
  if (vocab_size > grammar::TokenTable::kMaxTokens) {
    return Fail(ErrorCode::kUnsupported, "the vocabulary is too large for constraints");
  }
  CRIA_ASSIGN_OR_RETURN(platform::PageBlock memory,
                        platform::PageBlock::Allocate(MemoryBytes(vocab_size)));
  return std::unique_ptr<ConstraintTokens>(
      new ConstraintTokens(std::move(memory), vocabulary, vocab_size, max_constraints));
}

ConstraintTokens::ConstraintTokens(platform::PageBlock memory, const Vocabulary& vocabulary,
                                   size_t vocab_size, size_t max_constraints)
    : vocab_size_(vocab_size),
      memory_(std::move(memory)),
      table_(memory_.bytes(), vocab_size, {TextPiece, &vocabulary, vocabulary.sorted_ids}),
      num_left_(max_constraints) {}

uint64_t Constraint::MemoryBytes(size_t vocab_size) {
  return sizeof(Constraint) + grammar::Matcher::MemoryBytes(vocab_size);
}

Result<std::unique_ptr<Constraint>> Constraint::Create(ConstraintTokens& tokens) {
  if (!TakeOne(tokens.num_left_)) {
    return Fail(ErrorCode::kOutOfMemory, "all constraints that the model was loaded for are in use",
                RemedyKind::kMoreConstraints);
  }
  Result<platform::PageBlock> memory =
      platform::PageBlock::Allocate(grammar::Matcher::MemoryBytes(tokens.vocab_size_));
  if (!memory) {
    ++tokens.num_left_;
    return std::unexpected(std::move(memory.error()));
  }
  return std::unique_ptr<Constraint>(new Constraint(std::move(*memory), tokens));
}

Constraint::Constraint(platform::PageBlock memory, ConstraintTokens& tokens)
    : tokens_(tokens), memory_(std::move(memory)), matcher_(memory_.bytes(), tokens.table_) {}

Constraint::~Constraint() { ++tokens_.num_left_; }

Status Constraint::Set(const grammar::ConstraintSource& source) {
  std::unique_lock<std::mutex> turn(tokens_.reading_, std::defer_lock);
  if (!matcher_.Has(source)) turn.lock();
  return matcher_.Compile(source);
}

Result<Constraint::Next> Constraint::FindNext(std::span<const int32_t> stop_token_ids,
                                              size_t max_tokens) {
  CRIA_ASSIGN_OR_RETURN(const grammar::AllowedTokens allowed, matcher_.Allowed(max_tokens));
  // A stop token that is also text ends the text all the same.
  const bool is_stop = std::ranges::contains(stop_token_ids, allowed.single);
  return Next{.mask = {allowed.words, stop_token_ids, allowed.may_end},
              .forced = is_stop ? -1 : allowed.single,
              .is_over = allowed.may_end && allowed.count == 0};
}

bool Constraint::IsComplete() const { return matcher_.IsComplete(); }

size_t Constraint::CountAllowed(std::span<const int32_t> drafts, size_t max_tokens) {
  size_t count = 0;
  for (const int32_t draft : drafts) {
    const auto allowed = matcher_.Allowed(max_tokens - count);
    if (!allowed || !HasBit(allowed->words, draft) || !matcher_.Accept(draft)) break;
    ++count;
  }
  matcher_.Rewind(count);
  return count;
}

Status Constraint::Accept(int32_t token) {
  CRIA_RETURN_IF_ERROR(matcher_.Accept(token));
  matcher_.Commit();
  return {};
}

}  // namespace cria
