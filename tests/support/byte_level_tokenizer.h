#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cria::support {

// Chat templates of our own, which render the same text as Llama 3's and ChatML.
enum class ChatTemplateText { kNone, kLlama3, kChatMl };

// A made-up byte-level tokenizer with Llama 3's rules. Ids 0 to 255 are single bytes; then follow
// pieces that are merged from two earlier ones, and then special tokens.
struct ByteLevelTokenizer {
  std::vector<std::string> pieces;  // Raw bytes of text; without the special tokens.
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // Number i makes piece 256 + i, with rank i.
  std::vector<std::string> special_tokens;

  size_t vocab_size() const { return pieces.size() + special_tokens.size(); }
  // Throws std::out_of_range if there is no such token.
  int SpecialTokenId(std::string_view token) const;
};

// The special tokens that every tokenizer made here has: <|begin_of_text|>, <|end_of_text|>,
// <|start_header_id|>,
// <|end_header_id|>, <|eot_id|>, <|im_start|>, <|im_end|>.
inline constexpr size_t kNumNamedSpecialTokens = 7;

// The first merges make common English pieces, the rest all words of few letters. Throws
// std::runtime_error unless 256 + num_special_tokens <= vocab_size <= 490,000 and
// num_special_tokens >= kNumNamedSpecialTokens.
ByteLevelTokenizer MakeByteLevelTokenizer(size_t vocab_size,
                                          size_t num_special_tokens = kNumNamedSpecialTokens);

// The bytes in the byte-level alphabet, as UTF-8.
std::string InByteAlphabet(std::string_view bytes);

// tokenizer.json as the library `tokenizers` writes it. A merge is written as "left right", or,
// with `merges_as_pairs`, as newer versions write it: ["left", "right"].
std::string TokenizerJson(const ByteLevelTokenizer& tokenizer, bool merges_as_pairs);

// tokenizer_config.json.
std::string TokenizerConfigJson(ChatTemplateText chat_template);

}  // namespace cria::support
