#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "grammar/expressions.h"

namespace cria::grammar {

// How deep groups may be nested.
inline constexpr size_t kMaxGroupDepth = 100;

enum class PatternKind : uint8_t {
  kEmpty,
  kCharacters,
  kSequence,
  kChoice,
  kRepeat,
  kBegin,            // ^
  kEnd,              // $
  kWordBoundary,     // \b
  kNotWordBoundary,  // \B
  kLookAhead,        // (?=…)
  kNotLookAhead,     // (?!…)
};

// One part of a pattern.
struct PatternItem {
  PatternKind kind = PatternKind::kEmpty;
  bool is_plain = true;         // There is no assertion in it.
  bool has_look_ahead = false;  // There is one in it, or it is one.
  uint32_t position = 0;        // In bytes.
  // The part before it in the same sequence or choice; 0 if it is the first.
  uint32_t previous = 0;
  // The last part of a sequence or choice; the only one of a repetition or look-ahead; the index of
  // the first range of characters.
  uint32_t child = 0;
  uint32_t min = 0;  // A repetition's minimum, or the number of ranges of characters.
  uint32_t max = 0;  // A repetition's maximum, which may be kUnbounded.
  // What it is as an expression, if that is known; only of plain ones.
  Node node = UINT32_MAX;
};

struct PatternTree {
  std::vector<PatternItem> items;  // The item 0 is none of the pattern's.
  std::vector<CodePointRange> ranges;
  uint32_t root = 0;
  bool has_word_boundary = false;
};

// An error that names a byte of the pattern.
std::unexpected<Error> FailPattern(ErrorCode code, size_t position, std::string_view sentence);

Result<PatternTree> ParsePattern(std::string_view pattern);

}  // namespace cria::grammar
