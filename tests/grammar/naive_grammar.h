#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/expressions.h"

namespace cria::grammar {

// A grammar as a tree, which decides by trying every way whether a short text matches: the
// reference for expressions.
struct NaiveGrammar {
  enum class Kind : uint8_t { kEmpty, kBytes, kSequence, kChoice, kRepeat, kBoth, kNot, kRule };
  struct Tree {
    Kind kind = Kind::kEmpty;
    ByteSet bytes = {};
    std::vector<Tree> parts = {};
    uint32_t min = 0, max = 0;
    size_t rule = 0;
  };

  std::vector<Tree> rules = {};  // The first one is the start.

  bool Matches(std::string_view text) const;
  Node Build(Expressions& expressions) const;
  std::string ToString() const;
};

// A grammar over the first `num_letters` of the alphabet; its complements match all others, too.
// Rules refer to others only behind a letter, so that none is left-recursive.
NaiveGrammar RandomGrammar(std::mt19937& random, size_t num_rules, unsigned num_letters);

// All texts over these letters of at most so many bytes, the shortest first.
std::vector<std::string> AllTexts(unsigned num_letters, size_t max_bytes);

}  // namespace cria::grammar
