#include "server/prompts/prompt_index.h"

#include <algorithm>

#include "llm/common_beginning.h"
#include "server/prompts/prompt_bounds.h"

namespace cria::server {

PromptIndex::Name PromptIndex::NameOf(std::span<const int32_t> tokens) {
  return Digest128(std::as_bytes(tokens));
}

PromptIndex::PromptIndex(const Bounds& bounds, bool needs_whole)
    : bounds_(bounds), needs_whole_(needs_whole) {
  static_assert(sizeof(Text) <= kPromptEntryBytes);
  texts_.reserve(bounds.texts);
  tokens_.reserve(bounds.tokens);
}

std::span<const int32_t> PromptIndex::TokensOf(const Text& text) const {
  return std::span(tokens_).subspan(text.first_token, text.num_tokens);
}

size_t PromptIndex::Usable(const Text& text, std::span<const int32_t> tokens) const {
  const size_t common = CommonBeginning(TokensOf(text), tokens);
  if (common == text.num_tokens) return common;
  return needs_whole_ ? 0 : common;
}

PromptIndex::Found PromptIndex::Find(std::span<const int32_t> tokens) const {
  Found found;
  for (const Text& text : texts_) {
    if (!text.is_ready) continue;
    const size_t usable = Usable(text, tokens);
    if (usable <= found.num_usable) continue;
    found = {.name = text.name, .num_tokens = text.num_tokens, .num_usable = usable};
  }
  return found;
}

bool PromptIndex::Wants(std::span<const int32_t> tokens) const {
  if (tokens.size() > bounds_.tokens) return false;
  size_t known = 0;
  for (const Text& text : texts_) known = std::max(known, Usable(text, tokens));
  const size_t num_new = tokens.size() - known;
  return num_new >= kMinNewTokens && 4 * num_new >= tokens.size();
}

std::optional<PromptIndex::Name> PromptIndex::NextToRemove(size_t num_tokens,
                                                           uint64_t bytes) const {
  const bool has_room = texts_.size() < bounds_.texts &&
                        tokens_.size() + num_tokens <= bounds_.tokens &&
                        bytes_ + bytes <= bounds_.bytes;
  if (has_room) return std::nullopt;
  const auto oldest = std::ranges::min_element(texts_, {}, [](const Text& text) {
    // What is being written goes last.
    return text.is_ready ? text.last_use : UINT64_MAX;
  });
  if (oldest == texts_.end() || !oldest->is_ready) return std::nullopt;
  return oldest->name;
}

std::optional<PromptIndex::Name> PromptIndex::NextCovered(const Name& name) const {
  const auto longer = std::ranges::find(texts_, name, &Text::name);
  if (longer == texts_.end() || needs_whole_) return std::nullopt;
  for (const Text& text : texts_) {
    if (&text == &*longer || !text.is_ready || text.num_tokens > longer->num_tokens) continue;
    if (std::ranges::equal(TokensOf(text), TokensOf(*longer).first(text.num_tokens))) {
      return text.name;
    }
  }
  return std::nullopt;
}

void PromptIndex::Add(const Name& name, std::span<const int32_t> tokens, uint64_t bytes,
                      bool is_ready) {
  Remove(name);
  texts_.push_back({.name = name,
                    .first_token = tokens_.size(),
                    .num_tokens = tokens.size(),
                    .bytes = bytes,
                    .last_use = ++num_uses_,
                    .is_ready = is_ready});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  bytes_ += bytes;
}

void PromptIndex::SetReady(const Name& name) {
  const auto text = std::ranges::find(texts_, name, &Text::name);
  if (text != texts_.end()) text->is_ready = true;
}

void PromptIndex::Use(const Name& name) {
  const auto text = std::ranges::find(texts_, name, &Text::name);
  if (text != texts_.end()) text->last_use = ++num_uses_;
}

void PromptIndex::Remove(const Name& name) {
  const auto text = std::ranges::find(texts_, name, &Text::name);
  if (text == texts_.end()) return;
  const Text removed = *text;
  texts_.erase(text);
  const auto first = tokens_.begin() + static_cast<ptrdiff_t>(removed.first_token);
  tokens_.erase(first, first + static_cast<ptrdiff_t>(removed.num_tokens));
  bytes_ -= removed.bytes;
  for (Text& other : texts_) {
    if (other.first_token > removed.first_token) other.first_token -= removed.num_tokens;
  }
}

bool PromptIndex::Contains(const Name& name) const {
  return std::ranges::contains(texts_, name, &Text::name);
}

}  // namespace cria::server
