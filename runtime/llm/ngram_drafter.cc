#include "llm/ngram_drafter.h"

#include <algorithm>
#include <bit>

namespace cria {
namespace {

// Twice as many entries as n-grams, so that few of them collide.
size_t TableSize(size_t context_tokens) {
  return std::bit_ceil(2 * std::max<size_t>(context_tokens, 1));
}

}  // namespace

uint64_t NgramDrafter::MemoryBytes(size_t context_tokens) {
  return TableSize(context_tokens) * sizeof(uint32_t);
}

NgramDrafter::NgramDrafter(size_t ngram_tokens, size_t context_tokens)
    : ngram_tokens_(ngram_tokens), table_(TableSize(context_tokens)) {}

NgramDrafter::Draft NgramDrafter::Find(std::span<const int32_t> context,
                                       std::span<int32_t> tokens) {
  const size_t length = context.size();
  if (tokens.empty() || length <= ngram_tokens_) return {};
  num_indexed_ = std::max(num_indexed_, ngram_tokens_ - 1);
  for (; num_indexed_ + 1 < length; ++num_indexed_) {
    Entry(context, num_indexed_ + 1) = static_cast<uint32_t>(num_indexed_ + 1);
  }
  uint32_t& entry = Entry(context, length);
  size_t source = entry < length ? entry : 0;
  size_t match = MatchTokens(context, source);
  // A text that is repeated goes on where it was repeated so far, even if its last tokens occurred
  // elsewhere since.
  const size_t next_source = last_source_ + (length - std::min(length, last_length_));
  if (last_source_ != 0 && next_source < length) {
    const size_t next_match = MatchTokens(context, next_source);
    if (next_match >= match) {
      source = next_source;
      match = next_match;
    }
  }
  entry = static_cast<uint32_t>(length);
  num_indexed_ = std::max(num_indexed_, length);
  if (match < ngram_tokens_) {
    last_source_ = 0;
    return {};
  }
  last_source_ = source;
  last_length_ = length;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t position = source + i;
    tokens[i] = position < length ? context[position] : tokens[position - length];
  }
  return {.num_tokens = tokens.size(), .match_tokens = match};
}

uint32_t& NgramDrafter::Entry(std::span<const int32_t> context, size_t end) {
  // FNV-1a over whole tokens; the best bits of a product are the upper ones.
  uint64_t hash = 0xCBF29CE484222325u;
  for (const int32_t token : context.subspan(end - ngram_tokens_, ngram_tokens_)) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x100000001B3u;
  }
  hash *= 0x9E3779B97F4A7C15u;
  return table_[hash >> (64 - std::countr_zero(table_.size()))];
}

size_t NgramDrafter::MatchTokens(std::span<const int32_t> context, size_t source) {
  const size_t limit = std::min(source, kMaxMatchTokens);
  size_t match = 0;
  while (match < limit && context[source - 1 - match] == context[context.size() - 1 - match]) {
    ++match;
  }
  return match;
}

}  // namespace cria
