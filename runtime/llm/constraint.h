#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "core/platform.h"
#include "cria/error.h"
#include "grammar/constraint_source.h"
#include "grammar/matcher.h"
#include "grammar/token_table.h"
#include "llm/sampler.h"
#include "model/vocabulary.h"

namespace cria {

// What all constraints of an engine share: the tokens of its model, and how many constraints there
// may be at once.
class ConstraintTokens {
 public:
  static uint64_t MemoryBytes(size_t vocab_size);
  // What Constraint::Set takes besides while it reads a source. All constraints take turns.
  static uint64_t ReadingBytes() { return grammar::kMaxReadingBytes; }
  // The vocabulary's tables must outlive the object. `vocab_size` is how many logits the model
  // gives; ids without a piece are never allowed.
  static Result<std::unique_ptr<ConstraintTokens>> Create(const Vocabulary& vocabulary,
                                                          size_t vocab_size,
                                                          size_t max_constraints);

 private:
  friend class Constraint;

  ConstraintTokens(platform::PageBlock memory, const Vocabulary& vocabulary, size_t vocab_size,
                   size_t max_constraints);

  const size_t vocab_size_;
  platform::PageBlock memory_;
  grammar::TokenTable table_;
  std::atomic<size_t> num_left_;  // How many constraints may still be made.
  std::mutex reading_;            // Sources are read one after the other.
};

// What a generated text must match: a JSON Schema, a grammar, a regular expression or any JSON
// (grammar::ConstraintKind). It holds from the first generated token, so that a model that reasons
// before its answer does not do so. A generation uses it (GenerationOptions::constraint), one at a
// time. All memory that it keeps is allocated when it is made.
class Constraint {
 public:
  // One constraint's share of the memory plan; ConstraintTokens come once to all of them.
  static uint64_t MemoryBytes(size_t vocab_size);
  // Fails with kOutOfMemory if as many exist as ConstraintTokens allow. `tokens` must outlive it.
  static Result<std::unique_ptr<Constraint>> Create(ConstraintTokens& tokens);
  Constraint(const Constraint&) = delete;
  Constraint& operator=(const Constraint&) = delete;
  ~Constraint();

  // Sets what the text must match, which is then at its beginning. If it is the same as before,
  // what was learnt about it is kept. After an error, there must be another Set before anything
  // else.
  Status Set(const grammar::ConstraintSource& source);
  // Begins a new text. Complete, CompleteTokens and Conversation do so themselves; generating
  // goes on from where the last one ended.
  void Restart() { matcher_.Restart(); }

  // ---- For a session ----

  struct Next {
    TokenMask mask;        // Valid until the next call.
    int32_t forced = -1;   // The only token that is possible, if there is no choice.
    bool is_over = false;  // The text is complete and nothing can follow.
  };
  // What may follow the text so far. If `max_tokens` more are not enough for every text, only
  // tokens after which the text can be completed, as long as there are some. `stop_token_ids` are
  // the tokens that end the text. Allocates nothing unless it fails.
  Result<Next> FindNext(std::span<const int32_t> stop_token_ids, size_t max_tokens);
  // How many of these tokens, from the first one on, may follow one another.
  size_t CountAllowed(std::span<const int32_t> drafts, size_t max_tokens);
  // Appends a token to the text that Rewind may take away again.
  Status Try(int32_t token) { return matcher_.Accept(token); }
  void Rewind(size_t num_tokens) { matcher_.Rewind(num_tokens); }
  Status Accept(int32_t token);
  // Whether the text so far matches. One that ends because of a limit need not.
  bool IsComplete() const;

 private:
  Constraint(platform::PageBlock memory, ConstraintTokens& tokens);

  ConstraintTokens& tokens_;
  platform::PageBlock memory_;
  grammar::Matcher matcher_;
};

}  // namespace cria
