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
  // Reading fewer tokens is not worth it: they are computed.
  static constexpr size_t kMinTokens = 128;

  virtual ~PromptStore() = default;

  // How many of the first tokens Read can read, perhaps fewer than kMinTokens. Allocates nothing.
  virtual size_t Find(std::span<const int32_t> tokens) = 0;
  // Writes what is kept of these tokens, which Find has found, into a sequence that
  // Sequences::Restore has made as long. If it fails, the caller runs them.
  virtual Status Read(std::span<const int32_t> tokens, SequenceId sequence) = 0;

  // Whether a text is to be written that the cache gives up. Allocates nothing, and returns soon.
  virtual bool Wants(std::span<const int32_t> tokens) = 0;
  // Keeps what the sequence's own place has of all of these tokens. If that fails, they are lost.
  // Nobody changes the sequence meanwhile.
  virtual void Write(std::span<const int32_t> tokens, SequenceId sequence) = 0;
};

}  // namespace cria
