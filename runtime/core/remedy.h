#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cria/error.h"

namespace cria {

// How a front end names what helps against an error.
struct RemedyWords {
  // What to do, as the end of a sentence.
  const char* (*remedy)(RemedyKind kind);
  // The options for a context of `tokens` whose KV cache has the KvType number `kv_type`.
  std::string (*fitting)(uint32_t tokens, size_t kv_type);
  // How to convert the checkpoint, as the end of a sentence.
  std::string (*convert)(const std::string& checkpoint);
};

// The error's sentence, and its remedy in these words.
std::string SentenceWithRemedy(const Error& error, const RemedyWords& words);

}  // namespace cria
