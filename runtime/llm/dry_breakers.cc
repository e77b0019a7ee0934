#include "llm/dry_breakers.h"

#include <algorithm>
#include <utility>

#include "core/format.h"

namespace cria {
namespace {

Status CheckTexts(std::span<const std::string> texts) {
  if (texts.size() > DryBreakers::kMaxTexts) {
    return Fail(ErrorCode::kUsage,
                Format("dry_sequence_breakers has more than {} texts", DryBreakers::kMaxTexts));
  }
  for (const std::string& text : texts) {
    if (!text.empty() && text.size() <= DryBreakers::kMaxTextBytes) continue;
    return Fail(ErrorCode::kUsage, Format("dry_sequence_breakers has a text of {} bytes, but each "
                                          "must have 1 to {}",
                                          text.size(), DryBreakers::kMaxTextBytes));
  }
  return {};
}

}  // namespace

Result<DryBreakers> DryBreakers::Create(const Tokenizer& tokenizer,
                                        std::span<const std::string> texts) {
  CRIA_RETURN_IF_ERROR(CheckTexts(texts));
  DryBreakers breakers;
  const size_t vocab_size = tokenizer.vocab_size();
  breakers.single_.resize((vocab_size + 63) / 64);
  std::vector<size_t> first_tails;
  first_tails.reserve(texts.size());
  for (const std::string& text : texts) {
    first_tails.push_back(breakers.tails_.size());
    for (size_t begin = 1; begin < text.size(); ++begin) {
      CRIA_ASSIGN_OR_RETURN(Tail tail, tokenizer.Encode(text.substr(begin), {.add_bos = false}));
      tail.resize(std::min(tail.size(), kMaxTailTokens));
      breakers.tails_.push_back(std::move(tail));
    }
  }
  for (size_t id = 0; id < vocab_size; ++id) {
    const auto token = static_cast<int32_t>(id);
    for (size_t i = 0; i < texts.size(); ++i) {
      breakers.Add(tokenizer.Piece(token), token, texts[i], first_tails[i]);
    }
    if (breakers.sequences_.size() > kMaxSequences) {
      return Fail(
          ErrorCode::kUsage,
          Format("dry_sequence_breakers begin at the end of more than {} tokens; take fewer "
                 "or shorter texts",
                 kMaxSequences));
    }
  }
  breakers.sequences_.shrink_to_fit();
  return breakers;
}

void DryBreakers::Add(std::string_view piece, int32_t id, std::string_view text,
                      size_t first_tail) {
  if (piece.contains(text)) {
    single_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (static_cast<size_t>(id) % 64);
    return;
  }
  for (size_t begin = 1; begin < text.size(); ++begin) {
    if (!piece.ends_with(text.substr(0, begin))) continue;
    sequences_.push_back({id, static_cast<uint32_t>(first_tail + begin - 1)});
  }
}

bool DryBreakers::IsBreaker(int32_t token) const {
  const auto id = static_cast<size_t>(token);
  return id / 64 < single_.size() && (single_[id / 64] >> (id % 64) & 1) != 0;
}

size_t DryBreakers::CountBehind(std::span<const int32_t> tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t length = LengthAt(tokens, tokens.size() - 1 - i);
    if (length > 0) return i + 1 - length;
  }
  return tokens.size();
}

size_t DryBreakers::LengthAt(std::span<const int32_t> tokens, size_t at) const {
  size_t longest = IsBreaker(tokens[at]) ? 1 : 0;
  const std::span<const int32_t> rest = tokens.subspan(at + 1);
  for (const Sequence& sequence :
       std::ranges::equal_range(sequences_, tokens[at], {}, &Sequence::head)) {
    const Tail& tail = tails_[sequence.tail];
    const bool is_there =
        tail.size() <= rest.size() && std::ranges::equal(tail, rest.first(tail.size()));
    if (is_there) longest = std::max(longest, 1 + tail.size());
  }
  return longest;
}

}  // namespace cria
