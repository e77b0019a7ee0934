#include "grammar/pattern_parser.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/utf8.h"
#include "grammar/character_classes.h"
#include "grammar/pattern.h"
#include "grammar/pattern_characters.h"
#include "grammar/text_cursor.h"

namespace cria::grammar {
namespace {

// All classes of a pattern together, for their time. A property such as \p{L} has about 650 ranges.
constexpr size_t kMaxPatternRanges = 1 << 18;
// The ranges that are kept, for their memory. A class of many ranges is kept once.
constexpr size_t kMaxKeptRanges = 1 << 16;
constexpr size_t kManyRanges = 64;

// Reads a pattern by recursive descent.
class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : cursor_(pattern), characters_(cursor_) {
    // A byte makes one item at most, but for an empty text, and the choice around all.
    tree_.items.reserve(pattern.size() + 3);
    tree_.items.emplace_back();
  }

  Result<PatternTree> Parse();

 private:
  uint32_t Add(PatternItem item);
  // Where the tree has the ranges; kMaxKeptRanges if there is no room.
  size_t Keep(std::span<const CodePointRange> ranges);
  uint32_t AddCharacters(size_t position, const CharacterSet& set);
  uint32_t AddAssertion(size_t position, PatternKind kind);
  // Makes `item` the last part of `whole`.
  void Append(PatternItem* whole, uint32_t item);

  uint32_t ParseChoice();
  uint32_t ParseSequence();
  uint32_t ParseTerm();
  uint32_t ParseAtom(size_t position);
  uint32_t ParseGroup(size_t position);
  uint32_t ParseQuantifier(uint32_t item);
  bool AtCounts() const;
  bool ParseCounts(uint32_t* min, uint32_t* max);

