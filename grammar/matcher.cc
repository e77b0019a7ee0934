#include "grammar/matcher.h"

#include <algorithm>

#include "core/format.h"

namespace cria::grammar {
namespace {

// How many masks are kept, besides one that is not.
constexpr size_t kKeptMasks = 32;
// Masks beyond two take no more than this part of a small memory.
constexpr size_t kMasksPart = 4;
// Sizes within the memory are multiples of this.
constexpr size_t kAlignment = 8;

size_t MasksBytes(size_t memory_bytes, size_t vocab_size) {
  const size_t mask_bytes = std::max(TokenMasks::MaskBytes(vocab_size), kAlignment);
  const size_t count =
      std::clamp<size_t>(memory_bytes / kMasksPart / mask_bytes, 2, kKeptMasks + 1);
  return std::min(count * mask_bytes, memory_bytes);
}

}  // namespace

size_t Matcher::MemoryBytes(size_t vocab_size) {
  return kDefaultMemoryBytes + (kKeptMasks + 1) * TokenMasks::MaskBytes(vocab_size);
}

Matcher::Matcher(std::span<std::byte> memory, const TokenTable& tokens)
    : tokens_(tokens),
      masks_(memory.first(MasksBytes(memory.size(), tokens.vocab_size())), tokens),
      memory_(memory.subspan(MasksBytes(memory.size(), tokens.vocab_size()))) {}

Status Matcher::Compile(const ConstraintSource& source) { return Compile(source, ReadConstraint); }

bool Matcher::IsSame(const ConstraintSource& source, Reader reader) const {
  return source_ && source_->kind == source.kind && source_->text == source.text &&
         reader_ == reader;
}

Status Matcher::Compile(const ConstraintSource& source, Reader reader) {
  if (!IsSame(source, reader)) {
    source_.reset();
    CRIA_RETURN_IF_ERROR(CompileAnew(source, reader));
  }
  Restart();
  return {};
}

Status Matcher::CompileAnew(const ConstraintSource& source, Reader reader) {
  const size_t text_bytes = (source.text.size() + kAlignment - 1) / kAlignment * kAlignment;
  if (!masks_.HasMemory() || text_bytes > memory_.size() / 2) {
    return Fail(ErrorCode::kOutOfMemory,
                Format("a constraint of {} bytes needs more than the {} bytes of memory for "
                       "constraints; make it simpler",
                       source.text.size(), memory_.size()));
  }
  std::ranges::copy(std::as_bytes(std::span(source.text)), memory_.begin());
  // Many states come from few expressions, but large constraints have few states.
  const std::span<std::byte> rest = memory_.subspan(text_bytes);
  const size_t expressions_bytes = rest.size() * 5 / 8 / kAlignment * kAlignment;
  Expressions& expressions = expressions_.emplace(rest.first(expressions_bytes));
  CRIA_ASSIGN_OR_RETURN(const Node start, reader(expressions, source));
  CRIA_RETURN_IF_ERROR(expressions.Finish(start));
  automaton_ = Automaton(rest.subspan(expressions_bytes), &expressions);
  masks_.Clear();
  CRIA_RETURN_IF_ERROR(automaton_.Begin(start));
  source_ = {.kind = source.kind,
             .text = {reinterpret_cast<const char*>(memory_.data()), source.text.size()}};
  reader_ = reader;
  return {};
}

void Matcher::Restart() {
  position_ = 0;
  path_[0] = Automaton::kFirst;
}

Result<AllowedTokens> Matcher::Allowed(size_t remaining_tokens) {
  if (!source_) return Fail(ErrorCode::kUsage, "there is no constraint");
  expressions_->BeginWork();
  const std::span<Automaton::State> path(path_.data(), position_ + 1);
  CRIA_ASSIGN_OR_RETURN(const TokenMasks::Mask* mask, masks_.Find(automaton_, path));
  const bool may_end = IsComplete();
  const size_t after = std::max<size_t>(remaining_tokens, 1) - 1;
  const auto max_rest = static_cast<uint32_t>(std::min<size_t>(after, NodeStore::kMaxRest));
  if (mask->count == 0 && !may_end) {
    return Fail(
        ErrorCode::kUnsupported,
        "no token of the model's vocabulary goes on with the text as the constraint demands");
  }
  if (mask->max_rest > max_rest) {
    // The shortest way, if no way is short enough.
    const uint32_t within = may_end ? max_rest : std::max(max_rest, mask->min_rest);
    CRIA_ASSIGN_OR_RETURN(mask, masks_.FindWithin(automaton_, path, within));
  }
  return AllowedTokens{.words = mask->words,
                       .may_end = may_end,
                       .count = mask->count,
                       .single = mask->count == 1 && !may_end ? mask->last : -1};
}

Status Matcher::Accept(int32_t token) {
  if (!source_) return Fail(ErrorCode::kUsage, "there is no constraint");
  if (position_ == kMaxAhead) {
    return Fail(ErrorCode::kInternal, Format("more than {} tokens were accepted ahead", kMaxAhead));
  }
  expressions_->BeginWork();
  const std::string_view piece = tokens_.Piece(token);
  Automaton::State state = piece.empty() ? Automaton::kDead : path_[position_];
  size_t length = position_ + 1;
  for (size_t i = 0; i < piece.size() && state != Automaton::kDead; ++i) {
    CRIA_RETURN_IF_ERROR(automaton_.Step({path_.data(), ++length}, static_cast<uint8_t>(piece[i])));
    state = path_[length - 1];
  }
  if (state == Automaton::kDead) {
    return Fail(ErrorCode::kInternal, Format("the constraint does not allow token {}", token));
  }
  path_[++position_] = state;
  return {};
}

void Matcher::Rewind(size_t count) { position_ -= std::min(count, position_); }

void Matcher::Commit() {
  path_[0] = path_[position_];
  position_ = 0;
}

}  // namespace cria::grammar
