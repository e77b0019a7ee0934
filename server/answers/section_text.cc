#include "server/answers/section_text.h"

#include <algorithm>

namespace cria::server {

void SectionText::Begin(size_t context_tokens) {
  begin_tokens_ = context_tokens;
  text_.clear();
  token_ends_.clear();
}

void SectionText::AddToken(std::string_view text) {
  text_ += text;
  token_ends_.push_back(text_.size());
}

SectionText::Cut SectionText::CutAt(size_t place, size_t context_tokens) const {
  const size_t kept = std::min(TokensBefore(place), context_tokens - begin_tokens_);
  const size_t kept_bytes = kept == 0 ? 0 : token_ends_[kept - 1];
  return {.context_tokens = begin_tokens_ + kept,
          .dropped_tokens = token_ends_.size() - kept,
          .rest = std::string_view(text_).substr(kept_bytes, place - kept_bytes)};
}

size_t SectionText::BeginAt(size_t place) {
  const size_t before = TokensBefore(place);
  const size_t begin = before == 0 ? 0 : token_ends_[before - 1];
  begin_tokens_ += before;
  token_ends_.erase(token_ends_.begin(), token_ends_.begin() + static_cast<ptrdiff_t>(before));
  for (size_t& end : token_ends_) end -= begin;
  text_.erase(0, begin);
  return place - begin;
}

size_t SectionText::TokensBefore(size_t place) const {
  return static_cast<size_t>(std::ranges::upper_bound(token_ends_, place) - token_ends_.begin());
}

}  // namespace cria::server
