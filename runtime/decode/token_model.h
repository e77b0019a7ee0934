#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cria/error.h"
#include "decode/batch.h"
#include "decode/sequences.h"

namespace cria {

// What is to be guessed: up to `max_tokens` tokens behind `token`, which is the next one of a
// sequence, at `position`.
struct GuessRequest {
  SequenceId sequence = 0;
  size_t position = 0;
  int32_t token = 0;
  size_t max_tokens = 0;
};

// Chooses the next token from its logits, [vocab_size], which it may change; a negative one ends
// the guesses.
using GuessCallback = std::function<int32_t(std::span<float> logits)>;

// The decoder as those see it who run sequences; tests replace it with a scripted one.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  virtual size_t vocab_size() const = 0;
  virtual size_t hidden_size() const = 0;
  // Maximum number of tokens of a sequence.
  virtual size_t context_tokens() const = 0;
  // Maximum number of tokens of all sequences together; those that they share count once.
  virtual size_t cache_tokens() const = 0;
  // Maximum number of tokens that one Forward takes; at least max_sequences().
  virtual size_t chunk_tokens() const = 0;
  // How many sequences can be open at once.
  virtual size_t max_sequences() const = 0;
  // Maximum number of rows of logits that one product computes; at least max_sequences().
  virtual size_t max_logit_rows() const = 0;

  // What the model has of its sequences. After each change, CarryOutMoves comes before anything
  // else.
  virtual Sequences& sequences() = 0;
  // Moves what the last change of sequences() leaves to be moved. If it fails, that is lost.
  virtual Status CarryOutMoves() = 0;

  // Runs the tokens of the batch. Each sequence must have all positions before its run's first one;
  // later ones are forgotten. If it fails, the sequences have the tokens before their runs, and
  // perhaps positions behind them whose tokens are lost, and there are no logits. A recurrent state
  // that was lost, too, is missing in Sequences::LongestPrefix. Logits are computed when Logits
  // asks for them.
  virtual Status Forward(const Batch& batch) = 0;

  // Runs tokens of one sequence.
  Status ForwardSequence(SequenceId sequence, std::span<const int32_t> tokens,
                         size_t first_position, size_t num_logits) {
    const BatchRun run = {sequence, first_position, tokens.size(), num_logits};
    return Forward({tokens, std::span(&run, 1)});
  }

  // Row `row`, [vocab_size], of the rows of logits of the last Forward, those of a later run behind
  // those of an earlier one. The caller may change it. It is valid until the next Forward or until
  // a row is asked for that was not computed in the same product: one product computes the row that
  // is asked for and those behind it, up to max_logit_rows() in all.
  virtual Result<std::span<float>> Logits(size_t row) = 0;

  // Whether the model has a layer for Guess, and it is loaded.
  virtual bool can_guess() const { return false; }
  // Guesses tokens one after another, by a small part of what Forward computes. The sequence must
  // have all tokens before the position; later ones are forgotten, and none is added. It must have
  // pages, or there must be free ones, for the request's tokens behind the position. Logits and
  // hidden states of the last Forward stay.
  virtual Status Guess(const GuessRequest& request, const GuessCallback& choose) {
    static_cast<void>(request);
    static_cast<void>(choose);
    return Fail(ErrorCode::kUnsupported, "the model has no layer that guesses tokens");
  }

  // The vector, [hidden_size], that these logits are computed from: the hidden state behind the
  // last layer, normalized by the model file's last norm. Converting may have moved gains of that
  // norm into the output head. It is valid until the next call of this, Forward or Logits.
  virtual Result<std::span<const float>> LastHiddenState(size_t row) = 0;
};

}  // namespace cria