  TextCursor cursor_;
  PatternCharacters characters_;
  size_t depth_ = 0;
  PatternTree tree_;
  size_t num_ranges_ = 0;
  std::vector<size_t> kept_;  // Where those of many ranges begin.
};

uint32_t PatternParser::Add(PatternItem item) {
  tree_.items.push_back(item);
  return static_cast<uint32_t>(tree_.items.size() - 1);
}

size_t PatternParser::Keep(std::span<const CodePointRange> ranges) {
  const auto is_equal = [](const CodePointRange& a, const CodePointRange& b) {
    return a.first == b.first && a.last == b.last;
  };
  const auto is_same = [&](size_t first) {
    const auto kept = std::span(tree_.ranges).subspan(first);
    return kept.size() >= ranges.size() &&
           std::ranges::equal(kept.first(ranges.size()), ranges, is_equal);
  };
  const bool has_many = ranges.size() >= kManyRanges;
  if (has_many) {
    const auto found = std::ranges::find_if(kept_, is_same);
    if (found != kept_.end()) return *found;
  }
  const size_t first = tree_.ranges.size();
  if (first + ranges.size() > kMaxKeptRanges) return kMaxKeptRanges;
  tree_.ranges.insert(tree_.ranges.end(), ranges.begin(), ranges.end());
  if (has_many) kept_.push_back(first);
  return first;
}

uint32_t PatternParser::AddCharacters(size_t position, const CharacterSet& set) {
  const auto ranges = set.ranges();
  num_ranges_ += ranges.size();
  const size_t first = Keep(ranges);
  if (num_ranges_ > kMaxPatternRanges || first == kMaxKeptRanges) {
    return cursor_.Fail(position,
                        "the classes up to here have too many ranges of characters together",
                        ErrorCode::kUnsupported);
  }
  return Add({.kind = PatternKind::kCharacters,
              .position = static_cast<uint32_t>(position),
              .child = static_cast<uint32_t>(first),
              .min = static_cast<uint32_t>(ranges.size())});
}

uint32_t PatternParser::AddAssertion(size_t position, PatternKind kind) {
  return Add({.kind = kind, .is_plain = false, .position = static_cast<uint32_t>(position)});
}

void PatternParser::Append(PatternItem* whole, uint32_t item) {
  PatternItem& part = tree_.items[item];
  part.previous = std::exchange(whole->child, item);
  whole->is_plain &= part.is_plain;
  whole->has_look_ahead |= part.has_look_ahead;
}

Result<PatternTree> PatternParser::Parse() {
  tree_.root = ParseChoice();
  // A sequence ends only at the end, at `|` or at `)`.
  if (!cursor_.AtEnd()) {
    cursor_.Fail(cursor_.position(), "')' closes no group; a ')' of the text is written '\\)'");
  }
  if (const auto& failure = cursor_.failure()) {
    return FailPattern(failure->code, failure->position, failure->sentence);
  }
  return std::move(tree_);
}

uint32_t PatternParser::ParseChoice() {
  PatternItem choice = {.kind = PatternKind::kChoice,
                        .position = static_cast<uint32_t>(cursor_.position())};
  do {
    Append(&choice, ParseSequence());
  } while (cursor_.Take("|"));
  // The item of a single alternative has no other before it, and is the choice itself.
  return tree_.items[choice.child].previous == 0 ? choice.child : Add(choice);
}

uint32_t PatternParser::ParseSequence() {
  PatternItem sequence = {.kind = PatternKind::kSequence,
                          .position = static_cast<uint32_t>(cursor_.position())};
  while (!cursor_.AtEnd() && cursor_.Peek() != '|' && cursor_.Peek() != ')')
    Append(&sequence, ParseTerm());
  if (sequence.child == 0) return Add({.position = sequence.position});
  return tree_.items[sequence.child].previous == 0 ? sequence.child : Add(sequence);
}

uint32_t PatternParser::ParseTerm() {
  const size_t position = cursor_.position();
  if (cursor_.Take("^")) return AddAssertion(position, PatternKind::kBegin);
  if (cursor_.Take("$")) return AddAssertion(position, PatternKind::kEnd);
  if (cursor_.Peek() == '\\' && (cursor_.Peek(1) == 'b' || cursor_.Peek(1) == 'B')) {
    tree_.has_word_boundary = true;
    const bool is_boundary = cursor_.Take("\\b");
    if (!is_boundary) cursor_.Skip(2);
    return AddAssertion(position,
                        is_boundary ? PatternKind::kWordBoundary : PatternKind::kNotWordBoundary);
  }
  const uint32_t atom = cursor_.Take("(") ? ParseGroup(position) : ParseAtom(position);
  const PatternKind kind = tree_.items[atom].kind;
  // Only a group around a look-ahead may be repeated. It has the look-ahead's item, but begins
  // before it.
  const bool is_look_ahead =
      (kind == PatternKind::kLookAhead || kind == PatternKind::kNotLookAhead) &&
      tree_.items[atom].position == position;
  return is_look_ahead ? atom : ParseQuantifier(atom);
}

uint32_t PatternParser::ParseAtom(size_t position) {
  const char next = cursor_.Peek();
  if (next == '*' || next == '+' || next == '?' || AtCounts()) {
    return cursor_.Fail(
        position,
        "there is nothing before the quantifier that it could repeat; a character of the "
        "text is written with '\\' before it");
  }
  return AddCharacters(position, characters_.Read());
}

uint32_t PatternParser::ParseGroup(size_t position) {
  PatternKind kind = PatternKind::kEmpty;
  if (cursor_.Take("?=")) {
    kind = PatternKind::kLookAhead;
  } else if (cursor_.Take("?!")) {
    kind = PatternKind::kNotLookAhead;
  } else if (cursor_.Take("?<=") || cursor_.Take("?<!")) {
    return cursor_.Fail(position, "look-behind is not supported", ErrorCode::kUnsupported);
  } else if (cursor_.Take("?<")) {
    const std::string_view name = cursor_.rest().substr(0, cursor_.rest().find('>'));
    cursor_.Skip(name.size());
    if (name.empty() || name.find_first_of("()[]{}*+?|^$ ") != std::string_view::npos ||
        !cursor_.Take(">")) {
      return cursor_.Fail(position,
                          "the group's name is written (?<name>…), with letters and digits");
    }
  } else if (cursor_.Peek() == '?' && !cursor_.Take("?:")) {
    return cursor_.Fail(
        position,
        "a group that begins so is not supported: only (…), (?:…), (?<name>…), (?=…) and "
        "(?!…) are",
        ErrorCode::kUnsupported);
  }
  if (++depth_ > kMaxGroupDepth) {
    return cursor_.Fail(position, "groups are nested more than 100 deep", ErrorCode::kUnsupported);
  }
  const uint32_t inner = ParseChoice();
  --depth_;
  if (!cursor_.Take(")"))
    return cursor_.Fail(position, "'(' is not closed; a '(' of the text is written '\\('");
  if (kind == PatternKind::kEmpty) return inner;
  return Add({.kind = kind,
              .is_plain = false,
              .has_look_ahead = true,
              .position = static_cast<uint32_t>(position),
              .child = inner});
}

uint32_t PatternParser::ParseQuantifier(uint32_t item) {
  uint32_t min = 0;
  uint32_t max = kUnbounded;
  if (cursor_.Take("+")) {
    min = 1;
  } else if (cursor_.Take("?")) {
    max = 1;
  } else if (!cursor_.Take("*") && !ParseCounts(&min, &max)) {
    return item;
  }
  cursor_.Take("?");
  PatternItem repeat = {.kind = PatternKind::kRepeat, .min = min, .max = max};
  repeat.position = tree_.items[item].position;
  Append(&repeat, item);
  return Add(repeat);
}

// A `{` that no digit or comma follows is a character.
bool PatternParser::AtCounts() const {
  return cursor_.Peek() == '{' && (IsDecimalDigit(cursor_.Peek(1)) || cursor_.Peek(1) == ',');
}

// Reads {m}, {m,} or {m,n}; false if something else is there.
bool PatternParser::ParseCounts(uint32_t* min, uint32_t* max) {
  const size_t position = cursor_.position();
  if (!AtCounts()) return false;
  cursor_.Skip(1);
  const auto first = cursor_.TakeCount();
  *min = *max = first.value_or(0);
  if (cursor_.Take(",")) *max = cursor_.TakeCount().value_or(kUnbounded);
  if (!first || !cursor_.Take("}")) {
    cursor_.Fail(position,
                 "a quantifier is written {m}, {m,} or {m,n}; a '{' of the text is written '\\{'");
  } else if (*min > kMaxRepetitions || (*max > kMaxRepetitions && *max != kUnbounded)) {
    cursor_.Fail(position, "a quantifier asks for more than 1000000 repetitions",
                 ErrorCode::kUnsupported);
  } else if (*min > *max) {
    cursor_.Fail(position, "the quantifier's first number is larger than its second");
  }
  return true;
}

}  // namespace

std::unexpected<Error> FailPattern(ErrorCode code, size_t position, std::string_view sentence) {
  return Fail(code, Format("the pattern, byte {}: {}", position, sentence));
}

Result<PatternTree> ParsePattern(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return FailPattern(ErrorCode::kUnsupported, kMaxPatternBytes,
                       "a pattern may have 65536 bytes; this one is longer");
  }
  const size_t valid_bytes = ValidUtf8Prefix(pattern);
  if (valid_bytes < pattern.size()) {
    return FailPattern(ErrorCode::kUsage, valid_bytes, "this is not UTF-8");
  }
  return PatternParser(pattern).Parse();
}

}  // namespace cria::grammar
