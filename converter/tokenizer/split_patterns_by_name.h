#pragma once

#include <span>
#include <string_view>

namespace cria {

// How families of byte-level tokenizers split text into words, for files that only name the family
// or say nothing. Patterns are applied one after another, as in Vocabulary.

// GPT-2's: contractions, letters, numbers, other characters, and white space; the last white space
// character belongs to the next word.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Llama 3's.
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

struct PreTokenizer {
  std::string_view name;  // The value of `tokenizer.ggml.pre` in GGUF files.
  std::span<const std::string_view> split_patterns;
  bool normalize_nfc = false;
  bool ignore_merges = false;
  bool add_bos_token = false;  // Default if the file does not say.
};

// Null if the name is not known.
const PreTokenizer* FindPreTokenizer(std::string_view name);

}  // namespace cria
