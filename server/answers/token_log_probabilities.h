#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace cria::server {

// Keeps the most likely tokens of each place of a context until the token of that place is handed
// out: drafts are chosen ahead.
class TokenLogProbabilities {
 public:
  using MostLikely = std::vector<std::pair<int32_t, double>>;

  // How many of each place; 0: none.
  void set_count(size_t count) { count_ = count; }
  size_t count() const { return count_; }

  // Notes the logits, [vocab_size], from which the token at `position` is chosen.
  void Add(size_t position, std::span<const float> logits);
  // The most likely first; nothing if no token was chosen there.
  MostLikely Take(size_t position);

 private:
  struct Place {
    size_t position;
    MostLikely most_likely;
  };

  size_t count_ = 0;
  std::deque<Place> places_;
};

}  // namespace cria::server
