#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "decode/sequence_store.h"

namespace cria {

// Keeps beginnings of texts elsewhere than in the KV cache, such as in files.
class PromptStore {
 public:
  // Fewer tokens are computed, because reading them would save too little time.
  static constexpr size_t kMinTokens = 128;

  virtual ~PromptStore() = default;

  // Returns how many of the first tokens Read can read, perhaps fewer than kMinTokens. Allocates
  // nothing.
  virtual size_t Find(std::span<const int32_t> tokens) = 0;
  // Copies the rows of these tokens, which Find has found, into a sequence that Sequences::Restore
  // has made as long. If this fails, the caller runs the tokens.
  virtual Status Read(std::span<const int32_t> tokens, SequenceId sequence) = 0;

  // Whether to write a text that the cache gives up. Allocates nothing, and returns soon.
  virtual bool Wants(std::span<const int32_t> tokens) = 0;
  // Keeps the rows that the sequence has of all of these tokens. If this fails, the text is lost.
  // The sequence does not change meanwhile.
  virtual void Write(std::span<const int32_t> tokens, SequenceId sequence) = 0;
};

}  // namespace cria
