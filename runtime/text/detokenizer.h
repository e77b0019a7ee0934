#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/utf8.h"
#include "text/tokenizer.h"

namespace cria {

struct DetokenizerOptions {
  // The first token begins a text, so the space that SentencePiece added there is removed. If
  // false, the tokens continue text that is already shown.
  bool at_text_start = true;
};

// Turns tokens, one by one, into text that is always valid UTF-8. A character that is spread over
// several tokens is returned when it is complete; bytes that cannot become a character are returned
// as U+FFFD as soon as that is certain. Allocates only in the constructor.
class Detokenizer {
 public:
  // The tables of the tokenizer's vocabulary must outlive the detokenizer.
  explicit Detokenizer(const Tokenizer& tokenizer, const DetokenizerOptions& options = {});

  // The text that is complete with this token, valid until the next call. Control tokens, unknown
  // tokens and ids that do not exist return no text.
  std::string_view Append(int32_t id);
  // Ends the text and returns U+FFFD for an incomplete character. Then a new text may begin.
  std::string_view Flush();
  // Whether the tokens so far end inside a character.
  bool is_in_character() const { return pending_bytes_ != 0; }

 private:
  std::string_view AppendBytes(std::string_view bytes, bool ends_text);
  void Emit(std::string_view text);

  Vocabulary vocabulary_;
  bool strip_space_ = false;
  std::array<char, kMaxUtf8Bytes - 1> pending_{};  // The beginning of an incomplete character.
  size_t pending_bytes_ = 0;
  std::vector<char> input_;   // [longest piece + pending]
  std::vector<char> output_;  // [3 × input_]: each byte may become a U+FFFD.
  size_t output_bytes_ = 0;
};

}  // namespace cria
