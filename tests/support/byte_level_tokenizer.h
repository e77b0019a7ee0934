#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cria::support {

// Chat templates of our own that render as Llama 3's and ChatML do.
enum class ChatTemplateText { kNone, kLlama3, kChatMl };

// A made-up tokenizer of the byte-level kind, with Llama 3's rules: ids 0 to 255 are single bytes,
// then come pieces that are merged from two earlier ones, and special tokens are last.
struct ByteLevelTokenizer {
  std::vector<std::string> pieces;  // Raw bytes of text; without the special tokens.
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // Number i makes piece 256 + i, with rank i.
  std::vector<std::string> special_tokens;

  size_t vocab_size() const { return pieces.size() + special_tokens.size(); }
  // Throws std::out_of_range for a token there is not.
  int SpecialTokenId(std::string_view token) const;
};

// What every tokenizer made here has: <|begin_of_text|>, <|end_of_text|>, <|start_header_id|>,
// <|end_header_id|>, <|eot_id|>, <|im_start|>, <|im_end|>.
inline constexpr size_t kNumNamedSpecialTokens = 7;

// The first merges make common English pieces, the rest all words of few letters. Throws
// std::runtime_error unless 256 + num_special_tokens <= vocab_size <= 490,000 and
// num_special_tokens >= kNumNamedSpecialTokens.
ByteLevelTokenizer MakeByteLevelTokenizer(size_t vocab_size,
                                          size_t num_special_tokens = kNumNamedSpecialTokens);

// Bytes as the byte-level alphabet writes them, in UTF-8.
std::string InByteAlphabet(std::string_view bytes);

// tokenizer.json as the tokenizers library writes it. Merges are "left right", or with
// `merges_as_pairs`, as newer versions write them, ["left", "right"].
std::string TokenizerJson(const ByteLevelTokenizer& tokenizer, bool merges_as_pairs);

// tokenizer_config.json.
std::string TokenizerConfigJson(ChatTemplateText chat_template);

}  // namespace cria::support
