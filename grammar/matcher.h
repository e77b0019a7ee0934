#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cria/error.h"
#include "grammar/automaton.h"
#include "grammar/constraint_source.h"
#include "grammar/expressions.h"
#include "grammar/token_masks.h"
#include "grammar/token_table.h"

namespace cria::grammar {

// The tokens that may come next.
struct AllowedTokens {
  std::span<const uint64_t> words;  // [vocab / 64, rounded up]: bit id % 64 of word id / 64. Valid
                                    // until the matcher's next call.
  bool may_end = false;             // The text may end here.
  size_t count = 0;                 // How many bits are set.
  int32_t single = -1;              // The only one of them, if the text may not end either.
};

// Steps through a constraint, token by token, in fixed memory. Only Compile allocates.
class Matcher {
 public:
  // For the states and expressions of a constraint.
  static constexpr size_t kDefaultMemoryBytes = size_t{4} << 20;
  // These, and masks that are kept.
  static size_t MemoryBytes(size_t vocab_size);
  // Tokens between two Commits.
  static constexpr size_t kMaxAhead = 33;

  // `memory` must be aligned to 8 bytes. It may be less than MemoryBytes, if constraints are
  // simple, or more. The table must outlive the matcher.
  Matcher(std::span<std::byte> memory, const TokenTable& tokens);

  // Afterwards at the beginning of a text. All states and masks are kept if the source is the same
  // as the last one. After an error there is no constraint.
  Status Compile(const ConstraintSource& source);
  using Reader = Result<Node> (*)(Expressions& expressions, const ConstraintSource& source);
  Status Compile(const ConstraintSource& source, Reader reader);
  // Whether Compile has nothing to read.
  bool Has(const ConstraintSource& source) const { return IsSame(source, ReadConstraint); }
  // At the beginning of a text again.
  void Restart();

  // The tokens that may come next. If `remaining_tokens`, with this one, are few, only those after
  // which the text can still be ended with the others, where each takes a byte, so that a value is
  // closed in time; if there are none and the text may not end, those that come nearest to an end.
  // An error if no token of the vocabulary goes on.
  Result<AllowedTokens> Allowed(size_t remaining_tokens);
  // Appends a token. It must be allowed.
  Status Accept(int32_t token);
  // Takes back the last `count` tokens, which were accepted since the last Commit.
  void Rewind(size_t count);
  // The tokens so far are not taken back.
  void Commit();
  // Whether the text may end here.
  bool IsComplete() const { return source_ && automaton_.IsComplete(path_[position_]); }

 private:
  bool IsSame(const ConstraintSource& source, Reader reader) const;
  Status CompileAnew(const ConstraintSource& source, Reader reader);

  const TokenTable& tokens_;
  TokenMasks masks_;
  std::span<std::byte> memory_;             // For what is compiled.
  std::optional<ConstraintSource> source_;  // In memory_.
  Reader reader_ = nullptr;
  std::optional<Expressions> expressions_;
  Automaton automaton_;
  // The states after each token since the last Commit; behind the last of them, those of a mask or
  // within a token.
  std::array<Automaton::State, kMaxAhead + 1 + TokenMasks::kRoom> path_ = {};
  size_t position_ = 0;
};

}  // namespace cria::grammar
