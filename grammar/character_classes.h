#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/characters.h"

namespace cria::grammar {

// A set of code points.
class CharacterSet {
 public:
  CharacterSet() = default;
  explicit CharacterSet(std::span<const CodePointRange> ranges)
      : ranges_(ranges.begin(), ranges.end()) {}

  void Add(uint32_t first, uint32_t last) { ranges_.push_back({first, last}); }
  void Add(const CharacterSet& other);
  // Sorts the ranges and joins those that touch.
  void Normalize();
  // Makes it the set of all other code points. It must be normalized, and stays so.
  void Complement();
  // Both sets must be normalized.
  CharacterSet Intersection(const CharacterSet& other) const;

  std::span<const CodePointRange> ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<CodePointRange> ranges_;
};

// The classes \d, \w and \s of ECMA-262, and the line terminators, which `.` leaves out;
// normalized.
CharacterSet DigitCharacters();
CharacterSet WordCharacters();
CharacterSet SpaceCharacters();
CharacterSet LineTerminators();

// The properties of Unicode that have a name in patterns: \p{NAME}.
class UnicodeProperties {
 public:
  // Adds the code points that have the property to `set`. False if the name is not known.
  bool Add(std::string_view name, CharacterSet* set);

 private:
  // The code points from `first` up to the next run have the same general category.
  struct Run {
    uint32_t first : 24;
    uint32_t category : 8;
  };
  void FindRuns(uint32_t first, uint32_t last);
  void AddCategories(uint32_t categories, CharacterSet* set);

  std::vector<Run> runs_;  // Found when the first property is asked for.
};

}  // namespace cria::grammar
